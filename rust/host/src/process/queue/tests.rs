use std::sync::{Arc, Mutex};
use std::time::Duration;

use pie_core::ErrorCode;

use super::line::EVENT_BYTES;
use super::*;
use crate::budget::{Budget, Purpose};
use crate::process::serving::Observer;
use crate::stepped_charge::SteppedCharge;
use crate::sync::lock;

fn text(text: &str) -> Event {
    Event::Stdout(text.to_owned())
}

fn holding() -> SteppedCharge {
    let budget = Budget::new(64 << 20, None);
    SteppedCharge::new(budget.account("ada").empty(Purpose::Queue))
}

#[test]
fn what_waits_is_charged_until_it_is_taken() {
    let budget = Budget::new(64 << 20, Some(1 << 20));
    let capacity = Capacity {
        entries: 100,
        bytes: 100 << 20,
    };
    let holding = SteppedCharge::new(budget.account("ada").empty(Purpose::Queue));
    let queue = PipeQueue::new(capacity, holding);
    let file = || Event::File(vec![0; 200 << 10]);
    queue.push(file()).unwrap();
    queue.push(file()).unwrap();
    assert!(budget.held_bytes() >= 400 << 10);
    let refused = queue.push(Event::File(vec![0; 900 << 10])).unwrap_err();
    assert_eq!(refused.code, ErrorCode::LimitEngineMemory);
    queue.finish(Event::Return("x".repeat(900 << 10)).into());
    assert_eq!(queue.next(None), Some(file()));
    assert_eq!(queue.next(None), Some(file()));
    let last = queue.next(None);
    assert!(
        matches!(&last, Some(Event::Error(failure)) if failure.code.as_deref() == Some("limit-engine-memory")),
        "{last:?}"
    );
    assert_eq!(budget.held_bytes(), 0);
}

#[tokio::test]
async fn a_full_queue_suspends_its_writer_until_something_is_read() {
    let queue = PipeQueue::new(
        Capacity {
            entries: 2,
            bytes: 100,
        },
        holding(),
    );
    send(&queue, text("a")).await.unwrap();
    send(&queue, text("b")).await.unwrap();
    let third = send(&queue, text("c"));
    tokio::pin!(third);
    assert!(futures_pending(&mut third).await);
    assert_eq!(queue.next(None), Some(text("a")));
    third.await.unwrap();
    queue.finish(Event::Return("1".to_owned()).into());
    let rest: Vec<_> = std::iter::from_fn(|| queue.next(None)).collect();
    assert_eq!(rest, [text("b"), text("c"), Event::Return("1".to_owned())]);
    assert!(queue.is_drained());
}

#[tokio::test]
async fn bytes_are_bounded_with_one_event_beyond() {
    let queue = PipeQueue::new(
        Capacity {
            entries: 10,
            bytes: 4,
        },
        holding(),
    );
    send(&queue, text("abcdef")).await.unwrap();
    assert!(!queue.has_room(EventKind::Stdout));
    assert_eq!(queue.next(None), Some(text("abcdef")));
    assert!(queue.has_room(EventKind::Stdout));
    let file = Event::File(vec![0xff; 5]);
    send(&queue, file.clone()).await.unwrap();
    assert!(!queue.has_room(EventKind::Stdout));
    assert_eq!(queue.next(None), Some(file));
    assert!(queue.has_room(EventKind::Stdout));
}

#[test]
fn the_last_event_always_fits_and_is_the_last() {
    let queue = PipeQueue::new(
        Capacity {
            entries: 1,
            bytes: 1,
        },
        holding(),
    );
    queue.push(text("x")).unwrap();
    queue.finish(Event::Return("null".to_owned()).into());
    queue.push(text("late")).unwrap();
    queue.finish(Event::Return("2".to_owned()).into());
    assert_eq!(queue.next(None), Some(text("x")));
    assert_eq!(queue.next(None), Some(Event::Return("null".to_owned())));
    assert_eq!(queue.next(None), None);
}

/// A watcher that keeps what it was told.
#[derive(Default)]
struct Witness(Mutex<Vec<String>>);

