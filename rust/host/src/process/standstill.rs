//! Who waits for whom, where nobody but the programs themselves can wake them.
//!
//! A process sleeps here while all that it waits for is the end of others or messages. Once every process sleeps and no
//! launch can come from outside, nothing will ever wake any of them: the youngest of those that wait for messages is
//! ended with an error that says who waits for what, which wakes whoever waits for it.
//!
//! Sleep is exact. A wake is noted in the table under the lock of those who fall asleep, in the very call that brings
//! it about, so that a process whose message has come never counts as asleep, however long it takes to run again. What
//! a timer, a client, a driver or a queue with room can wake never sleeps here. Nor does a process that was told to
//! end: its end wakes others, or leaves them alone, and when it has left, those who are left are looked at again.
//!
//! | state | until |
//! |---|---|
//! | awake | it polls what only others can bring about, and none of it is there: asleep |
//! | asleep | something that it waits for comes, or its wait is dropped: awake |
//! | asleep | it is told to end, whoever tells it: it is about to leave, and counts as awake |

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Wake, Waker};

use pie_core::ErrorCode;

use super::record::ProcessRecord;
use crate::Error;
use crate::futures::WaitsFor;
use crate::sync::lock;

/// Processes that a message lists.
const LISTED: usize = 8;
/// Characters of the code of an error, which a program may have made up.
const CODE_CHARS: usize = 60;

/// The processes of a host that live, and what they wait for.
#[derive(Default)]
pub(crate) struct Standstill(Mutex<State>);

#[derive(Default)]
struct State {
    processes: BTreeMap<u64, Entry>,
    n_asleep: usize,
    /// Those beside which others may be launched.
    n_in_company: usize,
    /// The last that ended with an error while others lived, and its code: what others wait for may have been theirs.
    failed: VecDeque<(u64, String)>,
    /// What cannot be, and was.
    n_faults: u64,
}

struct Entry {
    record: Weak<ProcessRecord>,
    is_alone: bool,
    /// What it sleeps for; none while it is awake.
    sleeps_for: Option<Vec<WaitsFor>>,
}

impl Entry {
    /// It was told to end, and leaves as soon as its task runs.
    fn is_leaving(&self) -> bool {
        let record = self.record.upgrade();
        record.is_none_or(|record| record.is_stopped())
    }
}

impl Standstill {
    /// A process begins.
    pub(crate) fn enter(&self, record: &Arc<ProcessRecord>) {
        let mut state = lock(&self.0);
        let is_alone = record.kin.is_alone;
        state.n_in_company += usize::from(!is_alone);
        let entry = Entry {
            record: Arc::downgrade(record),
            is_alone,
            sleeps_for: None,
        };
        state.processes.insert(record.pid, entry);
    }

    /// A process is about to leave that has ended with an error.
    pub(crate) fn fail(&self, pid: u64, code: &str) {
        let mut state = lock(&self.0);
        // What nothing could wake, or was cancelled, has not kept others waiting.
        let codes = [ErrorCode::Deadlock, ErrorCode::Cancelled];
        let is_effect = codes.iter().any(|effect| effect.as_str() == code);
        let is_alone = state
            .processes
            .get(&pid)
            .is_some_and(|entry| entry.is_alone);
        if is_effect || !is_alone {
            return;
        }
        if state.failed.len() == LISTED {
            state.failed.pop_front();
        }
        let code = code.chars().take(CODE_CHARS).collect();
        state.failed.push_back((pid, code));
    }

    /// A process has ended, and whoever waited for it has been woken.
    pub(crate) fn leave(&self, pid: u64) {
        let mut state = lock(&self.0);
        if let Some(entry) = state.processes.remove(&pid) {
            state.n_in_company -= usize::from(!entry.is_alone);
            state.n_asleep -= usize::from(entry.sleeps_for.is_some());
        }
        if state.processes.is_empty() {
            state.failed.clear();
        }
        state.end_standstill();
    }

    /// How often the table was at odds with itself: 0, unless the host has a fault.
    pub(crate) fn n_faults(&self) -> u64 {
        lock(&self.0).n_faults
    }

    /// Does `work` of process `pid`, which wakes for `waits_for` alone.
    pub(crate) async fn sleeping<T>(
        self: &Arc<Self>,
        pid: u64,
        waits_for: Vec<WaitsFor>,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = pin!(work);
        // Also where the wait is dropped.
        let _awake_at_the_end = Sleeper {
            standstill: self,
            pid,
        };
        poll_fn(|context| {
            lock(&self.0).wake(pid);
            let alarm = Arc::new(Alarm {
                standstill: self.clone(),
                pid,
                has_rung: AtomicBool::new(false),
                waker: context.waker().clone(),
            });
            let waker = Waker::from(alarm.clone());
            let polled = work.as_mut().poll(&mut Context::from_waker(&waker));
            if polled.is_pending() {
                let mut state = lock(&self.0);
                if !alarm.has_rung.load(Ordering::Relaxed) {
                    state.sleep(pid, waits_for.clone());
                }
            }
            polled
        })
        .await
    }
}

