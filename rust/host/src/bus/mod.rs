//! Messages between programs: the topics of every user, and what waits for them.

mod parcel;
pub(crate) mod place;
mod ring;
mod topics;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use parcel::Parcel;
use pie_core::bus::{BusLimits, BusStats, TopicStats};
use ring::Ring;
pub(crate) use ring::UserTopics;
use topics::Topics;
use wasmtime_wasi::p2::Pollable;

use crate::Error;
use crate::budget::Account;
use crate::futures::Awaited;
use crate::sync::lock;

/// Users beyond whom those are forgotten that hold nothing.
const MAX_IDLE: usize = 256;

/// What programs send to each other by topics. Those of each user are apart. Several hosts may share one.
pub struct Bus {
    limits: BusLimits,
    /// How long a push waits for room.
    push_wait: Duration,
    /// How long messages wait for a user who is not there.
    idle: Duration,
    users: Mutex<Users>,
}

#[derive(Default)]
struct Users {
    topics: HashMap<String, OfUser>,
    /// What those have counted that were forgotten.
    forgotten: BusStats,
}

struct OfUser {
    topics: Arc<UserTopics>,
    /// Since when nobody holds the topics; none: it is not known that nobody does.
    untouched: Option<Instant>,
}

impl fmt::Debug for Bus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Bus")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Bus {
    /// One within these bounds, where a push waits so long for room, and messages so long for a user who is not there.
    pub fn new(limits: BusLimits, push_wait: Duration, idle: Duration) -> Self {
        Self {
            limits,
            push_wait,
            idle,
            users: Mutex::default(),
        }
    }

    /// What happened so far and what there is, for all users.
    pub fn stats(&self) -> BusStats {
        let users = lock(&self.users);
        let mut stats = users.forgotten;
        for of in users.topics.values() {
            stats.add(&of.topics.stats());
        }
        stats
    }

    /// The topics that are in use, with whose they are: of a user, or of all.
    pub fn topics(&self, of: Option<&str>) -> Vec<(String, TopicStats)> {
        let users = lock(&self.users);
        let each = users.topics.iter();
        let each = each.filter(|(user, _)| of.is_none_or(|of| of == *user));
        let each = each.flat_map(|(user, of)| {
            let topics = of.topics.topics().into_iter();
            topics.map(move |topic| (user.clone(), topic))
        });
        let mut topics: Vec<(String, TopicStats)> = each.collect();
        topics.sort_by(|one, other| (&one.0, &one.1.name).cmp(&(&other.0, &other.1.name)));
        topics
    }

    /// Drops what waits in the queue of a topic of a user, and counts it; how many messages those were.
    pub fn discard(&self, user: &str, topic: &str) -> u64 {
        let users = lock(&self.users);
        let of = users.topics.get(user);
        of.map_or(0, |of| of.topics.discard(topic))
    }

    /// Drops what waits in the queues of users of whom no program has lived for the time of `bus_idle_s`, and forgets
    /// those who hold nothing. It is to be called now and then.
    pub fn forget_gone(&self, now: Instant) {
        lock(&self.users).forget_gone(now, self.idle);
    }

    /// The topics of a user.
    pub(crate) fn of(&self, user: &str) -> Arc<UserTopics> {
        let mut users = lock(&self.users);
        if let Some(of) = users.topics.get_mut(user) {
            of.untouched = None;
            return of.topics.clone();
        }
        if users.topics.len() >= MAX_IDLE {
            users.forget_idle();
        }
        let topics = Arc::new(Topics::new(self.limits));
        let of = OfUser {
            topics: topics.clone(),
            untouched: None,
        };
        users.topics.insert(user.to_owned(), of);
        topics
    }

    /// Pushes a message to a queue of the user of `account`, which is charged with it. Where the queue is full it waits
    /// for room. Dropping the future takes the message back, unless it is in the queue.
    ///
    /// # Errors
    /// `invalid-argument`, `limit-message`, `limit-resources`, `limit-engine-memory`; `queue-full` where there is no
    /// room in time, or all queues of the user hold too much.
    pub async fn push(&self, account: &Account, topic: &str, text: String) -> Result<(), Error> {
        let topics = self.of(account.user());
        self.push_to(&topics, account, topic, text).await
    }

    /// The next message of a queue of the user of `account`. Dropping the future loses no message.
    ///
    /// # Errors
    /// `invalid-argument`, `limit-resources`.
    pub async fn pull(&self, account: &Account, topic: &str) -> Result<String, Error> {
        let mut future = place::pull(&self.of(account.user()), topic);
        future.ready().await;
        future.take().unwrap_or_else(|| {
            let fault = "a pull was told of a message, and there is none";
            Err(Error::internal(fault))
        })
    }

    /// As [`Self::push`], where the topics of the user are at hand.
    ///
    /// # Errors
    /// As there.
    pub(crate) async fn push_to(
        &self,
        topics: &UserTopics,
        account: &Account,
        topic: &str,
        text: String,
    ) -> Result<(), Error> {
        let (parcel, n_bytes) = self.parcel(account, topic, text)?;
        let mut rung = None;
        let ticket = topics.push(topic, parcel, n_bytes, || {
            let (ring, heard) = Ring::new();
            rung = Some(heard);
            ring
        })?;
        let (Some(ticket), Some(rung)) = (ticket, rung) else {
            return Ok(());
        };
        let mut waiting = place::Waiting::new(topics, ticket);
        // What matters is whether the message is in the queue, which the ring says and the ticket knows.
        drop(tokio::time::timeout(self.push_wait, rung).await);
        if waiting.withdraw() {
            let waited_s = self.push_wait.as_secs_f64();
            return Err(self.limits.queue_full(topic, waited_s));
        }
        Ok(())
    }

    /// Gives every subscription a message that `account` is charged with.
    ///
    /// # Errors
    /// `invalid-argument`, `limit-message`, `limit-engine-memory`.
    pub(crate) fn broadcast(
        &self,
        topics: &UserTopics,
        account: &Account,
        topic: &str,
        text: String,
    ) -> Result<(), Error> {
        let (parcel, n_bytes) = self.parcel(account, topic, text)?;
        topics.broadcast(topic, &parcel, n_bytes)
    }

    /// A message, checked before it is charged, and the bytes of its text.
    fn parcel(
        &self,
        account: &Account,
        topic: &str,
        text: String,
    ) -> Result<(Arc<Parcel>, usize), Error> {
        let n_bytes = text.len();
        self.limits.check_topic(topic)?;
        self.limits.check_message(n_bytes)?;
        let parcel = Parcel::new(account, topic, text)?;
        Ok((Arc::new(parcel), n_bytes))
    }
}