impl Observer for Witness {
    fn stderr(&self, pid: u64, text: &str) {
        lock(&self.0).push(format!("{pid}: {text}"));
    }

    fn ended(&self, _: u64, _: &Event) {}
}

/// A queue that keeps two events of up to two bytes.
fn keeping() -> DetachableQueue {
    let capacity = Capacity {
        entries: 2,
        bytes: 100,
    };
    let keeping = Retention {
        pid: 7,
        kept_bytes: 2 * (EVENT_BYTES + 2),
        log_bytes: 4,
        observer: Arc::new(Witness::default()),
    };
    DetachableQueue::new(capacity, holding(), keeping)
}

/// What an attached reader can get at once.
fn readable(queue: &DetachableQueue, reader: u64) -> Vec<(u64, Event)> {
    std::iter::from_fn(|| match queue.read(reader) {
        Next::Event(seq, event) => Some((seq, Event::clone(&event))),
        Next::Wait | Next::Over => None,
    })
    .collect()
}

fn notice(text: &str) -> Event {
    Event::Notice(text.to_owned())
}

#[tokio::test]
async fn without_a_reader_nothing_waits_and_the_oldest_output_is_dropped_and_counted() {
    let queue = keeping();
    for character in ["a", "bb", "c", "d"] {
        send(&queue, text(character)).await.unwrap();
    }
    queue.finish(Event::Return("null".to_owned()).into());
    let (reader, first_seq) = queue.attach(usize::MAX, 0).unwrap();
    assert_eq!(first_seq, 2);
    assert_eq!(
        readable(&queue, reader),
        [
            (
                2,
                notice("2 events (3 bytes) were dropped while nobody was attached")
            ),
            (3, text("c")),
            (4, text("d")),
            (5, Event::Return("null".to_owned())),
        ]
    );
    assert!(matches!(queue.read(reader), Next::Over));
    assert_eq!(queue.n_dropped(), 2);
}

#[test]
fn the_last_event_is_never_dropped() {
    let queue = keeping();
    queue.finish(Event::Return("\"a value longer than all that is kept, by far: ... and on and on, to more than two events and their cost\"".repeat(9)).into());
    queue.push(text("late")).unwrap();
    let (reader, _) = queue.attach(usize::MAX, 0).unwrap();
    assert!(matches!(
        readable(&queue, reader).as_slice(),
        [(1, Event::Return(_))]
    ));
}

#[tokio::test]
async fn a_reader_suspends_the_writer_and_its_going_lets_it_on() {
    let queue = keeping();
    let (reader, first_seq) = queue.attach(usize::MAX, 0).unwrap();
    assert_eq!(first_seq, 1);
    send(&queue, text("a")).await.unwrap();
    send(&queue, text("b")).await.unwrap();
    assert_eq!(readable(&queue, reader).len(), 2);
    let third = send(&queue, text("c"));
    tokio::pin!(third);
    assert!(
        futures_pending(&mut third).await,
        "what was sent and not acknowledged takes room"
    );
    queue.acknowledge(reader, 1);
    third.await.unwrap();
    let fourth = send(&queue, text("d"));
    tokio::pin!(fourth);
    assert!(futures_pending(&mut fourth).await);
    queue.detach(reader);
    fourth.await.unwrap();
}

#[test]
fn what_was_not_acknowledged_is_sent_again() {
    let queue = keeping();
    let (first, _) = queue.attach(usize::MAX, 0).unwrap();
    assert_eq!(queue.attach(usize::MAX, 0), Err(NotAttached::Taken));
    queue.push(text("a")).unwrap();
    queue.push(text("b")).unwrap();
    assert_eq!(readable(&queue, first).len(), 2);
    queue.acknowledge(first, 1);
    queue.detach(first);
    let (second, first_seq) = queue.attach(usize::MAX, 0).unwrap();
    assert_eq!(first_seq, 2);
    queue.acknowledge(first, 2);
    queue.detach(first);
    assert!(matches!(queue.read(first), Next::Over));
    assert_eq!(readable(&queue, second), [(2, text("b"))]);
    queue.acknowledge(second, u64::MAX);
    queue.push(text("c")).unwrap();
    assert_eq!(readable(&queue, second), [(3, text("c"))]);
}

