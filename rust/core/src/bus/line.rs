//! Messages in the order in which they came, and who waits for them.

use std::collections::{BTreeMap, VecDeque};

#[derive(Debug)]
pub(super) struct Message<M> {
    pub(super) payload: M,
    pub(super) n_bytes: usize,
}

/// Messages in the order in which they came. Where somebody waits, every message is promised.
#[derive(Debug)]
pub(super) struct Line<M, B> {
    messages: VecDeque<Message<M>>,
    n_bytes: usize,
    /// How many of the messages are promised to somebody who has not taken one yet.
    n_promised: usize,
    /// By the order in which they asked.
    waiting: BTreeMap<u64, B>,
    n_asked: u64,
}

impl<M, B> Line<M, B> {
    pub(super) const fn new() -> Self {
        Self {
            messages: VecDeque::new(),
            n_bytes: 0,
            n_promised: 0,
            waiting: BTreeMap::new(),
            n_asked: 0,
        }
    }

    pub(super) fn n_messages(&self) -> usize {
        self.messages.len()
    }

    pub(super) const fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    pub(super) fn n_waiting(&self) -> usize {
        self.waiting.len()
    }

    /// True where it holds nothing and nobody waits.
    pub(super) fn is_idle(&self) -> bool {
        self.messages.is_empty() && self.waiting.is_empty() && self.n_promised == 0
    }

    /// True where there is a message that is promised to nobody.
    pub(super) fn has_free(&self) -> bool {
        self.messages.len() > self.n_promised
    }

    /// Adds a message behind the others. It is promised to the one who waits longest, who has to be told.
    pub(super) fn add(&mut self, message: Message<M>) -> Option<B> {
        self.n_bytes += message.n_bytes;
        self.messages.push_back(message);
        self.promise()
    }

    /// The number of a new place. Where no message is promised to it at once, it waits.
    pub(super) fn ask(&mut self, bell: impl FnOnce() -> B) -> u64 {
        let number = self.n_asked;
        self.n_asked += 1;
        if self.has_free() {
            self.n_promised += 1;
        } else {
            self.waiting.insert(number, bell());
        }
        number
    }

    /// Takes the first message, which was promised.
    pub(super) fn take(&mut self) -> Option<Message<M>> {
        debug_assert!(
            self.n_promised > 0 && self.n_promised <= self.messages.len(),
            "who takes was promised a message"
        );
        self.n_promised = self.n_promised.saturating_sub(1);
        self.pop()
    }

    /// Takes the first message where one is promised to nobody.
    pub(super) fn take_free(&mut self) -> Option<Message<M>> {
        if self.has_free() { self.pop() } else { None }
    }

    /// Gives a place up. What was promised to it is promised to the one who waits longest, who has to be told.
    pub(super) fn give_up(&mut self, number: u64) -> Option<B> {
        if self.waiting.remove(&number).is_some() {
            return None;
        }
        self.n_promised = self.n_promised.saturating_sub(1);
        self.promise()
    }

    /// Drops the first message, where more than one and more than were promised stay; false where none may go.
    pub(super) fn drop_oldest(&mut self) -> bool {
        self.messages.len() > self.n_promised.max(1) && self.pop().is_some()
    }

    /// Whoever waits.
    pub(super) fn into_bells(self) -> Vec<B> {
        self.waiting.into_values().collect()
    }

    fn promise(&mut self) -> Option<B> {
        if !self.has_free() {
            return None;
        }
        let (_, bell) = self.waiting.pop_first()?;
        self.n_promised += 1;
        Some(bell)
    }

    fn pop(&mut self) -> Option<Message<M>> {
        let message = self.messages.pop_front()?;
        self.n_bytes -= message.n_bytes;
        Some(message)
    }
}
