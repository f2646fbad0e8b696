//! Machines that make events of what the model says, and the queue in which those wait.

use std::collections::VecDeque;
use std::sync::Arc;

use super::lexer::{Item, Markers};

/// An event that holds text.
pub(crate) trait Weigh {
    /// Bytes of its text.
    fn n_bytes(&self) -> usize;

    /// Takes another one behind it into itself, where both are one; gives it back where they are not.
    fn joined(&mut self, next: Self) -> Option<Self>
    where
        Self: Sized;
}

/// Events that were not given yet.
#[derive(Debug)]
pub(crate) struct Queue<E> {
    events: VecDeque<E>,
    n_bytes: usize,
}

impl<E> Default for Queue<E> {
    fn default() -> Self {
        Self {
            events: VecDeque::new(),
            n_bytes: 0,
        }
    }
}

impl<E: Weigh> Queue<E> {
    /// Adds an event.
    pub(crate) fn push(&mut self, event: E) {
        self.n_bytes += event.n_bytes();
        let event = match self.events.back_mut() {
            Some(last) => last.joined(event),
            None => Some(event),
        };
        self.events.extend(event);
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// For how many there is room.
    pub(crate) fn capacity(&self) -> usize {
        self.events.capacity()
    }

    /// Bytes of their texts.
    pub(crate) fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Takes the oldest one.
    pub(crate) fn pop(&mut self) -> Option<E> {
        let event = self.events.pop_front()?;
        self.n_bytes -= event.n_bytes();
        Some(event)
    }
}

/// Makes events of what the model says.
pub(crate) trait Machine {
    /// What it makes.
    type Event: Weigh;

    /// The markers that it looks for.
    fn markers(&self) -> &Arc<Markers>;

    /// Takes an item.
    fn take(&mut self, item: Item<'_>, queue: &mut Queue<Self::Event>);

    /// Ends the turn. The next one begins in the same way.
    fn end(&mut self, queue: &mut Queue<Self::Event>);

    /// Bytes of text that it holds.
    fn n_bytes(&self) -> usize;

    /// The most events that it makes of so many markers, with texts of so many bytes around them, and of the end of the
    /// turn.
    fn most_events(&self, n_bytes: usize, n_markers: usize) -> usize {
        let _ = n_bytes;
        3 * n_markers
    }

    /// Forgets the turn.
    fn reset(&mut self);
}
