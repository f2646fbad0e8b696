//! The events of a child, which has no client of its own: its standard error, and where it was asked for its output,
//! become events of its parent. The rest is dropped.

use std::sync::Arc;

use tokio::sync::futures::Notified;

use super::super::record::ProcessRecord;
use super::EventQueue;
use crate::Error;
use crate::event::Event;

/// Passes events of a child on to its parent, whose client may make it wait.
#[derive(Debug)]
pub(crate) struct PassedOn {
    parent: Arc<ProcessRecord>,
    with_output: bool,
}

impl PassedOn {
    /// To `parent`: standard error, and what the child prints and sends `with_output`.
    pub(crate) fn new(parent: Arc<ProcessRecord>, with_output: bool) -> Self {
        Self {
            parent,
            with_output,
        }
    }
}

impl EventQueue for PassedOn {
    fn has_room(&self) -> bool {
        self.parent.events.has_room()
    }

    fn room_made(&self) -> Notified<'_> {
        self.parent.events.room_made()
    }

    fn push(&self, event: Event) -> Result<(), Error> {
        let passes = match &event {
            Event::Stderr(_) => true,
            Event::Stdout(_) | Event::File(_) => self.with_output,
            Event::Message(_) | Event::Return(_) | Event::Error(_) => false,
        };
        if !passes {
            return Ok(());
        }
        self.parent.count_output(event.payload_bytes())?;
        self.parent.events.push(event)
    }

    /// Whoever waits for the child hears of its end otherwise.
    fn finish(&self, _: Event) {}
}
