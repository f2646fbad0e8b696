//! What the model says, as text.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use crate::chat::Chat;
use crate::chat_event::ChatEvent;
use crate::error::{Error, Result};
use crate::limits::{MAX_HELD_BYTES, MAX_QUEUED_EVENTS};
use crate::shown::Shown;
use crate::speech::{SpeechDecoder, Weigh};
use crate::stop_texts::StopSearch;
use crate::stop_watch::StopWatch;
use crate::utf8::{REPLACEMENT_BYTES, Utf8};

/// Turns the tokens of an assistant's turn into text without tearing characters apart.
///
/// Every token that is not a control token is text, markers of thinking and tool calls too, where the checkpoint does
/// not declare them special: telling those apart is the business of other decoders. The texts of all deltas, joined,
/// are the decoded tokens, however they were split into feeds. A decoder that was fed the end of a turn starts the next
/// one.
pub struct ChatDecoder {
    chat: Arc<Chat>,
    /// Tokens that end the turn.
    stop: BTreeSet<u32>,
    utf8: Utf8,
    /// The text of the turn so far.
    reply: String,
    /// Whether a token of the turn was already seen.
    begun: bool,
    /// Events that were not given yet.
    queue: VecDeque<ChatEvent>,
    /// Bytes of the texts in the queue.
    n_queued_bytes: usize,
    /// What shows less than all, in the place of all the rest.
    hiding: Option<SpeechDecoder<Shown>>,
    /// The stop texts of the generation that it shows.
    stops: Option<Stops>,
}

/// Stop texts, as a decoder looks for them.
struct Stops {
    /// Reads every token that was taken.
    watch: StopWatch,
    /// Holds back what is shown, where nothing is hidden.
    shown: StopSearch,
}

impl fmt::Debug for ChatDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatDecoder")
            .field("reply", &self.reply)
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}

impl ChatDecoder {
    /// A decoder for what the model of `chat` says. Its turns end with the template's stop tokens and the model's end
    /// tokens.
    pub fn new(chat: Arc<Chat>) -> Self {
        let stop = chat
            .stop_tokens()
            .unwrap_or_default()
            .iter()
            .chain(chat.end_tokens())
            .copied()
            .collect();
        Self {
            chat,
            stop,
            utf8: Utf8::default(),
            reply: String::new(),
            begun: false,
            queue: VecDeque::new(),
            n_queued_bytes: 0,
            hiding: None,
            stops: None,
        }
    }

    /// The same without thoughts, without calls, or without both: what other decoders give. What began as a call and is
    /// none is shown.
    pub fn hiding(chat: Arc<Chat>, hides_thoughts: bool, hides_calls: bool) -> Self {
        let shown = Shown::new(&chat, hides_thoughts, hides_calls);
        let hiding = SpeechDecoder::new(Arc::clone(&chat), shown);
        Self {
            hiding: (hides_thoughts || hides_calls).then_some(hiding),
            ..Self::new(chat)
        }
    }

    /// A decoder of what a generation accepts from now on, as `watch` has read it so far. It shows no stop text, and
    /// holds back what may be the beginning of one.
    pub fn stopping(watch: StopWatch, hides_thoughts: bool, hides_calls: bool) -> Self {
        let chat = Arc::clone(watch.chat());
        let shown = Shown::new(&chat, hides_thoughts, hides_calls).stopping(watch.search());
        let hiding = SpeechDecoder::new(Arc::clone(&chat), shown);
        Self {
            hiding: (hides_thoughts || hides_calls).then_some(hiding),
            stops: Some(Stops {
                shown: watch.search(),
                watch,
            }),
            ..Self::new(chat)
        }
    }

    /// Whether one of these tokens completes a stop text. A last token that ends a generation so is no stop token: what
    /// it has before the stop text is shown.
    pub fn ends_by_text(&self, tokens: &[u32]) -> bool {
        let mut watch = self.stops.as_ref().map(|stops| stops.watch.clone());
        watch
            .as_mut()
            .is_some_and(|watch| watch.take_until(tokens).is_some())
    }

