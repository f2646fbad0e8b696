//! What is left to show of what the model says, without its thoughts and its calls.

use std::sync::Arc;

use crate::chat::Chat;
use crate::chat_event::ChatEvent;
use crate::reasoning::{ReasoningFormat, Thoughts};
use crate::speech::{Item, Machine, Markers, Queue};
use crate::stop_texts::StopSearch;
use crate::tools::{Calls, ToolEvent};

/// Shows text and control tokens that stand in no thought and in no call. What began as a call and is none is shown as
/// it was written.
#[derive(Debug)]
pub(crate) struct Shown {
    thoughts: Thoughts,
    calls: Calls,
    markers: Arc<Markers>,
    /// How many of the markers are those of thoughts.
    n_thought_markers: usize,
    /// Of the markers, those that are control tokens.
    controls: Vec<Option<u32>>,
    /// Whether thoughts and calls stand in the same channels, and have the same markers.
    is_channel: bool,
    reply: String,
    /// Holds back what is shown; none: there are no stop texts.
    stops: Option<StopSearch>,
}

impl Shown {
    /// Hides what it is told to.
    pub(crate) fn new(chat: &Chat, hides_thoughts: bool, hides_calls: bool) -> Self {
        let tokenizer = chat.tokenizer();
        let reasoning = chat.reasoning_format().filter(|_| hides_thoughts);
        let thoughts = Thoughts::new(tokenizer, reasoning);
        let calls = Calls::new(tokenizer, chat.call_format().filter(|_| hides_calls));
        let is_channel = reasoning == Some(&ReasoningFormat::Channel) || calls.is_channel();
        let texts = if is_channel {
            // Either of them may be shown: its marker ends a message all the same.
            Calls::CHANNEL_MARKERS.map(str::to_owned).to_vec()
        } else {
            [thoughts.markers().texts(), calls.markers().texts()].concat()
        };
        let control = |text: &String| {
            let id = tokenizer.id_of(text);
            id.filter(|&id| chat.is_control(id))
        };
        Self {
            controls: texts.iter().map(control).collect(),
            n_thought_markers: thoughts.markers().texts().len(),
            markers: Arc::new(Markers::new(tokenizer, texts)),
            thoughts,
            calls,
            is_channel,
            reply: String::new(),
            stops: None,
        }
    }

    /// The same without stop texts: it holds back what may be the beginning of one.
    pub(crate) fn stopping(self, stops: StopSearch) -> Self {
        Self {
            stops: Some(stops),
            ..self
        }
    }

    fn show(&mut self, text: &str, queue: &mut Queue<ChatEvent>) {
        match &mut self.stops {
            Some(stops) => {
                let text = stops.push(text);
                self.push(&text, queue);
            }
            None => self.push(text, queue),
        }
    }

    /// Shows what was held back: something comes that is not shown, and no stop text reaches across it.
    fn show_held(&mut self, queue: &mut Queue<ChatEvent>) {
        if let Some(stops) = &mut self.stops {
            let held = stops.interrupt();
            self.push(&held, queue);
        }
    }

    fn push(&mut self, text: &str, queue: &mut Queue<ChatEvent>) {
        if !text.is_empty() {
            self.reply.push_str(text);
            queue.push(ChatEvent::Delta(text.to_owned()));
        }
    }

    /// Tells of a control token, behind what was held back.
    fn tell(&mut self, id: u32, queue: &mut Queue<ChatEvent>) {
        self.show_held(queue);
        queue.push(ChatEvent::Interrupt(id));
    }

    /// What the calls of `found` leave to show; whether that is anything.
    fn show_malformed(
        &mut self,
        mut found: Queue<ToolEvent>,
        queue: &mut Queue<ChatEvent>,
    ) -> bool {
        let mut shows = false;
        while let Some(event) = found.pop() {
            if let ToolEvent::Malformed(text) = event {
                shows |= !text.is_empty();
                self.show(&text, queue);
            }
        }
        let abandoned = self.calls.take_abandoned();
        self.show(&abandoned, queue);
        shows || !abandoned.is_empty()
    }
}

/// The item as somebody sees it who knows the markers from `first` up to `end` only.
fn seen_by(item: Item<'_>, first: usize, end: usize) -> Item<'_> {
    match item {
        Item::Marker(place, text) if (first..end).contains(&place) => {
            Item::Marker(place - first, text)
        }
        Item::Marker(_, text) => Item::Text(text),
        other => other,
    }
}

impl Machine for Shown {
    type Event = ChatEvent;

    fn markers(&self) -> &Arc<Markers> {
        &self.markers
    }

    fn take(&mut self, item: Item<'_>, queue: &mut Queue<ChatEvent>) {
        let (of_thoughts, of_calls) = if self.is_channel {
            (item, item)
        } else {
            let n = self.n_thought_markers;
            (seen_by(item, 0, n), seen_by(item, n, usize::MAX))
        };
        self.thoughts.take(of_thoughts, &mut Queue::default());
        let is_thought = !self.thoughts.leaves(of_thoughts);
        if is_thought && !self.is_channel {
            self.show_held(queue);
            return;
        }
        let mut found = Queue::default();
        self.calls.take(of_calls, &mut found);
        let is_shown = !is_thought && self.calls.leaves(of_calls);
        if self.show_malformed(found, queue) {
            return;
        }
        if !is_shown {
            self.show_held(queue);
            return;
        }
        match item {
            Item::Text(text) => self.show(text, queue),
            Item::Control(id, _) => self.tell(id, queue),
            // One that neither begins nor ends anything.
            Item::Marker(place, text) => match self.controls.get(place) {
                Some(&Some(id)) => self.tell(id, queue),
                _ => self.show(text, queue),
            },
        }
    }

    fn end(&mut self, queue: &mut Queue<ChatEvent>) {
        self.thoughts.end(&mut Queue::default());
        let mut found = Queue::default();
        self.calls.end(&mut found);
        self.show_malformed(found, queue);
        // Where calls stand in channels, they have shown it.
        let unsaid = self.thoughts.take_unsaid();
        if !self.calls.is_channel() {
            self.show(&unsaid, queue);
        }
        self.show_held(queue);
        queue.push(ChatEvent::Done(std::mem::take(&mut self.reply)));
        if let Some(stops) = &mut self.stops {
            stops.restart();
        }
    }

    fn n_bytes(&self) -> usize {
        let n_held = self.stops.as_ref().map_or(0, StopSearch::n_held);
        self.reply.len() + self.thoughts.n_bytes() + self.calls.n_bytes() + n_held
    }

    fn reset(&mut self) {
        self.thoughts.reset();
        self.calls.reset();
        self.reply.clear();
        if let Some(stops) = &mut self.stops {
            stops.restart();
        }
    }
}
