//! The machine that finds calls.

use std::sync::Arc;

use super::body::{self, Call};
use super::event::ToolEvent;
use super::format::CallFormat;
use super::list::check_name;
use crate::speech::{Channels, Item, Lexer, Machine, Markers, Part, Queue};
use crate::tokenizer::Tokenizer;

const BEGIN: usize = 0;
const END: usize = 1;

/// Finds calls.
#[derive(Debug)]
pub(crate) struct Calls {
    format: Option<CallFormat>,
    markers: Arc<Markers>,
    channels: Channels,
    state: State,
    /// What was said since the call began, without its first marker.
    body: String,
    /// The name of the call, where its header has it.
    name: String,
    /// What may have been a call and is not one.
    abandoned: String,
    /// Whether the item that was taken last was a marker that begins or ends a call.
    took_marker: bool,
}

/// Where a turn stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was said but white space.
    New,
    /// What may be a call, without a marker.
    Undecided,
    /// In a call.
    Calling,
    /// Outside of one.
    Speaking,
}

impl Calls {
    /// The markers of calls in channels: those of channels, and the token that ends a call and its message.
    pub(crate) const CHANNEL_MARKERS: [&str; 6] = {
        let [message, start, end, channel, constrain] = Channels::MARKERS;
        [message, start, end, channel, constrain, "<|call|>"]
    };

    /// The markers of a format.
    pub(crate) fn markers_of(format: &CallFormat) -> Vec<&str> {
        match format {
            CallFormat::Marked { begin, end } => {
                let end = end.as_deref();
                [Some(begin.as_ref()), end].into_iter().flatten().collect()
            }
            CallFormat::Channel => Self::CHANNEL_MARKERS.to_vec(),
            CallFormat::Bare { marker } => vec![*marker],
        }
    }

    /// A machine for this format; without one there are no calls.
    pub(crate) fn new(tokenizer: &Tokenizer, format: Option<&CallFormat>) -> Self {
        let texts = format.map_or_else(Vec::new, Self::markers_of);
        Self {
            format: format.cloned(),
            markers: Arc::new(Markers::new(tokenizer, texts)),
            channels: Channels::default(),
            state: State::New,
            body: String::new(),
            name: String::new(),
            abandoned: String::new(),
            took_marker: false,
        }
    }

    /// Whether calls stand in channels.
    pub(crate) fn is_channel(&self) -> bool {
        self.format == Some(CallFormat::Channel)
    }

    /// Whether the item that was taken last stands outside of calls, and begins or ends none.
    pub(crate) fn leaves(&self, item: Item<'_>) -> bool {
        match self.format {
            None => true,
            Some(CallFormat::Channel) => {
                let is_marker = matches!(item, Item::Marker(..));
                self.state != State::Calling && self.channels.is_in_body() && !is_marker
            }
            _ => matches!(self.state, State::New | State::Speaking) && !self.took_marker,
        }
    }

    /// Takes what may have been a call and is not one.
    pub(crate) fn take_abandoned(&mut self) -> String {
        std::mem::take(&mut self.abandoned)
    }

    fn start(&mut self, queue: &mut Queue<ToolEvent>) {
        self.took_marker = true;
        self.state = State::Calling;
        queue.push(ToolEvent::Start);
    }

    /// Ends a call, which is one or is not.
    fn close(&mut self, end: &str, queue: &mut Queue<ToolEvent>) {
        self.took_marker = true;
        let body = std::mem::take(&mut self.body);
        let begin = match &self.format {
            Some(CallFormat::Marked { begin, .. }) => begin.as_ref(),
            _ => "",
        };
        match body::calls(&body) {
            Some(calls) => {
                for (place, call) in calls.into_iter().enumerate() {
                    if place > 0 {
                        queue.push(ToolEvent::Start);
                    }
                    queue.push(ToolEvent::Call(call));
                }
            }
            None => queue.push(ToolEvent::Malformed([begin, &body, end].concat())),
        }
        self.state = State::Speaking;
    }

    fn take_marked(&mut self, item: Item<'_>, queue: &mut Queue<ToolEvent>) {
        match (item, self.state) {
            (Item::Marker(BEGIN, _), State::Calling) => {
                self.close("", queue);
                self.start(queue);
            }
            (Item::Marker(BEGIN, _), _) => self.start(queue),
            (Item::Marker(END, text), State::Calling) => self.close(text, queue),
            (Item::Text(text) | Item::Marker(_, text) | Item::Control(_, text), State::Calling) => {
                self.body.push_str(text);
            }
            (Item::Marker(..), State::New) => self.state = State::Speaking,
            _ => {}
        }
    }

