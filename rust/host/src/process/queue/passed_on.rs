//! The events of a child, which has no client of its own: its standard error, and where it was asked for its output,
//! become events of its parent. The rest is dropped.

use std::fmt;
use std::sync::Arc;

use tokio::sync::futures::Notified;

use super::EventQueue;
use crate::Error;
use crate::event::{Event, EventKind};

/// Passes events of a child on to its parent, whose client may make it wait.
pub(crate) struct PassedOn {
    /// That of the parent.
    events: Arc<dyn EventQueue>,
    count: Counting,
    with_output: bool,
}

/// Counts bytes as output of the parent, which may have too many.
type Counting = Box<dyn Fn(usize) -> Result<(), Error> + Send + Sync>;

impl PassedOn {
    /// To the `events` of the parent, whose output is counted by `count`: standard error, and what the child prints and
    /// sends `with_output`.
    pub(crate) fn new(events: Arc<dyn EventQueue>, count: Counting, with_output: bool) -> Self {
        Self {
            events,
            count,
            with_output,
        }
    }

    /// True for what becomes an event of the parent.
    fn passes(&self, kind: EventKind) -> bool {
        match kind {
            EventKind::Stderr => true,
            EventKind::Stdout | EventKind::Message | EventKind::File => self.with_output,
            EventKind::Notice | EventKind::Last => false,
        }
    }
}

impl fmt::Debug for PassedOn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PassedOn")
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

impl EventQueue for PassedOn {
    fn has_room(&self, kind: EventKind) -> bool {
        // What nobody gets waits for nobody.
        !self.passes(kind) || self.events.has_room(kind)
    }

    fn room_made(&self) -> Notified<'_> {
        self.events.room_made()
    }

    fn push(&self, event: Event) -> Result<(), Error> {
        if !self.passes(event.kind()) {
            return Ok(());
        }
        (self.count)(event.payload_bytes())?;
        self.events.push(event)
    }

    /// Whoever waits for the child hears of its end otherwise.
    fn finish(&self, _: Arc<Event>) {}
}
