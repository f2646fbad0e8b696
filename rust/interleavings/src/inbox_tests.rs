//! Submitters, drivers, answers and a stop on one inbox.

use std::collections::BTreeMap;
use std::sync::Arc;

use loom::thread;
use pie_core::{ContextId, RequestId, Submission};

use crate::inbox::{Inbox, Woken};
use crate::sync::{Instant, Mutex, lock};

/// As many as a submitter of a test pushes.
const N_EACH: u64 = 2;
const ROOMY: usize = 100;

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

fn join(threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

/// The request that the `n`-th push of a submitter is.
fn request(submitter: u64, n: u64) -> RequestId {
    RequestId(10 * submitter + n)
}

fn push(inbox: &Inbox, request: RequestId) -> bool {
    inbox.push(request, Submission::Flush(ContextId(request.0)))
}

/// What was taken is what was pushed: all of it, once, and in the order of each submitter.
fn assert_all(taken: &[RequestId], n_submitters: u64) {
    let mut by_submitter: BTreeMap<u64, Vec<RequestId>> = BTreeMap::new();
    for &request in taken {
        by_submitter
            .entry(request.0 / 10)
            .or_default()
            .push(request);
    }
    let expected = (0..n_submitters).map(|submitter| {
        let requests = (0..N_EACH).map(|n| request(submitter, n));
        (submitter, requests.collect::<Vec<_>>())
    });
    assert_eq!(by_submitter, expected.collect());
}

/// An inbox with the core behind it: what has reached it, and whether a batch was answered.
struct Model {
    inbox: Inbox,
    core: Mutex<Core>,
}

#[derive(Default)]
struct Core {
    taken: Vec<RequestId>,
    is_answered: bool,
}

impl Model {
    fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self {
            inbox: Inbox::new(capacity),
            core: Mutex::default(),
        })
    }

    /// What every entry to the core does first.
    fn drain<T>(&self, work: impl FnOnce(&mut Core) -> T) -> T {
        let mut core = lock(&self.core);
        let taken = self.inbox.take().into_iter().map(|(request, _)| request);
        core.taken.extend(taken);
        work(&mut core)
    }

    /// What a program does.
    fn submit(&self, request: RequestId) {
        if !push(&self.inbox, request) {
            self.drain(|_| ());
        }
    }

    fn submit_all(self: &Arc<Self>, submitter: u64) -> thread::JoinHandle<()> {
        let model = self.clone();
        thread::spawn(move || (0..N_EACH).for_each(|n| model.submit(request(submitter, n))))
    }

    /// What a driver does until there is something that it waits for. False: the inbox was stopped.
    fn drive_until(&self, is_there: impl Fn(&Core) -> bool) -> bool {
        while !self.drain(|core| is_there(core)) {
            if self.inbox.wait(Instant::NEVER) == Woken::Stopped {
                return false;
            }
        }
        true
    }
}

#[test]
fn a_driver_that_waits_gets_everything() {
    check(|| {
        let model = Model::new(ROOMY);
        let submitters = [model.submit_all(0), model.submit_all(1)];
        assert!(model.drive_until(|core| core.taken.len() as u64 == 2 * N_EACH));
        join(submitters);
        assert_all(&lock(&model.core).taken, 2);
    });
}

#[test]
fn what_a_full_inbox_has_its_submitter_bring_is_brought_once_and_in_order() {
    check(|| {
        let model = Model::new(1);
        let submitters = [model.submit_all(0), model.submit_all(1)];
        assert!(model.drive_until(|core| core.taken.len() as u64 == 2 * N_EACH));
        join(submitters);
        assert_all(&lock(&model.core).taken, 2);
    });
}

#[test]
fn a_stop_ends_every_driver_and_loses_nothing() {
    check(|| {
        let model = Model::new(ROOMY);
        let submitter = model.submit_all(0);
        let other = thread::spawn({
            let model = model.clone();
            move || assert!(!model.drive_until(|_| false))
        });
        let stopper = thread::spawn({
            let model = model.clone();
            move || model.inbox.stop()
        });
        assert!(!model.drive_until(|_| false));
        assert!(model.inbox.is_stopped());
        join([submitter, other, stopper]);
        model.drain(|core| assert_all(&core.taken, 1));
        assert_eq!(model.inbox.wait(Instant::NEVER), Woken::Stopped);
    });
}

#[test]
fn an_answer_wakes_the_driver() {
    check(|| {
        let model = Model::new(ROOMY);
        let answering = thread::spawn({
            let model = model.clone();
            move || {
                model.drain(|core| core.is_answered = true);
                model.inbox.ring();
            }
        });
        let submitter = model.submit_all(0);
        assert!(model.drive_until(|core| core.is_answered && core.taken.len() as u64 == N_EACH));
        join([answering, submitter]);
        assert_all(&lock(&model.core).taken, 1);
    });
}

#[test]
fn a_push_that_a_deadline_races_with_is_told_then_or_next_time() {
    check(|| {
        let model = Model::new(ROOMY);
        let submitter = model.submit_all(0);
        let woken = model.inbox.wait(Instant::soon());
        assert_ne!(woken, Woken::Stopped);
        if woken == Woken::TimedOut || model.drain(|core| core.taken.len() as u64) < N_EACH {
            assert_eq!(model.inbox.wait(Instant::NEVER), Woken::Rung);
        }
        join([submitter]);
        model.drain(|core| assert_all(&core.taken, 1));
    });
}

#[test]
fn a_bell_that_one_driver_leaves_at_its_deadline_reaches_the_other() {
    check(|| {
        let model = Model::new(ROOMY);
        let other = thread::spawn({
            let model = model.clone();
            move || assert_eq!(model.inbox.wait(Instant::NEVER), Woken::Rung)
        });
        let ringing = thread::spawn({
            let model = model.clone();
            move || model.inbox.ring()
        });
        // Every bell is told to one of them, and each that was told hears of the next.
        if model.inbox.wait(Instant::soon()) == Woken::Rung {
            model.inbox.ring();
        }
        join([other, ringing]);
    });
}

#[test]
fn a_deadline_passes_where_nothing_happens_and_a_stop_comes_before_it() {
    check(|| {
        let model = Model::new(ROOMY);
        assert_eq!(model.inbox.wait(Instant::soon()), Woken::TimedOut);
        model.inbox.ring();
        model.inbox.ring();
        assert_eq!(model.inbox.wait(Instant::soon()), Woken::Rung);
        assert_eq!(model.inbox.wait(Instant::soon()), Woken::TimedOut);
        model.inbox.ring();
        model.inbox.stop();
        assert_eq!(model.inbox.wait(Instant::soon()), Woken::Stopped);
    });
}