impl Users {
    fn forget_idle(&mut self) {
        let forgotten = &mut self.forgotten;
        self.topics.retain(|_, of| {
            // The lock of all users is held, so that nobody gets hold of one that is dropped.
            let stays = of.is_held() || !of.topics.is_idle();
            if !stays {
                forgotten.add(&of.topics.stats());
            }
            stays
        });
    }

    fn forget_gone(&mut self, now: Instant, idle: Duration) {
        for (user, of) in &mut self.topics {
            if of.is_held() {
                of.untouched = None;
                continue;
            }
            let since = *of.untouched.get_or_insert(now);
            if now.saturating_duration_since(since) < idle {
                continue;
            }
            let topics = of.topics.topics();
            let n_dropped: u64 = topics
                .iter()
                .map(|topic| of.topics.discard(&topic.name))
                .sum();
            if n_dropped > 0 {
                tracing::info!(
                    user,
                    n_dropped,
                    "messages waited too long for a user who has gone"
                );
            }
        }
        self.forget_idle();
    }
}

impl OfUser {
    /// True while a program of the user lives, or somebody pushes or pulls for them.
    fn is_held(&self) -> bool {
        Arc::strong_count(&self.topics) > 1
    }
}

#[cfg(test)]
mod tests {
    use pie_core::ErrorCode;
    use pie_core::bus::BusSettingNames;

    use super::*;
    use crate::budget::Budget;
    use crate::futures::Awaited;

    const LIMITS: BusLimits = BusLimits {
        message_bytes: 100,
        queue_messages: 2,
        queue_bytes: 1000,
        user_bytes: 10_000,
        subscription_messages: 2,
        subscription_bytes: 1000,
        topics: 10,
        subscriptions: 10,
        names: BusSettingNames::PLAIN,
    };

    const IDLE: Duration = Duration::from_secs(3600);

    struct World {
        bus: Bus,
        budget: Arc<Budget>,
        account: Account,
        topics: Arc<UserTopics>,
    }

    fn world(push_wait: Duration) -> World {
        let (bus, budget) = (
            Bus::new(LIMITS, push_wait, IDLE),
            Budget::new(16 << 20, None),
        );
        World {
            account: budget.account("ada"),
            topics: bus.of("ada"),
            bus,
            budget,
        }
    }

    impl World {
        async fn push(&self, text: &str) -> Result<(), ErrorCode> {
            let pushed = self.bus.push(&self.account, "jobs", text.to_owned());
            pushed.await.map_err(|error| error.code)
        }

        fn pull(&self) -> Option<Result<String, Error>> {
            place::pull(&self.topics, "jobs").take()
        }
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(future)
    }

