//! What a process sends to other programs of its user.

use std::sync::Arc;

use super::record::ProcessRecord;
use crate::Error;
use crate::bus::{Bus, UserTopics};

/// The way of a process to the topics of its user.
pub(crate) struct Mail {
    bus: Arc<Bus>,
    record: Arc<ProcessRecord>,
    /// Held from the beginning: while a program of the user lives, what waits for it stays.
    topics: Arc<UserTopics>,
}

impl Mail {
    /// That of a new process.
    pub(crate) fn new(bus: Arc<Bus>, record: Arc<ProcessRecord>) -> Self {
        Self {
            topics: bus.of(&record.username),
            bus,
            record,
        }
    }

    /// The topics of the user of the process.
    pub(crate) const fn topics(&self) -> &Arc<UserTopics> {
        &self.topics
    }

    /// As [`Bus::push`].
    ///
    /// # Errors
    /// As there.
    pub(crate) async fn push(&self, topic: &str, message: String) -> Result<(), Error> {
        let account = &self.record.account;
        let pushed = self.bus.push_to(&self.topics, account, topic, message);
        pushed.await
    }

    /// As [`Bus::broadcast`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn broadcast(&self, topic: &str, message: String) -> Result<(), Error> {
        let account = &self.record.account;
        self.bus.broadcast(&self.topics, account, topic, message)
    }
}