#[test]
fn the_window_bounds_what_is_sent_ahead_of_the_acknowledged() {
    let queue = keeping();
    let (reader, _) = queue.attach(3, 0).unwrap();
    for character in ["aa", "bb", "cc"] {
        queue.push(text(character)).unwrap();
    }
    assert_eq!(readable(&queue, reader).len(), 2);
    assert!(matches!(queue.read(reader), Next::Wait));
    queue.acknowledge(reader, 1);
    assert_eq!(readable(&queue, reader), [(3, text("cc"))]);
}

#[test]
fn an_acknowledgement_ahead_skips_what_the_reader_has_from_before() {
    let queue = keeping();
    queue.push(text("a")).unwrap();
    queue.push(text("b")).unwrap();
    let (reader, _) = queue.attach(1, 0).unwrap();
    queue.acknowledge(reader, 1);
    assert_eq!(readable(&queue, reader), [(2, text("b"))]);
}

#[tokio::test]
async fn a_reader_that_waits_learns_of_everything() {
    let queue = keeping();
    let (reader, _) = queue.attach(1, 0).unwrap();
    let changed = queue.changed();
    queue.push(text("aa")).unwrap();
    changed.await;
    assert_eq!(readable(&queue, reader).len(), 1);
    queue.push(text("b")).unwrap();
    let changed = queue.changed();
    queue.acknowledge(reader, 1);
    changed.await;
    let changed = queue.changed();
    queue.finish(Event::Return("1".to_owned()).into());
    changed.await;
    let changed = queue.changed();
    queue.detach(reader);
    changed.await;
}

#[test]
fn the_log_stays_when_events_go() {
    let queue = keeping();
    let (reader, _) = queue.attach(usize::MAX, 0).unwrap();
    queue.push(text("abc")).unwrap();
    queue.push(Event::Stderr("de".to_owned())).unwrap();
    queue.push(Event::File(vec![1])).unwrap();
    queue.acknowledge(reader, u64::MAX);
    let log = queue.log(0, usize::MAX);
    assert_eq!((log.text.as_str(), log.next, log.ended), ("bcde", 5, false));
    queue.finish(Event::Return("1".to_owned()).into());
    assert!(queue.log(0, 0).ended);
}

#[test]
fn what_is_held_is_counted_with_the_last_event_and_the_log() {
    let queue = keeping();
    queue.push(text("ab")).unwrap();
    queue.finish(Event::Return("null".to_owned()).into());
    assert_eq!(queue.held_bytes(), 2 * EVENT_BYTES + 2 + 2 + 4);
    let (reader, _) = queue.attach(usize::MAX, 0).unwrap();
    queue.acknowledge(reader, 2);
    assert_eq!(queue.held_bytes(), 2 + 4);
}

#[test]
fn the_last_event_can_be_asked_for_until_it_is_forgotten() {
    let queue = keeping();
    assert_eq!(queue.outcome(), None);
    queue.push(text("ab")).unwrap();
    assert_eq!(queue.outcome(), None);
    let last = Event::Return("null".to_owned());
    queue.finish(last.clone().into());
    assert_eq!(queue.outcome().as_deref(), Some(&last));
    let (reader, _) = queue.attach(usize::MAX, 0).unwrap();
    queue.acknowledge(reader, u64::MAX);
    assert_eq!(queue.outcome().as_deref(), Some(&last));
    queue.forget();
    assert_eq!((queue.outcome(), queue.held_bytes()), (None, 0));
}

#[test]
fn the_observer_hears_standard_error() {
    let witness = Arc::new(Witness::default());
    let queue = DetachableQueue::new(
        Capacity {
            entries: 1,
            bytes: 1,
        },
        holding(),
        Retention {
            pid: 7,
            kept_bytes: 0,
            log_bytes: 0,
            observer: witness.clone(),
        },
    );
    queue.push(text("out")).unwrap();
    queue.push(Event::Stderr("err".to_owned())).unwrap();
    assert_eq!(*lock(&witness.0), ["7: err"]);
}

