//! By whom the events of a process are read: by one reader from the beginning to the end, by
//! many who come and go, or by those of the parent.

use std::sync::Arc;

use super::queue::{Capacity, DetachableQueue, EventQueue, PassedOn, PipeQueue, Retention};
use super::serving::{Observer, Serving};
use crate::stepped_charge::SteppedCharge;

/// How the events of a process that begins are read.
pub(crate) trait Reading: 'static {
    /// The queue of its events.
    type Queue: EventQueue + 'static;

    /// Who is told what happens in it, where it outlives its readers.
    fn observer(&self) -> Option<Arc<dyn Observer>>;

    /// Makes the queue of a process.
    fn queue(self, pid: u64, capacity: Capacity, holding: SteppedCharge) -> Self::Queue;
}

/// By the one who launches.
pub(crate) struct Alone;

impl Reading for Alone {
    type Queue = PipeQueue;

    fn observer(&self) -> Option<Arc<dyn Observer>> {
        None
    }

    fn queue(self, _pid: u64, capacity: Capacity, holding: SteppedCharge) -> PipeQueue {
        PipeQueue::new(capacity, holding)
    }
}

/// By the one who reads the events of its parent.
impl Reading for PassedOn {
    type Queue = Self;

    fn observer(&self) -> Option<Arc<dyn Observer>> {
        None
    }

    fn queue(self, _pid: u64, _capacity: Capacity, _holding: SteppedCharge) -> Self {
        self
    }
}

impl Reading for Serving {
    type Queue = DetachableQueue;

    fn observer(&self) -> Option<Arc<dyn Observer>> {
        Some(self.observer.clone())
    }

    fn queue(self, pid: u64, capacity: Capacity, holding: SteppedCharge) -> DetachableQueue {
        let retention = Retention {
            pid,
            kept_bytes: self.kept_bytes,
            log_bytes: self.log_bytes,
            observer: self.observer,
        };
        DetachableQueue::new(capacity, holding, retention)
    }
}
