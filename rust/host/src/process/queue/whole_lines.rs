//! What a program writes to its standard error, as whole lines. Programs write it in pieces: a panic of Rust is a dozen
//! writes.
//!
//! What has no end of its line waits for it, and goes on without one where it has become long, before any other event,
//! when the program waits or ends, and when it computes on for a whole turn: a prompt or a progress is not late for
//! long.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::futures::Notified;

use super::EventQueue;
use crate::Error;
use crate::event::{Event, EventKind};
use crate::sync::lock;

/// Bytes without an end of a line that wait for one.
const MOST_BYTES: usize = 4 << 10;

/// The events of one program, in front of their queue.
pub(crate) struct WholeLines {
    events: Arc<dyn EventQueue>,
    rest: Mutex<Rest>,
    /// Whether there is a rest, so that a turn that ends without one takes no lock. What a program writes in a turn is
    /// written before that turn ends.
    has_rest: AtomicBool,
}

/// The beginning of a line.
#[derive(Debug, Default)]
struct Rest {
    text: String,
    /// The turn of the program ended while it was there.
    has_seen_turn: bool,
}

impl WholeLines {
    /// In front of `events`.
    pub(crate) fn new(events: Arc<dyn EventQueue>) -> Self {
        Self {
            events,
            rest: Mutex::default(),
            has_rest: AtomicBool::new(false),
        }
    }

    /// The queue behind it, for events of others: they do not become part of a line of this program.
    pub(crate) fn behind(&self) -> Arc<dyn EventQueue> {
        self.events.clone()
    }

    /// Passes on the beginning of a line, where there is one.
    ///
    /// # Errors
    /// Those of [`EventQueue::push`].
    pub(crate) fn pass_rest(&self) -> Result<(), Error> {
        self.pass(&mut lock(&self.rest))
    }

    /// The program waits, or its turn is over and it computes on.
    ///
    /// # Errors
    /// Those of [`EventQueue::push`].
    pub(crate) fn end_turn(&self, waits: bool) -> Result<(), Error> {
        if !self.has_rest.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut rest = lock(&self.rest);
        let is_due = waits || std::mem::replace(&mut rest.has_seen_turn, true);
        if is_due { self.pass(&mut rest) } else { Ok(()) }
    }

    fn pass(&self, rest: &mut Rest) -> Result<(), Error> {
        let Rest { text, .. } = std::mem::take(rest);
        self.has_rest.store(false, Ordering::Relaxed);
        if text.is_empty() {
            return Ok(());
        }
        self.events.push(Event::Stderr(text))
    }

    /// Adds to the standard error, and passes on what is whole.
    fn write(&self, rest: &mut Rest, text: &str) -> Result<(), Error> {
        let n_before = rest.text.len();
        rest.text.push_str(text);
        // What was there before has no end of a line.
        let n_whole = text.rfind('\n').map_or(0, |at| n_before + at + 1);
        let n_whole = if rest.text.len() - n_whole >= MOST_BYTES {
            rest.text.len()
        } else {
            n_whole
        };
        self.has_rest
            .store(n_whole < rest.text.len(), Ordering::Relaxed);
        if n_whole == 0 {
            return Ok(());
        }
        let begun = rest.text.split_off(n_whole);
        let whole = std::mem::replace(&mut rest.text, begun);
        rest.has_seen_turn = false;
        self.events.push(Event::Stderr(whole))
    }
}

impl fmt::Debug for WholeLines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("WholeLines")
            .field("events", &self.events)
            .field("rest", &self.rest)
            .finish()
    }
}

impl EventQueue for WholeLines {
    fn has_room(&self, kind: EventKind) -> bool {
        self.events.has_room(kind)
    }

    fn room_made(&self) -> Notified<'_> {
        self.events.room_made()
    }

    fn push(&self, event: Event) -> Result<(), Error> {
        // Held to the end, so that events come in the order in which they are added.
        let mut rest = lock(&self.rest);
        match event {
            Event::Stderr(text) => self.write(&mut rest, &text),
            event => {
                self.pass(&mut rest)?;
                self.events.push(event)
            }
        }
    }

    fn finish(&self, event: Arc<Event>) {
        // Whoever ends a program that returned has passed it on before. For a rest that is there the last event is an
        // error already.
        drop(self.pass_rest());
        self.events.finish(event);
    }
}