#[test]
fn nothing_in_time_is_none() {
    let queue = PipeQueue::new(
        Capacity {
            entries: 1,
            bytes: 1,
        },
        holding(),
    );
    assert_eq!(queue.next(Some(Duration::from_millis(1))), None);
    assert!(!queue.is_drained());
}

/// Polls a future once and tells whether it waits.
async fn futures_pending<F: Future + Unpin>(future: &mut F) -> bool {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(context).is_pending())
    })
    .await
}

#[test]
fn after_the_last_acknowledgement_there_is_nothing_to_attach_to() {
    let queue = keeping();
    queue.finish(Event::Return("1".to_owned()).into());
    let (reader, _) = queue.attach(usize::MAX, 0).unwrap();
    assert!(queue.is_being_read());
    queue.acknowledge(reader, 1);
    assert!(!queue.is_being_read());
    queue.detach(reader);
    assert_eq!(queue.attach(usize::MAX, 0), Err(NotAttached::Over));
}

#[test]
fn a_reader_cannot_have_what_was_not_sent_yet() {
    let queue = keeping();
    let beyond = |last_seq| Err(NotAttached::Beyond { last_seq });
    assert_eq!(queue.attach(usize::MAX, 1), beyond(0));
    for character in ["a", "b"] {
        queue.push(text(character)).unwrap();
    }
    for after_seq in [3, u64::MAX] {
        assert_eq!(queue.attach(usize::MAX, after_seq), beyond(2));
    }
    // Nobody is attached by a refusal, and the last event is no limit while more may come.
    let (reader, _) = queue.attach(usize::MAX, 2).unwrap();
    queue.detach(reader);
    queue.finish(Event::Return("1".to_owned()).into());
    assert_eq!(queue.attach(usize::MAX, 4), beyond(3));
    assert_eq!(queue.attach(usize::MAX, 3), Err(NotAttached::Over));
    assert!(queue.attach(usize::MAX, 2).is_ok());
}

#[test]
fn what_is_forgotten_holds_nothing_and_a_reader_that_waits_is_told() {
    let queue = keeping();
    let (reader, _) = queue.attach(1, 0).unwrap();
    queue.push(text("abc")).unwrap();
    queue.push(text("d")).unwrap();
    assert_eq!(readable(&queue, reader).len(), 1);
    queue.forget();
    assert_eq!(queue.held_bytes(), 0);
    assert!(matches!(queue.read(reader), Next::Wait));
    queue.finish(Event::Return("1".repeat(1000)).into());
    let readable = readable(&queue, reader);
    let [(3, Event::Error(failure))] = readable.as_slice() else {
        panic!("{readable:?}");
    };
    assert_eq!(failure.code.as_deref(), Some("unknown-process"));
    assert!(queue.held_bytes() < 1000);
    queue.detach(reader);
}

#[test]
fn a_reader_that_was_sent_all_is_told_nothing_more() {
    let queue = keeping();
    let (reader, _) = queue.attach(usize::MAX, 0).unwrap();
    queue.finish(Event::Return("1".to_owned()).into());
    assert_eq!(readable(&queue, reader).len(), 1);
    queue.forget();
    assert!(matches!(queue.read(reader), Next::Over));
    assert_eq!(queue.held_bytes(), 0);
}

#[test]
fn a_child_waits_with_what_its_parents_reader_gets_and_with_nothing_else() {
    let capacity = Capacity {
        entries: 1,
        bytes: 100,
    };
    let full = Arc::new(PipeQueue::new(capacity, holding()));
    full.push(text("a")).unwrap();
    let of_child =
        |with_output| PassedOn::new(full.clone(), Box::new(|_: usize| Ok(())), with_output);
    let (silent, heard) = (of_child(false), of_child(true));
    for (kind, silent_has_room, heard_has_room) in [
        (EventKind::Stdout, true, false),
        (EventKind::File, true, false),
        (EventKind::Stderr, false, false),
        (EventKind::Message, true, false),
        (EventKind::Notice, true, true),
    ] {
        let has_room = (silent.has_room(kind), heard.has_room(kind));
        assert_eq!(has_room, (silent_has_room, heard_has_room), "{kind:?}");
    }
    for _ in 0..10 {
        silent.push(text("b")).unwrap();
    }
    assert_eq!(full.next(None), Some(text("a")));
    assert!(heard.has_room(EventKind::Stdout) && silent.has_room(EventKind::Stderr));
}

