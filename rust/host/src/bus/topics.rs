//! The topics of one user, which programs share: one lock, and bells that ring when it is free again.
//!
//! This file synchronises by nothing but `crate::sync`, so that `rust/interleavings` can put a model checker in its
//! place.

use pie_core::Error;
use pie_core::bus::{
    Bus, BusLimits, BusStats, PullTicket, PushTicket, Pushed, SubscriptionId, TopicStats,
};

use crate::sync::{Mutex, lock};

/// How somebody who waits is told.
pub(crate) trait Bell {
    /// Tells them. They may have gone.
    fn ring(self);
}

/// The topics of one user. `M` is what messages carry.
#[derive(Debug)]
pub(crate) struct Topics<M, B> {
    bus: Mutex<Bus<M, B>>,
}

impl<M: Clone, B: Bell> Topics<M, B> {
    /// None yet.
    pub(crate) fn new(limits: BusLimits) -> Self {
        Self {
            bus: Mutex::new(Bus::new(limits)),
        }
    }

    /// As [`Bus::push`]; none where the message is in the queue.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn push(
        &self,
        topic: &str,
        payload: M,
        n_bytes: usize,
        bell: impl FnOnce() -> B,
    ) -> Result<Option<PushTicket>, Error> {
        let pushed = lock(&self.bus).push(topic, payload, n_bytes, bell)?;
        Ok(match pushed {
            Pushed::Queued(bell) => {
                ring(bell);
                None
            }
            Pushed::Waiting(ticket) => Some(ticket),
        })
    }

    /// As [`Bus::withdraw`].
    pub(crate) fn withdraw(&self, ticket: PushTicket) -> bool {
        lock(&self.bus).withdraw(ticket)
    }

    /// As [`Bus::pull`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn pull(&self, topic: &str, bell: impl FnOnce() -> B) -> Result<PullTicket, Error> {
        lock(&self.bus).pull(topic, bell)
    }

    /// As [`Bus::take`].
    pub(crate) fn take(&self, ticket: PullTicket) -> Option<M> {
        let (message, bells) = lock(&self.bus).take(ticket);
        ring(bells);
        message
    }

    /// As [`Bus::give_up`].
    pub(crate) fn give_up(&self, ticket: PullTicket) {
        let bell = lock(&self.bus).give_up(ticket);
        ring(bell);
    }

    /// As [`Bus::broadcast`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn broadcast(&self, topic: &str, payload: &M, n_bytes: usize) -> Result<(), Error> {
        let bells = lock(&self.bus).broadcast(topic, payload, n_bytes)?;
        ring(bells);
        Ok(())
    }

    /// As [`Bus::subscribe`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn subscribe(&self, topic: &str) -> Result<SubscriptionId, Error> {
        lock(&self.bus).subscribe(topic)
    }

    /// As [`Bus::next`].
    pub(crate) fn next(
        &self,
        subscription: &SubscriptionId,
        bell: impl FnOnce() -> B,
    ) -> PullTicket {
        lock(&self.bus).next(subscription, bell)
    }

    /// As [`Bus::get`].
    pub(crate) fn get(&self, subscription: &SubscriptionId) -> Option<M> {
        lock(&self.bus).get(subscription)
    }

    /// As [`Bus::n_lagged`].
    pub(crate) fn n_lagged(&self, subscription: &SubscriptionId) -> u64 {
        lock(&self.bus).n_lagged(subscription)
    }

    /// As [`Bus::unsubscribe`].
    pub(crate) fn unsubscribe(&self, subscription: &SubscriptionId) {
        let bells = lock(&self.bus).unsubscribe(subscription);
        ring(bells);
    }

    /// As [`Bus::forget`].
    pub(crate) fn forget(&self, subscription: SubscriptionId) {
        let bells = lock(&self.bus).forget(subscription);
        ring(bells);
    }

    /// As [`Bus::discard`].
    pub(crate) fn discard(&self, topic: &str) -> u64 {
        let (n_dropped, bells) = lock(&self.bus).discard(topic);
        ring(bells);
        n_dropped
    }

    /// As [`Bus::topics`].
    pub(crate) fn topics(&self) -> Vec<TopicStats> {
        lock(&self.bus).topics()
    }

    /// As [`Bus::is_idle`].
    pub(crate) fn is_idle(&self) -> bool {
        lock(&self.bus).is_idle()
    }

    /// As [`Bus::stats`].
    pub(crate) fn stats(&self) -> BusStats {
        lock(&self.bus).stats()
    }
}

fn ring<B: Bell>(bells: impl IntoIterator<Item = B>) {
    for bell in bells {
        bell.ring();
    }
}
