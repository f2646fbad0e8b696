//! Events in their order, charged to the user of their process.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Capacity;
use crate::Error;
use crate::event::Event;
use crate::stepped_charge::SteppedCharge;

/// What an event costs beside its payload, where kept events are bounded by bytes.
pub(super) const EVENT_BYTES: usize = 64;

/// Events that wait to be read. Their numbers count from 1.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) events: VecDeque<Numbered>,
    pub(super) last_seq: u64,
    /// Payload bytes of the events, without the last one, which is outside the bounds.
    bytes: usize,
    /// What all of it is charged with.
    holding: SteppedCharge,
    /// The last event is in the line or was read.
    pub(super) ended: bool,
}

/// An event with its number.
#[derive(Debug)]
pub(super) struct Numbered {
    pub(super) seq: u64,
    pub(super) event: Arc<Event>,
}

/// What a queue holds: a line, and what its kind keeps beside it.
pub(super) trait Queued {
    fn line(&mut self) -> &mut Line;

    /// Bytes of all that it holds.
    fn held_bytes(&self) -> usize;

    /// Adds an event that is not the last. None: the last one came before, and this one is dropped.
    ///
    /// # Errors
    /// `limit-engine-memory`, and nothing has changed.
    fn add(&mut self, event: Event) -> Result<Option<Arc<Event>>, Error> {
        let held_bytes = self.held_bytes();
        let line = self.line();
        if line.ended {
            return Ok(None);
        }
        line.charge(held_bytes, &event)?;
        Ok(Some(line.add(Arc::new(event))))
    }

    /// Adds the last event, or why there is no room for it. None: one came before, and this one is dropped.
    fn add_last(&mut self, event: Arc<Event>) -> Option<Arc<Event>> {
        let held_bytes = self.held_bytes();
        let line = self.line();
        if line.ended {
            return None;
        }
        let event = line.charge_last(held_bytes, event);
        Some(line.add(event))
    }

    /// Gives back what is held no more.
    fn settle(&mut self) {
        let held_bytes = self.held_bytes();
        self.line().settle(held_bytes);
    }
}

impl Line {
    /// An empty one.
    pub(super) fn new(holding: SteppedCharge) -> Self {
        Self {
            events: VecDeque::new(),
            last_seq: 0,
            bytes: 0,
            holding,
            ended: false,
        }
    }

    /// True when it holds less than it may.
    pub(super) fn has_room(&self, capacity: Capacity) -> bool {
        self.events.len() < capacity.entries && self.bytes < capacity.bytes
    }

    /// Charges an event that comes to what is held, which is so many bytes.
    ///
    /// # Errors
    /// `limit-engine-memory`, and nothing has changed.
    fn charge(&mut self, held_bytes: usize, event: &Event) -> Result<(), Error> {
        // Its text may stand in a log too.
        let more = EVENT_BYTES + 2 * event.payload_bytes();
        self.holding.set(held_bytes + more)
    }

    /// Charges the last event in the same way, and gives what stands in its place: itself, or why there is no room for
    /// it.
    fn charge_last(&mut self, held_bytes: usize, event: Arc<Event>) -> Arc<Event> {
        self.ended = true;
        match self.holding.set(held_bytes + event.payload_bytes()) {
            Ok(()) => event,
            Err(error) => Arc::new(Event::Error(error.into())),
        }
    }

    /// Adds an event that is charged.
    fn add(&mut self, event: Arc<Event>) -> Arc<Event> {
        self.last_seq += 1;
        if !event.is_last() {
            self.bytes += event.payload_bytes();
        }
        self.events.push_back(Numbered {
            seq: self.last_seq,
            event: event.clone(),
        });
        event
    }

    pub(super) fn remove_first(&mut self) -> Option<Numbered> {
        let first = self.events.pop_front()?;
        if !first.event.is_last() {
            self.bytes -= first.event.payload_bytes();
        }
        Some(first)
    }

    /// Drops all that waits.
    pub(super) fn clear(&mut self) {
        self.events = VecDeque::new();
        self.bytes = 0;
    }

    /// True when the last event was read.
    pub(super) fn is_over(&self) -> bool {
        self.ended && self.events.is_empty()
    }

    /// The last event, where it waits.
    pub(super) fn last(&self) -> Option<&Arc<Event>> {
        let queued = self.events.back().map(|numbered| &numbered.event);
        queued.filter(|event| event.is_last())
    }

    /// Bytes of the events that wait, without what the last one carries.
    pub(super) fn kept_bytes(&self) -> usize {
        self.bytes + EVENT_BYTES * self.events.len()
    }

    /// Gives back what is held no more; it holds so many bytes.
    fn settle(&mut self, held_bytes: usize) {
        self.holding.shrink(held_bytes);
    }
}
