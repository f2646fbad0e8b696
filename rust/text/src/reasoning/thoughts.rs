//! The machine that tells thoughts.

use std::sync::Arc;

use super::event::ReasoningEvent;
use super::format::ReasoningFormat;
use crate::speech::{Channels, Item, Machine, Markers, Part, Queue};
use crate::tokenizer::Tokenizer;

const OPEN: usize = 0;
const CLOSE: usize = 1;

/// Tells thoughts.
#[derive(Debug)]
pub(crate) struct Thoughts {
    format: Option<ReasoningFormat>,
    markers: Arc<Markers>,
    channels: Channels,
    /// Where the turn stands.
    state: State,
    /// The text of the thought that is open.
    text: String,
    /// Whether the item that was taken last was a marker that begins or ends a thought.
    took_marker: bool,
    /// What was said before a header that never came.
    unsaid: String,
}

/// Where a turn stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was said.
    New,
    /// In a thought.
    Thinking,
    /// Outside of one.
    Speaking,
}

impl Thoughts {
    /// A machine for this format; without one there are no thoughts.
    pub(crate) fn new(tokenizer: &Tokenizer, format: Option<&ReasoningFormat>) -> Self {
        let markers = match format {
            Some(ReasoningFormat::Between { open, close, .. }) => {
                Markers::new(tokenizer, [open.as_str(), close.as_str()])
            }
            Some(ReasoningFormat::Channel) => Markers::new(tokenizer, Channels::MARKERS),
            None => Markers::new(tokenizer, [""; 0]),
        };
        Self {
            format: format.cloned(),
            markers: Arc::new(markers),
            channels: Channels::default(),
            state: State::New,
            text: String::new(),
            took_marker: false,
            unsaid: String::new(),
        }
    }

    /// Takes what was said of a turn whose header stands before it: no thought.
    pub(crate) fn take_unsaid(&mut self) -> String {
        std::mem::take(&mut self.unsaid)
    }

    /// Whether the item that was taken last stands outside of thoughts, and begins or ends none.
    pub(crate) fn leaves(&self, item: Item<'_>) -> bool {
        match self.format {
            None => true,
            Some(ReasoningFormat::Between { .. }) => {
                self.state != State::Thinking && !self.took_marker
            }
            Some(ReasoningFormat::Channel) => {
                self.state != State::Thinking
                    && self.channels.is_in_body()
                    && !matches!(item, Item::Marker(..))
            }
        }
    }

    fn start(&mut self, queue: &mut Queue<ReasoningEvent>) {
        self.state = State::Thinking;
        queue.push(ReasoningEvent::Start);
    }

    fn think(&mut self, text: &str, queue: &mut Queue<ReasoningEvent>) {
        self.text.push_str(text);
        queue.push(ReasoningEvent::Delta(text.to_owned()));
    }

    fn close(&mut self, queue: &mut Queue<ReasoningEvent>) {
        if self.state == State::Thinking {
            queue.push(ReasoningEvent::End(std::mem::take(&mut self.text)));
        }
        self.state = State::Speaking;
    }

    fn take_part(&mut self, part: Part<'_>, queue: &mut Queue<ReasoningEvent>) {
        match part {
            Part::Begin(header) if Channels::channel(header) == "analysis" => self.start(queue),
            Part::Body(text) if self.state == State::Thinking => self.think(text, queue),
            Part::Begin(_) | Part::End => self.close(queue),
            Part::Body(_) => {}
        }
    }
}

impl Machine for Thoughts {
    type Event = ReasoningEvent;

    fn markers(&self) -> &Arc<Markers> {
        &self.markers
    }

    fn take(&mut self, item: Item<'_>, queue: &mut Queue<ReasoningEvent>) {
        self.took_marker = false;
        let is_opened = match self.format {
            None => return,
            Some(ReasoningFormat::Channel) => {
                let mut channels = std::mem::take(&mut self.channels);
                channels.take(item, |part| self.take_part(part, queue));
                self.channels = channels;
                return;
            }
            Some(ReasoningFormat::Between { is_opened, .. }) => is_opened,
        };
        if self.state == State::New && is_opened {
            self.start(queue);
            // The model may write the marker that the cue has written already.
            if matches!(item, Item::Marker(OPEN, _)) {
                return;
            }
        }
        match (item, self.state) {
            (Item::Marker(OPEN, text), State::Thinking) | (Item::Text(text), State::Thinking) => {
                self.think(text, queue);
            }
            (Item::Marker(OPEN, _), _) => {
                self.took_marker = true;
                self.start(queue);
            }
            (Item::Marker(CLOSE, _), State::Thinking) => {
                self.took_marker = true;
                self.close(queue);
            }
            // A marker that closes nothing is text.
            (Item::Text(_) | Item::Marker(..), State::New) => self.state = State::Speaking,
            _ => {}
        }
    }

    fn end(&mut self, queue: &mut Queue<ReasoningEvent>) {
        let mut channels = std::mem::take(&mut self.channels);
        self.unsaid = channels.end(|part| self.take_part(part, queue));
        self.close(queue);
        self.state = State::New;
    }

    fn n_bytes(&self) -> usize {
        self.text.len() + self.channels.n_bytes() + self.unsaid.len()
    }

    fn reset(&mut self) {
        self.channels = Channels::default();
        self.state = State::New;
        self.text.clear();
        self.took_marker = false;
        self.unsaid.clear();
    }
}
