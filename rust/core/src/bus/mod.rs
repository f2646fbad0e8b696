//! Messages between programs of one user: queues, from which each message is taken once, and broadcasts, of which each
//! subscription gets a copy.
//!
//! A queue keeps its messages in the order in which they were pushed, and they are taken in that order, whoever takes
//! them. A pull waits for its turn. When there is a message for it, it is *promised* one; the message leaves the queue
//! only when the pull takes it. So a pull that is given up at any time loses nothing.
//!
//! | a push | becomes | when |
//! |---|---|---|
//! | new | queued | the queue has room |
//! | new | waiting | the queue is full |
//! | waiting | queued | a message was taken, and no push waits longer |
//! | waiting | refused | it is withdrawn |
//!
//! | a pull | becomes | when |
//! |---|---|---|
//! | new | promised | there is a message that is promised to nobody |
//! | new | waiting | there is none |
//! | waiting | promised | a message comes, or a promise is given up, and no pull waits longer |
//! | promised | done | it takes the first message |
//! | either | gone | it is given up |
//!
//! A subscription holds its copies in the same way, and is bounded by dropping the oldest, which it counts. Nothing
//! here waits or rings: what a caller leaves as its bell is handed back when it should be told.

mod limits;
mod line;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod modelled_bus;
mod stats;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use limits::BESIDE_BYTES;
pub use limits::{BusLimits, BusSettingNames};
use line::{Line, Message};
pub use stats::{BusStats, TopicStats};

use crate::errors::{Error, Result};
use crate::slab::Slab;

/// The topics of one user. `M` is what messages carry, `B` what somebody who waits is told by.
#[derive(Debug)]
pub struct Bus<M, B> {
    limits: BusLimits,
    names: HashMap<Box<str>, u64>,
    topics: Slab<Topic<M, B>>,
    subscriptions: Slab<Subscription<M, B>>,
    /// What queues and the pushes that wait hold together, each message with what it holds beside.
    held_bytes: usize,
    stats: BusStats,
}

#[derive(Debug)]
struct Topic<M, B> {
    name: Box<str>,
    queue: Line<M, B>,
    /// Pushes that wait for room, by their numbers. While there are some the queue is full.
    pushes: BTreeMap<u64, Push<M, B>>,
    n_waited: u64,
    subscriptions: Vec<u64>,
}

#[derive(Debug)]
struct Push<M, B> {
    message: Message<M>,
    bell: B,
}

#[derive(Debug)]
struct Subscription<M, B> {
    topic: u64,
    is_open: bool,
    line: Line<M, B>,
    n_lagged: u64,
}

/// What became of a push.
#[derive(Debug)]
pub enum Pushed<B> {
    /// The message is in the queue. Whoever it is promised to has to be told.
    Queued(Option<B>),
    /// It waits for room. The bell of the push rings when it is in the queue.
    Waiting(PushTicket),
}

/// A push that waits. It is withdrawn, or its bell has rung.
#[derive(Debug)]
pub struct PushTicket {
    topic: u64,
    number: u64,
}

/// A place among those who wait for the messages of a queue or a subscription. It is used once, to take or to give up.
#[derive(Debug)]
pub struct PullTicket {
    source: Source,
    number: u64,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Queue(u64),
    Subscription(u64),
}

/// A subscription, until it is forgotten.
#[derive(Debug)]
pub struct SubscriptionId(u64);

impl<M, B> Bus<M, B> {
    /// One without topics.
    pub fn new(limits: BusLimits) -> Self {
        Self {
            limits,
            names: HashMap::new(),
            topics: Slab::new(),
            subscriptions: Slab::new(),
            held_bytes: 0,
            stats: BusStats::default(),
        }
    }