/// A queue in front of which lines are made whole, and the queue.
fn of_whole_lines(entries: usize) -> (WholeLines, Arc<PipeQueue>) {
    let capacity = Capacity {
        entries,
        bytes: 1 << 20,
    };
    let queue = Arc::new(PipeQueue::new(capacity, holding()));
    (WholeLines::new(queue.clone()), queue)
}

fn err(text: &str) -> Event {
    Event::Stderr(text.to_owned())
}

/// What waits in a queue.
fn waiting(queue: &PipeQueue) -> Vec<Event> {
    std::iter::from_fn(|| queue.next(Some(Duration::ZERO))).collect()
}

#[test]
fn pieces_of_standard_error_become_lines() {
    let (lines, queue) = of_whole_lines(100);
    for piece in [
        "thread '",
        "main",
        "' panicked:\n",
        "oh",
        " no\nand",
        " more",
    ] {
        lines.push(err(piece)).unwrap();
    }
    assert_eq!(
        waiting(&queue),
        [err("thread 'main' panicked:\n"), err("oh no\n")]
    );
    // Whatever else comes, comes behind it.
    lines.push(text("out")).unwrap();
    assert_eq!(waiting(&queue), [err("and more"), text("out")]);
    lines.push(err("last")).unwrap();
    lines.finish(Event::Return("1".to_owned()).into());
    assert_eq!(
        waiting(&queue),
        [err("last"), Event::Return("1".to_owned())]
    );
}

#[test]
fn the_beginning_of_a_line_is_not_late_for_long() {
    let (lines, queue) = of_whole_lines(100);
    lines.push(err("name? ")).unwrap();
    lines.end_turn(true).unwrap();
    assert_eq!(waiting(&queue), [err("name? ")]);
    lines.end_turn(true).unwrap();
    assert!(waiting(&queue).is_empty());
    // The first turn that ends may tear what is being written.
    lines.push(err("50 ")).unwrap();
    lines.end_turn(false).unwrap();
    assert!(waiting(&queue).is_empty());
    lines.push(err("%")).unwrap();
    lines.end_turn(false).unwrap();
    assert_eq!(waiting(&queue), [err("50 %")]);
    lines.push(err("a")).unwrap();
    lines.pass_rest().unwrap();
    assert_eq!(waiting(&queue), [err("a")]);
}

#[test]
fn a_long_line_goes_on_in_parts() {
    let (lines, queue) = of_whole_lines(100);
    for _ in 0..5000 {
        lines.push(err("ß")).unwrap();
    }
    let parts = waiting(&queue);
    assert_eq!(parts, [err(&"ß".repeat(2048)), err(&"ß".repeat(2048))]);
    lines.push(err(&"x".repeat(10_000))).unwrap();
    let rest = format!("{}{}", "ß".repeat(904), "x".repeat(10_000));
    assert_eq!(waiting(&queue), [err(&rest)]);
}

#[test]
fn what_has_no_room_in_memory_is_refused_and_kept_no_longer() {
    // More than what every user gets, and than one may hold.
    let budget = Budget::new(1 << 20, Some(64 << 10));
    let holding = SteppedCharge::new(budget.account("ada").empty(Purpose::Queue));
    let capacity = Capacity {
        entries: 100,
        bytes: 1 << 20,
    };
    let lines = WholeLines::new(Arc::new(PipeQueue::new(capacity, holding)));
    lines.push(err("begun")).unwrap();
    let refused = lines.push(err(&"x\n".repeat(100_000))).unwrap_err();
    assert_eq!(refused.code, ErrorCode::LimitEngineMemory);
    lines.end_turn(true).unwrap();
}
