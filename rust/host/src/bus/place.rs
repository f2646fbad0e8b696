//! Places in the lines of queues and subscriptions, as futures of programs. A place that is dropped is given up.

#![expect(
    unreachable_pub,
    reason = "the generated bindings re-export the types behind handles, which must be public for that"
)]

use std::sync::Arc;

use pie_core::bus::{PullTicket, PushTicket, SubscriptionId};
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::Pollable;

use super::parcel::Parcel;
use super::ring::{Ring, Rung, UserTopics};
use crate::Error;
use crate::futures::{Future, Operation, WaitsFor};

/// A push that waits for room. It is withdrawn when it is dropped.
pub(super) struct Waiting<'a> {
    topics: &'a UserTopics,
    ticket: Option<PushTicket>,
}

impl<'a> Waiting<'a> {
    pub(super) fn new(topics: &'a UserTopics, ticket: PushTicket) -> Self {
        Self {
            topics,
            ticket: Some(ticket),
        }
    }

    /// Takes the push back; false where its message is in the queue.
    pub(super) fn withdraw(&mut self) -> bool {
        let ticket = self.ticket.take();
        ticket.is_some_and(|ticket| self.topics.withdraw(ticket))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.withdraw();
    }
}

/// A place in a line, which is given up when this is dropped.
#[derive(Debug)]
struct HeldTicket {
    topics: Arc<UserTopics>,
    /// The name of its topic.
    topic: Arc<str>,
    /// None once it was used.
    ticket: Option<PullTicket>,
}

impl HeldTicket {
    fn take(&mut self) -> Option<Arc<Parcel>> {
        self.topics.take(self.ticket.take()?)
    }

    fn give_up(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.topics.give_up(ticket);
        }
    }
}

impl Drop for HeldTicket {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// A pull of a queue, as the source of a future.
#[derive(Debug)]
pub struct Pull(HeldTicket);

/// The future of the next message of a queue. What is wrong with the topic is its answer.
pub(crate) fn pull(topics: &Arc<UserTopics>, topic: &str) -> Future<Pull> {
    let mut rung = None;
    let asked = topics.pull(topic, || {
        let (ring, heard) = Ring::new();
        rung = Some(heard);
        ring
    });
    let (ticket, refused) = match asked {
        Ok(ticket) => (Some(ticket), Ok(())),
        Err(error) => (None, Err(error)),
    };
    let place = HeldTicket {
        topics: topics.clone(),
        topic: topic.into(),
        ticket,
    };
    future(Pull(place), rung, refused)
}

impl Operation for Pull {
    type Raw = ();
    type Answer = String;

    fn finish(&mut self, (): ()) -> Result<String, Error> {
        let parcel = self.0.take();
        let parcel = parcel.ok_or_else(|| Error::internal("a promised message is not there"))?;
        Ok(parcel.text())
    }

    fn abandon(&mut self, _: Option<Result<(), Error>>) {
        self.0.give_up();
    }

    fn waits_for(&self) -> Option<WaitsFor> {
        Some(WaitsFor::Message(self.0.topic.clone()))
    }
}

/// A future whose turn comes when the bell rings, or has come where nobody waits for one.
fn future<S: Operation<Raw = ()>>(
    source: S,
    rung: Option<Rung>,
    at_once: Result<(), Error>,
) -> Future<S> {
    match rung {
        Some(rung) => Future::new(source, rung),
        None => Future::settled(source, at_once),
    }
}

/// A wait for a copy of a subscription, as the source of a future: none when the subscription is over.
#[derive(Debug)]
pub struct Next(HeldTicket);

impl Operation for Next {
    type Raw = ();
    type Answer = Option<String>;

    fn finish(&mut self, (): ()) -> Result<Option<String>, Error> {
        Ok(self.0.take().map(Parcel::text))
    }

    fn abandon(&mut self, _: Option<Result<(), Error>>) {
        self.0.give_up();
    }

    fn waits_for(&self) -> Option<WaitsFor> {
        Some(WaitsFor::Broadcast(self.0.topic.clone()))
    }
}

/// A subscription that a program holds. Dropping it ends it.
#[derive(Debug)]
pub struct SubscriptionHandle {
    topics: Arc<UserTopics>,
    /// The name of its topic.
    topic: Arc<str>,
    /// There until it is dropped.
    id: Option<SubscriptionId>,
}

impl SubscriptionHandle {
    /// Subscribes.
    ///
    /// # Errors
    /// `invalid-argument`, `limit-resources`.
    pub(crate) fn new(topics: &Arc<UserTopics>, topic: &str) -> Result<Self, Error> {
        Ok(Self {
            id: Some(topics.subscribe(topic)?),
            topics: topics.clone(),
            topic: topic.into(),
        })
    }

    /// The future of the next copy.
    pub(crate) fn next(&self) -> Future<Next> {
        let (place, rung) = self.place();
        future(Next(place), rung, Ok(()))
    }

    /// A copy, where there is one.
    pub(crate) fn get(&self) -> Option<String> {
        self.topics.get(self.id.as_ref()?).map(Parcel::text)
    }

    /// What whoever waits for a copy waits for.
    pub(crate) fn waits_for(&self) -> WaitsFor {
        WaitsFor::Broadcast(self.topic.clone())
    }

    /// Copies that were dropped because too many waited.
    pub(crate) fn n_lagged(&self) -> u64 {
        let id = self.id.as_ref();
        id.map_or(0, |id| self.topics.n_lagged(id))
    }

    /// Ends it.
    pub(crate) fn unsubscribe(&self) {
        if let Some(id) = &self.id {
            self.topics.unsubscribe(id);
        }
    }

    /// A place in its line, and what to wait for where it is not its turn at once.
    fn place(&self) -> (HeldTicket, Option<Rung>) {
        let mut rung = None;
        let ticket = self.id.as_ref().map(|id| {
            self.topics.next(id, || {
                let (ring, heard) = Ring::new();
                rung = Some(heard);
                ring
            })
        });
        let place = HeldTicket {
            topics: self.topics.clone(),
            topic: self.topic.clone(),
            ticket,
        };
        (place, rung)
    }
}

#[async_trait]
impl Pollable for SubscriptionHandle {
    /// Waits until there is a copy, or the subscription is over. The place is given up then: the copy waits for whoever
    /// asks.
    async fn ready(&mut self) {
        let (place, rung) = self.place();
        if let Some(rung) = rung {
            // A bell is dropped unrung with the bus alone.
            drop(rung.await);
        }
        drop(place);
    }
}

impl Drop for SubscriptionHandle {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.topics.forget(id);
        }
    }
}