    /// Adds a message to the queue of a topic, or has it wait for room.
    ///
    /// # Errors
    /// `invalid-argument` for a topic that is not one, `limit-message` for a message that is too long,
    /// `limit-resources` where there are too many topics, `queue-full` where all queues of the user together hold too
    /// much.
    pub fn push(
        &mut self,
        topic: &str,
        payload: M,
        n_bytes: usize,
        bell: impl FnOnce() -> B,
    ) -> Result<Pushed<B>> {
        self.limits.check_message(n_bytes)?;
        let cost = n_bytes + BESIDE_BYTES;
        self.limits.check_room(self.held_bytes, cost)?;
        let id = self.topic(topic)?;
        self.held_bytes += cost;
        let message = Message { payload, n_bytes };
        let topic = self.topics.get_mut(id).ok_or_else(no_topic)?;
        if !self.limits.is_queue_full(&topic.queue) {
            self.stats.n_pushed += 1;
            return Ok(Pushed::Queued(topic.queue.add(message)));
        }
        let number = topic.n_waited;
        topic.n_waited += 1;
        let bell = bell();
        topic.pushes.insert(number, Push { message, bell });
        Ok(Pushed::Waiting(PushTicket { topic: id, number }))
    }

    /// Takes a push back that has waited long enough; false where its message is in the queue by now.
    pub fn withdraw(&mut self, ticket: PushTicket) -> bool {
        let PushTicket { topic, number } = ticket;
        let found = self.topics.get_mut(topic);
        let Some(push) = found.and_then(|topic| topic.pushes.remove(&number)) else {
            return false;
        };
        self.held_bytes -= push.message.n_bytes + BESIDE_BYTES;
        self.stats.n_refused += 1;
        self.forget_if_idle(topic);
        true
    }