    #[test]
    fn messages_are_charged_until_they_are_taken() {
        let world = world(Duration::ZERO);
        block_on(world.push("0123456789")).unwrap();
        assert!(world.budget.held_bytes() > 10);
        assert_eq!(world.pull(), Some(Ok("0123456789".to_owned())));
        assert_eq!(world.budget.held_bytes(), 0);
        assert_eq!(world.pull(), None);
    }

    #[test]
    fn a_push_waits_for_room_until_its_time_is_over() {
        let world = world(Duration::ZERO);
        for text in ["a", "b"] {
            block_on(world.push(text)).unwrap();
        }
        assert_eq!(block_on(world.push("c")), Err(ErrorCode::QueueFull));
        assert_eq!(world.bus.stats().n_refused, 1);
    }

    #[test]
    fn a_push_that_waits_goes_on_when_a_message_is_taken() {
        let world = world(Duration::from_secs(3600));
        block_on(async {
            world.push("a").await.unwrap();
            world.push("b").await.unwrap();
            let (pushed, pulled) = tokio::join!(biased; world.push("c"), async { world.pull() });
            assert_eq!((pushed, pulled), (Ok(()), Some(Ok("a".to_owned()))));
        });
        let stats = world.bus.stats();
        assert_eq!((stats.n_pushed, stats.n_queued), (3, 2));
    }

    #[test]
    fn a_push_whose_program_ends_is_refused() {
        let world = world(Duration::from_secs(3600));
        block_on(async {
            world.push("a").await.unwrap();
            world.push("b").await.unwrap();
            tokio::select! {
                biased;
                pushed = world.push("c") => panic!("{pushed:?}"),
                () = std::future::ready(()) => {}
            }
        });
        let stats = world.bus.stats();
        assert_eq!((stats.n_waiting_pushes, stats.n_refused), (0, 1));
        assert_eq!((stats.n_pushed, stats.n_queued), (2, 2));
    }

    #[test]
    fn what_waits_for_a_user_who_has_gone_is_dropped_and_counted() {
        let world = world(Duration::ZERO);
        let (start, bus) = (Instant::now(), &world.bus);
        for text in ["a", "b"] {
            block_on(world.push(text)).unwrap();
        }
        let held_bytes = world.budget.held_bytes();
        assert!(held_bytes > 0);
        // As long as a program of the user lives, it may come back to them.
        bus.forget_gone(start);
        bus.forget_gone(start + 2 * IDLE);
        assert_eq!(world.budget.held_bytes(), held_bytes);
        let World {
            bus,
            budget,
            account,
            topics,
        } = world;
        drop(topics);
        bus.forget_gone(start + 2 * IDLE);
        // Somebody else's do not change that, and who comes back in time finds them.
        drop(bus.of("eve"));
        drop(bus.of("ada"));
        bus.forget_gone(start + 3 * IDLE);
        bus.forget_gone(start + 4 * IDLE - Duration::from_millis(1));
        assert_eq!(budget.held_bytes(), held_bytes);
        bus.forget_gone(start + 4 * IDLE);
        assert_eq!(budget.held_bytes(), 0);
        assert!(lock(&bus.users).topics.is_empty());
        let stats = bus.stats();
        assert_eq!((stats.n_pushed, stats.n_dropped, stats.n_queued), (2, 2, 0));
        block_on(bus.push(&account, "jobs", "new".to_owned())).unwrap();
        assert_eq!(bus.topics(None).len(), 1);
        assert_eq!(
            (bus.discard("eve", "jobs"), bus.discard("ada", "jobs")),
            (0, 1)
        );
        assert_eq!(budget.held_bytes(), 0);
    }

    #[test]
    fn users_are_apart_and_those_who_hold_nothing_are_forgotten() {
        let world = world(Duration::ZERO);
        block_on(world.push("kept")).unwrap();
        for n in 0..3 * MAX_IDLE {
            let (user, topics) = (format!("user {n}"), world.bus.of(&format!("user {n}")));
            assert!(place::pull(&topics, "jobs").take().is_none(), "{user}");
            let account = world.budget.account(&user);
            block_on(world.bus.push(&account, "jobs", user.clone())).unwrap();
            assert_eq!(place::pull(&topics, "jobs").take(), Some(Ok(user)));
        }
        assert!(lock(&world.bus.users).topics.len() <= MAX_IDLE);
        let stats = world.bus.stats();
        let n_users = 3 * MAX_IDLE as u64;
        assert_eq!((stats.n_pushed, stats.n_pulled), (n_users + 1, n_users));
        assert_eq!(world.pull(), Some(Ok("kept".to_owned())));
    }
}
