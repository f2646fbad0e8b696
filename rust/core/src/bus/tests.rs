use proptest::prelude::*;

use super::*;
use crate::errors::ErrorCode;

const LIMITS: BusLimits = BusLimits {
    message_bytes: 10,
    queue_messages: 3,
    queue_bytes: 20,
    user_bytes: 4 * 522,
    subscription_messages: 3,
    subscription_bytes: 20,
    topics: 2,
    subscriptions: 2,
    names: BusSettingNames {
        message_bytes: "the_longest",
        ..BusSettingNames::PLAIN
    },
};

/// Messages are what they say, and bells are names.
type Named = Bus<&'static str, &'static str>;

fn bus() -> Named {
    Bus::new(LIMITS)
}

fn push(bus: &mut Named, text: &'static str) -> Option<&'static str> {
    match bus.push("jobs", text, text.len(), || text) {
        Ok(Pushed::Queued(bell)) => bell,
        other => panic!("{other:?}"),
    }
}

fn pull(bus: &mut Named, name: &'static str) -> PullTicket {
    bus.pull("jobs", || name).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_bus_is_as_the_lists_say(limits in modelled_bus::limits(), ops in prop::collection::vec(modelled_bus::op(), 1..80)) {
        modelled_bus::run(limits, ops)?;
    }
}

#[test]
fn messages_are_taken_in_the_order_in_which_they_were_pushed() {
    let mut bus = bus();
    let (first, second) = (pull(&mut bus, "first"), pull(&mut bus, "second"));
    assert_eq!(push(&mut bus, "a"), Some("first"));
    assert_eq!(push(&mut bus, "b"), Some("second"));
    assert_eq!(bus.take(second).0, Some("a"));
    assert_eq!(bus.take(first).0, Some("b"));
    assert!(bus.is_idle());
}

#[test]
fn a_pull_that_is_given_up_loses_nothing() {
    let mut bus = bus();
    let (first, second) = (pull(&mut bus, "first"), pull(&mut bus, "second"));
    assert_eq!(push(&mut bus, "a"), Some("first"));
    assert_eq!(bus.give_up(first), Some("second"));
    assert_eq!(bus.take(second).0, Some("a"));
    let stats = bus.stats();
    assert_eq!((stats.n_pushed, stats.n_pulled), (1, 1));
}

#[test]
fn a_full_queue_has_a_push_wait_until_a_message_is_taken() {
    let mut bus = bus();
    for text in ["0123456789", "0123456789"] {
        push(&mut bus, text);
    }
    let waiting = bus.push("jobs", "late", 4, || "late").unwrap();
    assert!(matches!(waiting, Pushed::Waiting(_)), "{waiting:?}");
    let ticket = pull(&mut bus, "nobody");
    assert_eq!(bus.take(ticket), (Some("0123456789"), vec!["late"]));
    let Pushed::Waiting(ticket) = waiting else {
        return;
    };
    assert!(!bus.withdraw(ticket));
    assert_eq!(bus.stats().n_pushed, 3);
}

#[test]
fn a_push_that_is_withdrawn_is_refused_and_counted() {
    let mut bus = bus();
    for text in ["a", "b", "c"] {
        push(&mut bus, text);
    }
    let Pushed::Waiting(ticket) = bus.push("jobs", "d", 1, || "d").unwrap() else {
        panic!("the queue is full");
    };
    assert_eq!(bus.stats().n_waiting_pushes, 1);
    assert!(bus.withdraw(ticket));
    let stats = bus.stats();
    assert_eq!((stats.n_pushed, stats.n_refused, stats.n_queued), (3, 1, 3));
    let error = LIMITS.queue_full("jobs", 5.0);
    assert_eq!(error.code, ErrorCode::QueueFull);
    for part in ["\"jobs\"", " queue_messages = 3", " push_wait = 5"] {
        assert!(error.message.contains(part), "{}", error.message);
    }
}

#[test]
fn all_queues_of_a_user_together_are_bounded() {
    let mut bus = bus();
    for text in ["a", "b", "c"] {
        push(&mut bus, text);
    }
    assert!(matches!(
        bus.push("other", "d", 1, || "d"),
        Ok(Pushed::Queued(None))
    ));
    let error = bus.push("other", "e", 1, || "e").unwrap_err();
    assert_eq!(error.code, ErrorCode::QueueFull);
    assert!(
        error.message.contains(" user_bytes = 2088"),
        "{}",
        error.message
    );
    let ticket = pull(&mut bus, "nobody");
    assert_eq!(bus.take(ticket).0, Some("a"));
    assert!(bus.push("other", "e", 1, || "e").is_ok());
}

#[test]
fn a_subscription_drops_the_oldest_and_counts_it() {
    let mut bus = bus();
    let subscription = bus.subscribe("news").unwrap();
    for text in ["a", "b", "c", "d", "e"] {
        bus.broadcast("news", &text, 1).unwrap();
    }
    assert_eq!(bus.n_lagged(&subscription), 2);
    assert_eq!(bus.get(&subscription), Some("c"));
    bus.broadcast("news", &"0123456789", 10).unwrap();
    bus.broadcast("news", &"9876543210", 10).unwrap();
    assert_eq!(bus.get(&subscription), Some("0123456789"));
    assert_eq!(bus.unsubscribe(&subscription), [""; 0]);
    let stats = bus.stats();
    assert_eq!((stats.n_copies, stats.n_received), (7, 2));
    assert_eq!((stats.n_lagged, stats.n_discarded), (4, 1));
    assert!(bus.is_readable(&subscription));
    assert_eq!(bus.get(&subscription), None);
}

#[test]
fn a_broadcast_reaches_those_who_subscribed_before_it() {
    let mut bus = bus();
    bus.broadcast("news", &"nobody", 6).unwrap();
    let first = bus.subscribe("news").unwrap();
    bus.broadcast("news", &"one", 3).unwrap();
    let second = bus.subscribe("news").unwrap();
    bus.broadcast("news", &"both", 4).unwrap();
    assert_eq!(
        (bus.get(&first), bus.get(&first)),
        (Some("one"), Some("both"))
    );
    assert_eq!((bus.get(&second), bus.get(&second)), (Some("both"), None));
    bus.forget(first);
    bus.forget(second);
    assert!(bus.is_idle());
}

#[test]
fn the_end_of_a_subscription_tells_who_waits_for_it() {
    let mut bus = bus();
    let subscription = bus.subscribe("news").unwrap();
    let waiting = bus.next(&subscription, || "reader");
    assert_eq!(bus.unsubscribe(&subscription), ["reader"]);
    assert_eq!(bus.take(waiting), (None, Vec::new()));
    let again = bus.next(&subscription, || "nobody");
    assert_eq!(bus.take(again), (None, Vec::new()));
}

#[test]
fn queues_and_broadcasts_of_one_name_are_apart() {
    let mut bus = bus();
    let subscription = bus.subscribe("jobs").unwrap();
    push(&mut bus, "a");
    assert_eq!(bus.get(&subscription), None);
    bus.broadcast("jobs", &"b", 1).unwrap();
    let ticket = pull(&mut bus, "nobody");
    assert_eq!(bus.take(ticket).0, Some("a"));
    assert_eq!(bus.get(&subscription), Some("b"));
}

#[test]
fn what_is_too_much_is_refused_by_name() {
    let mut bus = bus();
    for topic in ["", "a\0b", "a\nb", &"x".repeat(257)] {
        let error = bus.push(topic, "x", 1, || "").unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument, "{topic:?}");
        assert!(error.message.len() < 400, "{}", error.message);
    }
    let error = bus.push("jobs", "x", 1 << 30, || "").unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitMessage);
    assert!(
        error.message.contains("1073741824 bytes") && error.message.contains("the_longest = 10"),
        "{}",
        error.message
    );
    push(&mut bus, "a");
    bus.subscribe("news").unwrap();
    let error = bus.pull("third", || "").unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitResources);
    assert!(error.message.contains(" topics = 2"), "{}", error.message);
    bus.subscribe("news").unwrap();
    let error = bus.subscribe("news").unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitResources);
    assert!(
        error.message.contains(" subscriptions = 2"),
        "{}",
        error.message
    );
    assert_eq!(bus.stats().n_topics, 2);
}