    /// A place among those who wait for messages of the queue of a topic. A bell is asked for where it has to wait.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn pull(&mut self, topic: &str, bell: impl FnOnce() -> B) -> Result<PullTicket> {
        let id = self.topic(topic)?;
        let topic = self.topics.get_mut(id).ok_or_else(no_topic)?;
        let number = topic.queue.ask(bell);
        let source = Source::Queue(id);
        Ok(PullTicket { source, number })
    }

    /// Takes the message that was promised. None: the subscription is over. Who gets room, and who is promised what
    /// came in, has to be told.
    pub fn take(&mut self, ticket: PullTicket) -> (Option<M>, Vec<B>) {
        match ticket.source {
            Source::Queue(id) => {
                let Some(topic) = self.topics.get_mut(id) else {
                    return (None, Vec::new());
                };
                let Some(message) = topic.queue.take() else {
                    return (None, Vec::new());
                };
                self.held_bytes -= message.n_bytes + BESIDE_BYTES;
                self.stats.n_pulled += 1;
                let bells = self.admit(id);
                self.forget_if_idle(id);
                (Some(message.payload), bells)
            }
            Source::Subscription(id) => {
                let found = self.subscriptions.get_mut(id);
                let message = found
                    .filter(|subscription| subscription.is_open)
                    .and_then(|subscription| subscription.line.take());
                self.stats.n_received += u64::from(message.is_some());
                (message.map(|message| message.payload), Vec::new())
            }
        }
    }

    /// Gives a place up. Who is promised a message in its stead has to be told.
    pub fn give_up(&mut self, ticket: PullTicket) -> Option<B> {
        let PullTicket { source, number } = ticket;
        match source {
            Source::Queue(id) => {
                let bell = self.topics.get_mut(id)?.queue.give_up(number);
                self.forget_if_idle(id);
                bell
            }
            Source::Subscription(id) => {
                let subscription = self.subscriptions.get_mut(id)?;
                if !subscription.is_open {
                    return None;
                }
                subscription.line.give_up(number)
            }
        }
    }

    /// Gives every subscription of a topic a copy. Who is promised one has to be told.
    ///
    /// # Errors
    /// `invalid-argument` for a topic that is not one, `limit-message` for a message that is too long.
    pub fn broadcast(&mut self, topic: &str, payload: &M, n_bytes: usize) -> Result<Vec<B>>
    where
        M: Clone,
    {
        self.limits.check_topic(topic)?;
        self.limits.check_message(n_bytes)?;
        self.stats.n_broadcasts += 1;
        let found = self.names.get(topic).and_then(|id| self.topics.get(*id));
        let mut bells = Vec::new();
        for id in found.map_or(&[][..], |topic| &topic.subscriptions) {
            let Some(subscription) = self.subscriptions.get_mut(*id) else {
                continue;
            };
            let line = &mut subscription.line;
            self.stats.n_copies += 1;
            bells.extend(line.add(Message {
                payload: payload.clone(),
                n_bytes,
            }));
            while self.limits.is_subscription_over(line) && line.drop_oldest() {
                subscription.n_lagged += 1;
                self.stats.n_lagged += 1;
            }
        }
        Ok(bells)
    }

    /// A subscription to what is broadcast from now on.
    ///
    /// # Errors
    /// `invalid-argument` for a topic that is not one, `limit-resources` where there are too many topics or
    /// subscriptions.
    pub fn subscribe(&mut self, topic: &str) -> Result<SubscriptionId> {
        self.limits.check_subscriptions(self.subscriptions.len())?;
        let topic = self.topic(topic)?;
        let id = self.subscriptions.insert(Subscription {
            topic,
            is_open: true,
            line: Line::new(),
            n_lagged: 0,
        });
        if let Some(topic) = self.topics.get_mut(topic) {
            topic.subscriptions.push(id);
        }
        Ok(SubscriptionId(id))
    }

    /// A place among those who wait for copies of a subscription. A bell is asked for where it has to wait, which it
    /// has not where the subscription is over.
    pub fn next(&mut self, subscription: &SubscriptionId, bell: impl FnOnce() -> B) -> PullTicket {
        let found = self.subscriptions.get_mut(subscription.0);
        let open = found.filter(|subscription| subscription.is_open);
        PullTicket {
            source: Source::Subscription(subscription.0),
            number: open.map_or(0, |subscription| subscription.line.ask(bell)),
        }
    }

    /// The first copy that is promised to nobody, at once; none where there is none.
    pub fn get(&mut self, subscription: &SubscriptionId) -> Option<M> {
        let message = self
            .subscriptions
            .get_mut(subscription.0)?
            .line
            .take_free()?;
        self.stats.n_received += 1;
        Some(message.payload)
    }

    /// True where [`Self::get`] would give a copy, and where the subscription is over.
    pub fn is_readable(&self, subscription: &SubscriptionId) -> bool {
        let found = self.subscriptions.get(subscription.0);
        found.is_none_or(|subscription| !subscription.is_open || subscription.line.has_free())
    }

    /// Copies that the subscription has dropped because it held too much.
    pub fn n_lagged(&self, subscription: &SubscriptionId) -> u64 {
        let found = self.subscriptions.get(subscription.0);
        found.map_or(0, |subscription| subscription.n_lagged)
    }

    /// Ends a subscription: what it holds is discarded and counted. Whoever waits for it has to be told. Again it does
    /// nothing.
    pub fn unsubscribe(&mut self, subscription: &SubscriptionId) -> Vec<B> {
        let id = subscription.0;
        let Some(subscription) = self.subscriptions.get_mut(id) else {
            return Vec::new();
        };
        if !std::mem::replace(&mut subscription.is_open, false) {
            return Vec::new();
        }
        let line = std::mem::replace(&mut subscription.line, Line::new());
        self.stats.n_discarded += line.n_messages() as u64;
        let topic_id = subscription.topic;
        if let Some(topic) = self.topics.get_mut(topic_id)
            && let Some(place) = topic.subscriptions.iter().position(|other| *other == id)
        {
            topic.subscriptions.swap_remove(place);
        }
        self.forget_if_idle(topic_id);
        line.into_bells()
    }

    /// Ends a subscription that nobody will ask again. Whoever waits for it has to be told.
    pub fn forget(&mut self, subscription: SubscriptionId) -> Vec<B> {
        let bells = self.unsubscribe(&subscription);
        self.subscriptions.remove(subscription.0);
        bells
    }

    /// Drops the messages of the queue of a topic that are promised to nobody, the oldest first, and counts them; how
    /// many those were. What waited for room comes in behind them. Who got room, and who is promised what came in, has
    /// to be told.
    pub fn discard(&mut self, topic: &str) -> (u64, Vec<B>) {
        let Some(id) = self.names.get(topic).copied() else {
            return (0, Vec::new());
        };
        let mut n_dropped = 0;
        while let Some(message) = self
            .topics
            .get_mut(id)
            .and_then(|topic| topic.queue.take_free())
        {
            self.held_bytes -= message.n_bytes + BESIDE_BYTES;
            n_dropped += 1;
        }
        self.stats.n_dropped += n_dropped;
        let bells = self.admit(id);
        self.forget_if_idle(id);
        (n_dropped, bells)
    }

    /// Each topic in use, in the order of their names.
    pub fn topics(&self) -> Vec<TopicStats> {
        let stats = |name: &str, id: u64| {
            let topic = self.topics.get(id)?;
            Some(TopicStats {
                name: name.to_owned(),
                n_queued: topic.queue.n_messages() as u64,
                queued_bytes: topic.queue.n_bytes() as u64,
                n_waiting_pushes: topic.pushes.len() as u64,
                n_waiting_pulls: topic.queue.n_waiting() as u64,
                n_subscriptions: topic.subscriptions.len() as u64,
            })
        };
        let mut topics: Vec<TopicStats> = self
            .names
            .iter()
            .filter_map(|(name, id)| stats(name, *id))
            .collect();
        topics.sort_by(|one, other| one.name.cmp(&other.name));
        topics
    }

    /// True where nothing is held and nobody waits.
    pub fn is_idle(&self) -> bool {
        self.names.is_empty() && self.subscriptions.len() == 0
    }

    /// What happened so far, and what there is.
    pub fn stats(&self) -> BusStats {
        let mut stats = self.stats;
        stats.n_topics = self.names.len() as u64;
        for topic in self.names.values().filter_map(|id| self.topics.get(*id)) {
            stats.n_queued += topic.queue.n_messages() as u64;
            stats.queued_bytes += topic.queue.n_bytes() as u64;
            stats.n_waiting_pushes += topic.pushes.len() as u64;
            stats.n_waiting_pulls += topic.queue.n_waiting() as u64;
            let subscriptions = topic.subscriptions.iter();
            for subscription in subscriptions.filter_map(|id| self.subscriptions.get(*id)) {
                stats.n_subscriptions += 1;
                stats.n_held += subscription.line.n_messages() as u64;
            }
        }
        stats
    }

    /// The topic of that name, which is made where there is none.
    fn topic(&mut self, name: &str) -> Result<u64> {
        if let Some(id) = self.names.get(name) {
            return Ok(*id);
        }
        self.limits.check_topic(name)?;
        self.limits.check_topics(self.names.len())?;
        let name: Box<str> = name.into();
        let id = self.topics.insert(Topic {
            name: name.clone(),
            queue: Line::new(),
            pushes: BTreeMap::new(),
            n_waited: 0,
            subscriptions: Vec::new(),
        });
        self.names.insert(name, id);
        Ok(id)
    }

    /// Lets pushes that wait into a queue while it has room.
    fn admit(&mut self, id: u64) -> Vec<B> {
        let mut bells = Vec::new();
        let Some(topic) = self.topics.get_mut(id) else {
            return bells;
        };
        while !self.limits.is_queue_full(&topic.queue)
            && let Some((_, push)) = topic.pushes.pop_first()
        {
            self.stats.n_pushed += 1;
            bells.push(push.bell);
            bells.extend(topic.queue.add(push.message));
        }
        bells
    }

    /// A topic is there as long as somebody has something of it.
    fn forget_if_idle(&mut self, id: u64) {
        let found = self.topics.get(id);
        let is_idle = found.is_some_and(|topic| {
            topic.queue.is_idle() && topic.pushes.is_empty() && topic.subscriptions.is_empty()
        });
        if is_idle && let Some(topic) = self.topics.remove(id) {
            self.names.remove(&topic.name);
        }
    }
}

fn no_topic() -> Error {
    Error::internal("a topic that was found is not there")
}