    /// Takes tokens and gives one event. What they mean beyond it is queued; an empty list takes from the queue.
    ///
    /// A character whose bytes are not complete is held back until they are.
    ///
    /// # Errors
    /// `invalid-token` for an id outside the vocabulary, `invalid-argument` when more is queued or said than a decoder
    /// may hold; the tokens are not taken then.
    pub fn feed(&mut self, tokens: &[u32]) -> Result<ChatEvent> {
        if let Some(hiding) = &mut self.hiding {
            let event = hiding.feed(tokens, false)?;
            self.read(tokens);
            return Ok(event.unwrap_or(ChatEvent::Idle));
        }
        self.take(tokens)?;
        Ok(self.next_event())
    }

    /// The same with the last tokens of a turn, which ends with them, whether one of them says so or not.
    ///
    /// # Errors
    /// As [`feed`](ChatDecoder::feed).
    pub fn feed_last(&mut self, tokens: &[u32]) -> Result<ChatEvent> {
        if let Some(hiding) = &mut self.hiding {
            let event = hiding.feed(tokens, true)?;
            self.restart_watch();
            return Ok(event.unwrap_or(ChatEvent::Idle));
        }
        self.take(tokens)?;
        self.close();
        self.restart_watch();
        Ok(self.next_event())
    }

    /// The same with what stands before a stop token, which ends the turn also where nothing does.
    ///
    /// # Errors
    /// As [`feed`](ChatDecoder::feed).
    pub fn feed_stopped(&mut self, tokens: &[u32]) -> Result<ChatEvent> {
        if let Some(hiding) = &mut self.hiding {
            let event = hiding.feed_stopped(tokens)?;
            self.restart_watch();
            return Ok(event.unwrap_or(ChatEvent::Idle));
        }
        self.take(tokens)?;
        self.end();
        self.restart_watch();
        Ok(self.next_event())
    }

    /// Ends a turn that was begun: a character that is held back is shown as U+FFFD. Gives one event, and queues the
    /// rest.
    pub fn finish(&mut self) -> ChatEvent {
        self.restart_watch();
        if let Some(hiding) = &mut self.hiding {
            hiding.finish();
            return hiding.next().unwrap_or(ChatEvent::Idle);
        }
        self.close();
        self.next_event()
    }

    /// Queues what tokens mean.
    fn take(&mut self, tokens: &[u32]) -> Result<()> {
        self.check(tokens)?;
        for &id in tokens {
            if self.stop.contains(&id) {
                self.end();
            } else if self.chat.is_control(id) {
                self.flush();
                self.queue.push_back(ChatEvent::Interrupt(id));
            } else {
                self.say(id);
            }
        }
        self.read(tokens);
        Ok(())
    }

    /// Tokens were taken.
    fn read(&mut self, tokens: &[u32]) {
        if let Some(stops) = &mut self.stops {
            for &token in tokens {
                stops.watch.take(token);
            }
        }
    }

    /// What was said is at its end.
    fn restart_watch(&mut self) {
        if let Some(stops) = &mut self.stops {
            stops.watch.restart();
        }
    }

    /// The oldest event of the queue.
    fn next_event(&mut self) -> ChatEvent {
        let event = self.queue.pop_front().unwrap_or(ChatEvent::Idle);
        self.n_queued_bytes -= event.n_bytes();
        event
    }

    /// Ends a turn that was begun and has no end.
    fn close(&mut self) {
        if self.begun {
            self.end();
        }
    }

    /// Bytes of memory that it takes, about: to charge its holder with.
    pub fn held_bytes(&self) -> usize {
        self.hiding.as_ref().map_or(0, SpeechDecoder::held_bytes)
            + size_of::<Self>()
            + self.reply.capacity()
            + self.n_queued_bytes
            + self.queue.capacity() * size_of::<ChatEvent>()
            + self.stop.len() * size_of::<u64>()
            + self.stops.as_ref().map_or(0, Stops::n_bytes)
    }