/// A process that sleeps now and then. Dropping it wakes it.
struct Sleeper<'a> {
    standstill: &'a Standstill,
    pid: u64,
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        lock(&self.standstill.0).wake(self.pid);
    }
}

/// Wakes a task, and notes first that its process is awake.
struct Alarm {
    standstill: Arc<Standstill>,
    pid: u64,
    has_rung: AtomicBool,
    waker: Waker,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = lock(&self.standstill.0);
        self.has_rung.store(true, Ordering::Relaxed);
        state.wake(self.pid);
        drop(state);
        self.waker.wake_by_ref();
    }
}

impl State {
    fn wake(&mut self, pid: u64) {
        let entry = self.processes.get_mut(&pid);
        if entry.is_some_and(|entry| entry.sleeps_for.take().is_some()) {
            self.n_asleep -= 1;
        }
    }

    fn sleep(&mut self, pid: u64, waits_for: Vec<WaitsFor>) {
        let Some(entry) = self.processes.get_mut(&pid) else {
            return self.count_fault("who sleeps has entered and not left");
        };
        if entry.sleeps_for.replace(waits_for).is_none() {
            self.n_asleep += 1;
        }
        self.end_standstill();
    }

    /// Ends the youngest process that waits for no other, where all sleep and nobody can come.
    fn end_standstill(&mut self) {
        let n_processes = self.processes.len();
        if n_processes == 0 || self.n_asleep < n_processes || self.n_in_company > 0 {
            return;
        }
        if self.processes.values().any(Entry::is_leaving) {
            return;
        }
        let waits_for_others = |entry: &Entry| {
            let mut waits = entry.sleeps_for.iter().flatten();
            waits.any(|wait| matches!(wait, WaitsFor::End(_)))
        };
        let last = self.processes.values().rev();
        let mut last = last.filter(|entry| !waits_for_others(entry));
        // Who waits for the end of others waits for younger ones.
        let Some(record) = last.next().and_then(|entry| entry.record.upgrade()) else {
            return self.count_fault("the youngest process has no children");
        };
        let message = format!(
            "nothing can wake this process: {}; nobody is left who could send a message.{} Send what is waited for, or cancel whoever waits",
            self.described(),
            self.described_failures()
        );
        record.stop(Error::new(ErrorCode::Deadlock, message));
        // It is about to end, and wakes others by that.
        self.wake(record.pid);
    }

    /// This cannot be.
    fn count_fault(&mut self, expected: &str) {
        debug_assert!(false, "{expected}");
        self.n_faults += 1;
    }

    fn described(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        for (pid, entry) in self.processes.iter().take(LISTED) {
            let waits = entry.sleeps_for.iter().flatten().take(LISTED);
            let waits: Vec<String> = waits.map(described).collect();
            lines.push(format!("process {pid} waits for {}", waits.join(" or ")));
        }
        let n_more = self.processes.len().saturating_sub(LISTED);
        if n_more > 0 {
            lines.push(format!("and so do {n_more} more"));
        }
        lines.join(", ")
    }

    fn described_failures(&self) -> String {
        let failures = self.failed.iter();
        let failures: Vec<String> = failures
            .map(|(pid, code)| format!("process {pid} with {code:?}"))
            .collect();
        if failures.is_empty() {
            return String::new();
        }
        format!(
            " Before, these ended with an error: {}; who waits for a child is told of its error.",
            failures.join(", ")
        )
    }
}