#[test]
fn what_is_discarded_is_counted_and_makes_room() {
    let mut bus = bus();
    for text in ["a", "b", "c"] {
        push(&mut bus, text);
    }
    let Pushed::Waiting(_) = bus.push("jobs", "d", 1, || "late").unwrap() else {
        panic!("the queue is full");
    };
    let ticket = pull(&mut bus, "nobody");
    let topics = bus.topics();
    assert_eq!(topics.len(), 1);
    let jobs = &topics[0];
    assert_eq!(
        (jobs.name.as_str(), jobs.n_queued, jobs.queued_bytes),
        ("jobs", 3, 3)
    );
    assert_eq!((jobs.n_waiting_pushes, jobs.n_waiting_pulls), (1, 0));
    // What is promised stays, and what waited comes in.
    assert_eq!(bus.discard("jobs"), (2, vec!["late"]));
    assert_eq!(bus.take(ticket).0, Some("c"));
    assert_eq!(bus.discard("jobs"), (1, Vec::new()));
    assert_eq!(bus.discard("jobs"), (0, Vec::new()));
    assert!(bus.is_idle());
    assert_eq!(bus.held_bytes, 0);
    let stats = bus.stats();
    assert_eq!((stats.n_pushed, stats.n_pulled, stats.n_dropped), (4, 1, 3));
}

#[test]
fn topics_are_listed_in_the_order_of_their_names() {
    let names = ["m", "b", "z", "a", "k", "c", "y", "d"];
    let mut bus = Named::new(BusLimits {
        topics: names.len(),
        ..LIMITS
    });
    for name in names {
        bus.pull(name, || name).unwrap();
    }
    let listed: Vec<String> = bus.topics().into_iter().map(|it| it.name).collect();
    assert_eq!(listed, ["a", "b", "c", "d", "k", "m", "y", "z"]);
}