    /// The most bytes that it takes once it was fed these tokens, about: to charge its holder with before.
    pub fn most_bytes(&self, tokens: &[u32]) -> usize {
        if let Some(hiding) = &self.hiding {
            let n_stops = self.stops.as_ref().map_or(0, Stops::n_bytes);
            return size_of::<Self>() + hiding.most_bytes(tokens) + n_stops;
        }
        let tokenizer = self.chat.tokenizer();
        // What is beyond the bounds of a decoder is not taken.
        let n_bytes = tokenizer.text_bytes(tokens) + self.utf8.n_held() * REPLACEMENT_BYTES;
        let n_bytes = n_bytes.min((MAX_HELD_BYTES + 4) * REPLACEMENT_BYTES);
        // What is held back is shown at once.
        let n_held = self.stops.as_ref().map_or(0, |stops| stops.shown.n_held());
        let n_bytes = n_bytes + n_held;
        let is_event = |id: &&u32| self.stop.contains(id) || self.chat.is_control(**id);
        // Two for what is said behind the last of them, and two for the end of a turn that has none.
        let n_events = self.queue.len() + 4 + 2 * tokens.iter().filter(is_event).count();
        let n_events = n_events.min(MAX_QUEUED_EVENTS + 4);
        // What grows doubles its room at most.
        let reply = 2 * (self.reply.capacity() + n_bytes);
        let queue = 2 * self.queue.capacity().max(n_events) * size_of::<ChatEvent>();
        self.held_bytes() + n_bytes + reply + queue
    }

    /// Forgets what was said and queued: for the next turn.
    pub fn reset(&mut self) {
        if let Some(hiding) = &mut self.hiding {
            hiding.reset();
        }
        if let Some(stops) = &mut self.stops {
            stops.watch.restart();
            stops.shown.restart();
        }
        self.utf8 = Utf8::default();
        self.reply.clear();
        self.begun = false;
        self.queue.clear();
        self.n_queued_bytes = 0;
    }

    /// Whether there is room for what the tokens mean.
    fn check(&self, tokens: &[u32]) -> Result<()> {
        if tokens.is_empty() {
            return Ok(());
        }
        let mut n_bytes = self.reply.len() + self.n_queued_bytes;
        // A boundary is an event; the text before it, or what was held back, is another.
        let mut n_events = self.queue.len() + 1;
        for &id in tokens {
            self.chat.tokenizer().check_token(id)?;
            if self.stop.contains(&id) || self.chat.is_control(id) {
                n_events += 2;
            } else {
                n_bytes += self.chat.tokenizer().token_bytes(id).map_or(0, <[u8]>::len);
            }
        }
        if n_bytes > MAX_HELD_BYTES {
            return Err(Error::Argument(format!(
                "{n_bytes} bytes of text are more than the decoder's limit of {MAX_HELD_BYTES} bytes; feed fewer tokens, drain it with feed([]), and call reset() between turns"
            )));
        }
        if n_events > MAX_QUEUED_EVENTS {
            return Err(Error::Argument(format!(
                "{} queued events and {} more tokens exceed the decoder's limit of {MAX_QUEUED_EVENTS} events; feed fewer tokens and drain it with feed([])",
                self.queue.len(),
                tokens.len()
            )));
        }
        Ok(())
    }

    /// Takes a token that is text.
    fn say(&mut self, id: u32) {
        let tokenizer = self.chat.tokenizer();
        let mut bytes = tokenizer.token_bytes(id).unwrap_or_default();
        if !self.begun {
            bytes = tokenizer.strip_lead(bytes);
            self.begun = true;
        }
        let text = self.utf8.push(bytes);
        self.show(&text);
    }

    /// Shows what was held back: nothing can complete it.
    fn flush(&mut self) {
        let torn = self.utf8.flush();
        self.show(torn);
        if let Some(stops) = &mut self.stops {
            let held = stops.shown.interrupt();
            self.push(&held);
        }
    }

    /// Shows text, but for a stop text and what may be the beginning of one.
    fn show(&mut self, text: &str) {
        match &mut self.stops {
            Some(stops) => {
                let text = stops.shown.push(text);
                self.push(&text);
            }
            None => self.push(text),
        }
    }

    fn push(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.reply.push_str(text);
        self.n_queued_bytes += text.len();
        match self.queue.back_mut() {
            Some(ChatEvent::Delta(delta)) => delta.push_str(text),
            _ => self.queue.push_back(ChatEvent::Delta(text.to_owned())),
        }
    }

    fn end(&mut self) {
        self.flush();
        self.n_queued_bytes += self.reply.len();
        self.queue
            .push_back(ChatEvent::Done(std::mem::take(&mut self.reply)));
        self.begun = false;
        if let Some(stops) = &mut self.stops {
            stops.shown.restart();
        }
    }
}

impl Stops {
    fn n_bytes(&self) -> usize {
        self.watch.n_bytes() + self.shown.n_bytes()
    }
}