    fn take_bare(&mut self, item: Item<'_>, queue: &mut Queue<ToolEvent>) {
        match (item, self.state) {
            (Item::Marker(..), State::New) => self.start(queue),
            (Item::Text(text), State::New) => {
                let begins = text.trim_start();
                if begins.starts_with('{') {
                    self.state = State::Undecided;
                    self.decide(text, queue);
                } else if !begins.is_empty() {
                    self.state = State::Speaking;
                }
            }
            // A call begins with its marker alone: anywhere else that is part of what is said.
            (
                Item::Text(text) | Item::Marker(_, text) | Item::Control(_, text),
                State::Undecided,
            ) => self.decide(text, queue),
            (Item::Text(text) | Item::Marker(_, text) | Item::Control(_, text), State::Calling) => {
                self.body.push_str(text);
            }
            _ => {}
        }
    }

    /// Takes more of what may be a call, and decides whether it is one where that can be told.
    fn decide(&mut self, text: &str, queue: &mut Queue<ToolEvent>) {
        const SEEN: usize = 64;
        self.body.push_str(text);
        if body::begins_as_call(&self.body) {
            self.start(queue);
        } else if self.body.len() > SEEN {
            self.abandoned = std::mem::take(&mut self.body);
            self.state = State::Speaking;
        }
    }

    fn take_part(&mut self, part: Part<'_>, queue: &mut Queue<ToolEvent>) {
        match part {
            Part::Begin(header) => {
                if let Some(name) = Channels::function(header) {
                    name.clone_into(&mut self.name);
                    self.start(queue);
                }
            }
            Part::Body(text) if self.state == State::Calling => self.body.push_str(text),
            Part::End if self.state == State::Calling => {
                let body = std::mem::take(&mut self.body);
                let name = std::mem::take(&mut self.name);
                let arguments = body::object_of(&body).filter(|_| check_name(&name).is_ok());
                queue.push(match arguments {
                    Some(arguments) => ToolEvent::Call(Call {
                        name,
                        arguments,
                        id: None,
                    }),
                    None => ToolEvent::Malformed(body),
                });
                self.state = State::Speaking;
            }
            _ => {}
        }
    }
}

impl Machine for Calls {
    type Event = ToolEvent;

    fn markers(&self) -> &Arc<Markers> {
        &self.markers
    }

    fn take(&mut self, item: Item<'_>, queue: &mut Queue<ToolEvent>) {
        self.took_marker = false;
        match self.format {
            None => {}
            Some(CallFormat::Marked { .. }) => self.take_marked(item, queue),
            Some(CallFormat::Bare { .. }) => self.take_bare(item, queue),
            Some(CallFormat::Channel) => {
                let mut channels = std::mem::take(&mut self.channels);
                channels.take(item, |part| self.take_part(part, queue));
                self.channels = channels;
                if let (Item::Control(_, text), State::Calling) = (item, self.state) {
                    self.body.push_str(text);
                }
            }
        }
    }

    fn end(&mut self, queue: &mut Queue<ToolEvent>) {
        let mut channels = std::mem::take(&mut self.channels);
        let unsaid = channels.end(|part| self.take_part(part, queue));
        if self.state == State::Calling {
            self.close("", queue);
        }
        let abandoned = std::mem::take(&mut self.body) + &unsaid;
        self.reset();
        self.abandoned = abandoned;
    }

    fn most_events(&self, n_bytes: usize, n_markers: usize) -> usize {
        // The body that is open may end, and others that begin in the new text. Each of their calls has a beginning.
        let in_text = |n_bytes: usize| n_bytes / body::MIN_CALL_BYTES;
        let open = body::MAX_CALLS.min(in_text(n_bytes + self.n_bytes()));
        let others = body::MAX_CALLS * n_markers;
        3 * n_markers + 2 * (open + others.min(in_text(n_bytes)))
    }

    fn n_bytes(&self) -> usize {
        self.body.len() + self.name.len() + self.abandoned.len() + self.channels.n_bytes()
    }

    fn reset(&mut self) {
        self.channels = Channels::default();
        self.state = State::New;
        self.body.clear();
        self.name.clear();
        self.abandoned.clear();
        self.took_marker = false;
    }
}

/// The calls of a finished text.
pub(crate) fn all(
    tokenizer: &Tokenizer,
    format: Option<&CallFormat>,
    tokens: &[u32],
    ends: &[u32],
) -> Vec<Call> {
    let mut calls = Calls::new(tokenizer, format);
    let (mut lexer, mut queue) = (Lexer::default(), Queue::default());
    let markers = Arc::clone(&calls.markers);
    for &id in tokens.iter().filter(|id| !ends.contains(id)) {
        let is_control = tokenizer.is_control(id);
        lexer.take(tokenizer, &markers, id, is_control, |item| {
            calls.take(item, &mut queue)
        });
    }
    lexer.end(|item| calls.take(item, &mut queue));
    calls.end(&mut queue);
    let call = |event| match event {
        ToolEvent::Call(call) => Some(call),
        _ => None,
    };
    std::iter::from_fn(|| queue.pop())
        .filter_map(call)
        .collect()
}
