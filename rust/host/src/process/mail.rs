//! What a process sends to other programs of its user.

use std::sync::Arc;

use super::record::ProcessRecord;
use crate::Error;
use crate::bus::{Bus, UserTopics};

/// The way of a process to the topics of its user.
pub(crate) struct Mail {
    bus: Arc<Bus>,
    record: Arc<ProcessRecord>,
    topics: Option<Arc<UserTopics>>,
}

impl Mail {
    /// That of a new process.
    pub(crate) fn new(bus: Arc<Bus>, record: Arc<ProcessRecord>) -> Self {
        Self {
            bus,
            record,
            topics: None,
        }
    }

    /// The topics of the user of the process.
    pub(crate) fn topics(&mut self) -> &Arc<UserTopics> {
        let (bus, record) = (&self.bus, &self.record);
        self.topics.get_or_insert_with(|| bus.of(&record.username))
    }

    /// As [`Bus::push`].
    ///
    /// # Errors
    /// As there.
    pub(crate) async fn push(&mut self, topic: &str, message: String) -> Result<(), Error> {
        let topics = self.topics().clone();
        let account = &self.record.account;
        self.bus.push_to(&topics, account, topic, message).await
    }

    /// As [`Bus::broadcast`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn broadcast(&mut self, topic: &str, message: String) -> Result<(), Error> {
        let topics = self.topics().clone();
        let account = &self.record.account;
        self.bus.broadcast(&topics, account, topic, message)
    }
}