fn described(wait: &WaitsFor) -> String {
    match wait {
        WaitsFor::End(pid) => format!("the end of process {pid}"),
        WaitsFor::Message(topic) => format!("a message of the topic {topic:?}"),
        WaitsFor::Broadcast(topic) => format!("a broadcast of the topic {topic:?}"),
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::pin::Pin;

    use tokio::sync::oneshot;

    use super::*;
    use crate::Limits;
    use crate::process::testing::record;

    /// A host of these processes.
    struct World {
        standstill: Arc<Standstill>,
        records: Vec<Arc<ProcessRecord>>,
    }

    impl World {
        fn new(alone: &[bool]) -> Self {
            let standstill = Arc::new(Standstill::default());
            let number = |at: usize| at as u64 + 1;
            let alone = alone.iter().enumerate();
            let records: Vec<_> = alone
                .map(|(at, is_alone)| record(number(at), Limits::default(), *is_alone))
                .collect();
            for record in &records {
                standstill.enter(record);
            }
            Self {
                standstill,
                records,
            }
        }

        fn sleeping<'a>(
            &self,
            pid: u64,
            waits_for: WaitsFor,
            work: impl Future<Output = ()> + 'a,
        ) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
            let standstill = self.standstill.clone();
            Box::pin(async move { standstill.sleeping(pid, vec![waits_for], work).await })
        }

        /// What the process was told to end for.
        fn told(&self, pid: u64) -> Option<String> {
            let record = &self.records[pid as usize - 1];
            let reason = record.stop.borrow().clone()?;
            assert_eq!(reason.code, ErrorCode::Deadlock);
            Some(reason.message)
        }
    }

    fn is_pending(sleep: &mut Pin<Box<dyn Future<Output = ()> + '_>>) -> bool {
        let polled = sleep.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        polled.is_pending()
    }

    fn message() -> WaitsFor {
        WaitsFor::Message("jobs".into())
    }

    #[test]
    fn the_youngest_that_waits_for_a_message_is_told_who_waits_for_what() {
        let world = World::new(&[true; 3]);
        let mut sleeps = [
            world.sleeping(1, WaitsFor::End(2), pending()),
            world.sleeping(2, message(), pending()),
            world.sleeping(3, WaitsFor::Broadcast("news".into()), pending()),
        ];
        assert!(sleeps.iter_mut().all(is_pending));
        let told = world.told(3).unwrap();
        for part in [
            "process 1 waits for the end of process 2",
            "process 2 waits for a message of the topic \"jobs\"",
            "process 3 waits for a broadcast of the topic \"news\"",
        ] {
            assert!(told.contains(part), "{told}");
        }
        assert_eq!((world.told(1), world.told(2)), (None, None));
        // It ends, and the others are looked at again.
        world.standstill.leave(3);
        assert!(world.told(2).is_some() && world.told(1).is_none());
    }

    #[test]
    fn who_was_woken_does_not_sleep_however_late_it_runs() {
        let world = World::new(&[true; 2]);
        let (push, pulled) = oneshot::channel();
        let pulled = async { pulled.await.unwrap() };
        let mut child = world.sleeping(2, message(), pulled);
        let mut parent = world.sleeping(1, WaitsFor::End(2), pending());
        assert!(is_pending(&mut child));
        push.send(()).unwrap();
        assert!(is_pending(&mut parent));
        assert_eq!(world.told(2), None);
        assert!(!is_pending(&mut child));
        assert_eq!((world.told(1), world.told(2)), (None, None));
    }

    #[test]
    fn who_gives_its_wait_up_is_awake() {
        let world = World::new(&[true; 2]);
        let mut child = world.sleeping(2, message(), pending());
        assert!(is_pending(&mut child));
        drop(child);
        let mut parent = world.sleeping(1, WaitsFor::End(2), pending());
        assert!(is_pending(&mut parent));
        assert_eq!((world.told(1), world.told(2)), (None, None));
    }

    #[test]
    fn nobody_is_told_while_one_that_was_told_to_end_has_not_left() {
        let world = World::new(&[true; 3]);
        let mut cancelled = world.sleeping(2, message(), pending());
        let mut other = world.sleeping(3, message(), pending());
        assert!(is_pending(&mut cancelled) && is_pending(&mut other));
        world.records[1].stop(Error::new(ErrorCode::Cancelled, "by its parent"));
        let mut parent = world.sleeping(1, WaitsFor::End(2), pending());
        assert!(is_pending(&mut parent));
        assert_eq!((world.told(1), world.told(3)), (None, None));
        // It ends and wakes its parent, which falls asleep again.
        drop((cancelled, parent));
        world.standstill.leave(2);
        assert_eq!((world.told(1), world.told(3)), (None, None));
        let mut parent = world.sleeping(1, WaitsFor::End(3), pending());
        assert!(is_pending(&mut parent));
        assert!(world.told(3).is_some() && world.told(1).is_none());
    }

    #[test]
    fn those_who_are_left_are_looked_at_when_one_has_left_that_was_told_to_end() {
        let world = World::new(&[true; 2]);
        let mut sleeps = [
            world.sleeping(1, message(), pending()),
            world.sleeping(2, message(), pending()),
        ];
        assert!(is_pending(&mut sleeps[0]));
        world.records[1].stop(Error::new(ErrorCode::LimitEngineMemory, "too much"));
        assert!(is_pending(&mut sleeps[1]));
        assert_eq!(world.told(1), None);
        world.standstill.leave(2);
        assert!(world.told(1).is_some());
    }

    #[test]
    fn one_that_ended_with_an_error_before_is_named() {
        let world = World::new(&[true; 4]);
        let mut boss = world.sleeping(1, message(), pending());
        assert!(is_pending(&mut boss));
        for (pid, code) in [(2, "token-budget"), (3, "cancelled"), (4, "deadlock")] {
            world.standstill.fail(pid, code);
            world.standstill.leave(pid);
        }
        let told = world.told(1).unwrap();
        assert!(told.contains("process 2 with \"token-budget\";"), "{told}");
        // Of a program that has ended nothing is kept for the next.
        drop(boss);
        world.standstill.leave(1);
        world.standstill.enter(&world.records[1]);
        let mut next = world.sleeping(2, message(), pending());
        assert!(is_pending(&mut next));
        assert!(!world.told(2).unwrap().contains("ended with an error"));
    }

    #[test]
    fn nothing_is_told_where_others_may_be_launched() {
        let world = World::new(&[true, false]);
        let mut one = world.sleeping(1, message(), pending());
        let mut other = world.sleeping(2, message(), pending());
        assert!(is_pending(&mut one) && is_pending(&mut other));
        assert_eq!((world.told(1), world.told(2)), (None, None));
        world.standstill.leave(2);
        assert!(world.told(1).is_some());
    }
}
