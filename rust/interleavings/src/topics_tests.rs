//! Pushes, pulls that are given up, and subscriptions that end, on the topics of one user.

use std::sync::Arc;

use loom::thread;
use pie_core::bus::{BusLimits, BusSettingNames};

use crate::sync::{Condvar, Instant, Mutex, lock, wait_until};
use crate::topics::{Bell, Topics};

const TOPIC: &str = "jobs";

type Numbers = Topics<u64, Ring>;

/// What somebody sleeps by.
#[derive(Default)]
struct Sleeper {
    is_rung: Mutex<bool>,
    rung: Condvar,
}

struct Ring(Arc<Sleeper>);

impl Bell for Ring {
    fn ring(self) {
        *lock(&self.0.is_rung) = true;
        self.0.rung.notify_one();
    }
}

impl Sleeper {
    /// Sleeps until the bell rings. Whose never does makes the checker fail.
    fn sleep(&self) {
        let mut is_rung = lock(&self.is_rung);
        while !*is_rung {
            let Some(guard) = wait_until(&self.rung, is_rung, Instant::NEVER) else {
                return;
            };
            is_rung = guard;
        }
    }
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

fn topics(queue_messages: usize) -> Arc<Numbers> {
    Arc::new(Topics::new(BusLimits {
        message_bytes: 1,
        queue_messages,
        queue_bytes: 100,
        user_bytes: 10_000,
        subscription_messages: 1,
        subscription_bytes: 100,
        topics: 1,
        subscriptions: 1,
        names: BusSettingNames::PLAIN,
    }))
}

/// Runs `call` with a bell, and sleeps where it asked for one.
fn with_bell<T>(call: impl FnOnce(&mut dyn FnMut() -> Ring) -> T) -> T {
    let (sleeper, mut is_asked) = (Arc::new(Sleeper::default()), false);
    let value = call(&mut || {
        is_asked = true;
        Ring(sleeper.clone())
    });
    if is_asked {
        sleeper.sleep();
    }
    value
}

fn push(topics: &Numbers, number: u64) {
    let _rung = with_bell(|bell| topics.push(TOPIC, number, 1, bell)).unwrap();
}

fn pull(topics: &Numbers) -> u64 {
    let ticket = with_bell(|bell| topics.pull(TOPIC, bell)).unwrap();
    topics.take(ticket).unwrap()
}

/// A pull that is given up, whether it is its turn or not.
fn die(topics: &Numbers) {
    let ticket = topics.pull(TOPIC, || Ring(Arc::default())).unwrap();
    topics.give_up(ticket);
}

#[test]
fn every_message_is_pulled_once_and_in_order_beside_one_who_dies() {
    check(|| {
        let topics = topics(10);
        let pusher = thread::spawn({
            let topics = topics.clone();
            move || (1..=2).for_each(|number| push(&topics, number))
        });
        let dying = thread::spawn({
            let topics = topics.clone();
            move || die(&topics)
        });
        assert_eq!([pull(&topics), pull(&topics)], [1, 2]);
        pusher.join().unwrap();
        dying.join().unwrap();
        let stats = topics.stats();
        assert_eq!((stats.n_pushed, stats.n_pulled), (2, 2));
        assert!(topics.is_idle());
    });
}

#[test]
fn two_who_pull_get_one_each() {
    check(|| {
        let topics = topics(10);
        let puller = thread::spawn({
            let topics = topics.clone();
            move || pull(&topics)
        });
        push(&topics, 1);
        push(&topics, 2);
        let pulled = [pull(&topics), puller.join().unwrap()];
        assert_eq!(pulled[0] + pulled[1], 3, "{pulled:?}");
    });
}

#[test]
fn a_push_that_waits_for_room_is_told_when_there_is_some() {
    check(|| {
        let topics = topics(1);
        let pusher = thread::spawn({
            let topics = topics.clone();
            move || (1..=3).for_each(|number| push(&topics, number))
        });
        assert_eq!([pull(&topics), pull(&topics), pull(&topics)], [1, 2, 3]);
        pusher.join().unwrap();
    });
}

#[test]
fn a_push_that_is_withdrawn_is_in_the_queue_or_refused() {
    check(|| {
        let topics = topics(1);
        push(&topics, 1);
        let pusher = thread::spawn({
            let topics = topics.clone();
            move || {
                let ticket = topics.push(TOPIC, 2, 1, || Ring(Arc::default()));
                ticket
                    .unwrap()
                    .is_some_and(|ticket| topics.withdraw(ticket))
            }
        });
        assert_eq!(pull(&topics), 1);
        let is_refused = pusher.join().unwrap();
        let stats = topics.stats();
        assert_eq!(stats.n_refused, u64::from(is_refused));
        assert_eq!(stats.n_queued, u64::from(!is_refused));
        assert_eq!(stats.n_pushed, 1 + stats.n_queued);
    });
}

#[test]
fn who_waits_for_a_subscription_gets_a_copy_or_its_end() {
    check(|| {
        let topics = topics(1);
        let subscription = Arc::new(topics.subscribe(TOPIC).unwrap());
        let reader = thread::spawn({
            let (topics, subscription) = (topics.clone(), subscription.clone());
            move || {
                let ticket = with_bell(|bell| topics.next(&subscription, bell));
                topics.take(ticket)
            }
        });
        let sender = thread::spawn({
            let topics = topics.clone();
            move || (1..=2).for_each(|number| topics.broadcast(TOPIC, &number, 1).unwrap())
        });
        topics.unsubscribe(&subscription);
        let read = reader.join().unwrap();
        sender.join().unwrap();
        let stats = topics.stats();
        assert_eq!(stats.n_received, u64::from(read.is_some()));
        let counted = stats.n_received + stats.n_lagged + stats.n_discarded;
        assert_eq!(stats.n_copies, counted);
        assert_eq!(stats.n_broadcasts, 2);
    });
}
