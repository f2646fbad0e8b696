use std::cell::Cell;
use std::rc::Rc;

use futures_util::future::{Either, join, join_all, poll_fn, select};

use super::*;

/// Events that come at their own time on a clock that moves only while somebody waits.
#[derive(Default)]
struct Timeline {
    now: Cell<u64>,
    waits: Cell<u32>,
    looks: Cell<u32>,
}

impl Timeline {
    fn come(&self, times: &[&u64]) -> Vec<u32> {
        // Latest first, as the engine promises no order.
        (0..times.len())
            .rev()
            .filter(|&index| *times[index] <= self.now.get())
            .map(|index| index as u32)
            .collect()
    }
}

impl EventSource for Timeline {
    type Pollable = u64;

    fn wait(&self, times: &[&u64]) -> Vec<u32> {
        let earliest = times.iter().map(|time| **time).min().unwrap();
        self.now.set(earliest.max(self.now.get()));
        self.waits.set(self.waits.get() + 1);
        self.come(times)
    }

    fn look(&self, times: &[&u64]) -> Vec<u32> {
        self.looks.set(self.looks.get() + 1);
        self.come(times)
    }
}

fn run<F: Future>(reactor: &Reactor<u64>, future: F) -> (Result<F::Output, Deadlock>, Timeline) {
    let timeline = Timeline::default();
    (block_on(reactor, &timeline, future), timeline)
}

#[test]
fn a_ready_future_waits_for_nothing() {
    let (end, timeline) = run(&Reactor::new(), async { 7 });
    assert_eq!((end, timeline.waits.get()), (Ok(7), 0));
}

#[test]
fn one_event_is_one_wait() {
    let reactor = Reactor::new();
    let (end, timeline) = run(&reactor, Event::new(&reactor, 5));
    assert_eq!(
        (end, timeline.waits.get(), timeline.now.get()),
        (Ok(()), 1, 5)
    );
    assert!(reactor.entries.borrow().is_empty());
}

#[test]
fn events_one_after_the_other_are_a_wait_each() {
    let reactor = Reactor::new();
    let (end, timeline) = run(&reactor, async {
        for time in [5, 9, 7] {
            Event::new(&reactor, time).await;
        }
    });
    assert_eq!(end, Ok(()));
    assert_eq!(
        (
            timeline.waits.get(),
            timeline.looks.get(),
            timeline.now.get()
        ),
        (3, 0, 9)
    );
}

#[test]
fn joined_events_overlap_and_resolve_by_their_own_time() {
    let reactor = Reactor::new();
    let order = Rc::new(Cell::new(String::new()));
    let (end, timeline) = run(
        &reactor,
        join_all([30, 10, 20, 10].into_iter().map(|time| {
            let (order, event) = (Rc::clone(&order), Event::new(&reactor, time));
            async move {
                event.await;
                order.set(format!("{}{time} ", order.take()));
                time
            }
        })),
    );
    assert_eq!(end, Ok(vec![30, 10, 20, 10]));
    assert_eq!((timeline.waits.get(), timeline.now.get()), (3, 30));
    assert_eq!(order.take(), "10 10 20 30 ");
}

#[test]
fn many_events_are_polled_only_when_theirs_has_come() {
    let reactor = Reactor::new();
    let polls = Cell::new(0);
    let (end, _) = run(
        &reactor,
        join_all((1..=200).map(|time| {
            let mut event = Event::new(&reactor, time);
            let polls = &polls;
            poll_fn(move |context| {
                polls.set(polls.get() + 1);
                Pin::new(&mut event).poll(context)
            })
        })),
    );
    assert_eq!(end.map(|all| all.len()), Ok(200));
    assert_eq!(polls.get(), 400);
}

#[test]
fn the_loser_of_a_race_is_forgotten() {
    let reactor = Reactor::new();
    let (end, timeline) = run(&reactor, async {
        match select(Event::new(&reactor, 40), Event::new(&reactor, 4)).await {
            Either::Left(_) => "slow",
            Either::Right(_) => "fast",
        }
    });
    assert_eq!((end, timeline.now.get()), (Ok("fast"), 4));
    assert!(reactor.entries.borrow().is_empty());
}

#[test]
fn nothing_that_could_wake_is_a_deadlock() {
    let reactor = Reactor::new();
    assert_eq!(run(&reactor, std::future::pending::<()>()).0, Err(Deadlock));
    // An event that has come and that nobody takes cannot wake a second time.
    let mut taken = Event::new(&reactor, 1);
    let never = poll_fn(move |context| {
        let _ = Pin::new(&mut taken).poll(context);
        Poll::<()>::Pending
    });
    assert_eq!(run(&reactor, never).0, Err(Deadlock));
    let (kept, mut done) = (Event::new(&reactor, 1), false);
    let mut kept = pin!(kept);
    let unpolled = poll_fn(|context| {
        if !std::mem::replace(&mut done, true) {
            let _ = kept.as_mut().poll(context);
        }
        Poll::<()>::Pending
    });
    assert_eq!(run(&reactor, unpolled).0, Err(Deadlock));
}

#[test]
fn a_future_that_wakes_itself_does_not_shut_events_out() {
    let reactor = Reactor::new();
    let timeline = Timeline::default();
    let busy = async {
        let mut turns = 0;
        poll_fn(|context| {
            turns += 1;
            timeline.now.set(timeline.now.get() + 1);
            context.waker().wake_by_ref();
            if turns < 100 {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        })
        .await;
    };
    let seen = async {
        Event::new(&reactor, 10).await;
        timeline.now.get()
    };
    let (seen, ()) = block_on(&reactor, &timeline, join(seen, busy)).unwrap();
    assert!((10..20).contains(&seen), "seen at {seen}");
    assert_eq!(timeline.waits.get(), 0);
}

#[test]
fn an_event_wakes_whoever_polled_it_last() {
    let reactor = Reactor::new();
    let moved = async {
        let mut event = Event::new(&reactor, 3);
        let first = select(&mut event, std::future::ready(())).await;
        assert!(matches!(first, Either::Right(_)));
        join(event, Event::new(&reactor, 1)).await
    };
    assert_eq!(run(&reactor, moved).0, Ok(((), ())));
}
