//! The queue between a process and whoever reads its events.
//!
//! Its writer is always the same, the program. Of readers there are two kinds, and a queue for each: one who is there
//! from the beginning to the end ([`PipeQueue`]), and many who come and go ([`DetachableQueue`]). A child has none: its
//! events become those of its parent ([`PassedOn`]). In front of each stands what makes whole lines of standard error
//! ([`WholeLines`]).

mod detachable;
mod line;
mod passed_on;
mod piped;
mod whole_lines;

use std::fmt::Debug;
use std::sync::Arc;

use tokio::sync::futures::Notified;

pub(crate) use self::detachable::{DetachableQueue, Next, NotAttached, Retention};
pub(crate) use self::passed_on::PassedOn;
pub(crate) use self::piped::PipeQueue;
pub(crate) use self::whole_lines::WholeLines;
use crate::Error;
use crate::event::{Event, EventKind};

/// How much a queue between a program and its client holds before its writer waits or is refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity {
    /// Events, or messages.
    pub(crate) entries: usize,
    /// Bytes of what the entries carry. One entry may go beyond it, so that whatever a call may carry can be sent.
    pub(crate) bytes: usize,
}

/// What writes events of a process.
pub(crate) trait EventQueue: Debug + Send + Sync {
    /// True when an event of that kind may be added without waiting.
    fn has_room(&self, kind: EventKind) -> bool;

    /// Becomes ready when room was made after the call.
    fn room_made(&self) -> Notified<'_>;

    /// Adds an event that is not the last without waiting; the caller has made sure of room. Where nobody will ever
    /// read it is dropped.
    ///
    /// # Errors
    /// `limit-engine-memory` where the user of the process has no room for it.
    fn push(&self, event: Event) -> Result<(), Error>;

    /// Adds the last event, whatever the queue holds; where the user of the process has no room for it, an error that
    /// says so. Later events are dropped.
    fn finish(&self, event: Arc<Event>);
}

/// Waits until a queue has room for an event of that kind.
pub(crate) async fn writable(queue: &dyn EventQueue, kind: EventKind) {
    loop {
        let room = queue.room_made();
        if queue.has_room(kind) {
            return;
        }
        room.await;
    }
}

/// Adds an event that is not the last and waits for room first.
///
/// # Errors
/// Those of [`EventQueue::push`].
pub(crate) async fn send(queue: &dyn EventQueue, event: Event) -> Result<(), Error> {
    writable(queue, event.kind()).await;
    queue.push(event)
}

#[cfg(test)]
mod tests;
