//! What is known of one process from its launch to its end.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use pie_core::{ErrorCode, TokenBudget};
use tokio::sync::watch;

use super::ending::ProcessEnding;
use super::kin::Kin;
use super::launch::Launch;
use super::mailbox::{DISCONNECTED, Mailbox, NO_CLIENT};
use super::mistakes::{Mistake, Mistakes};
use super::queue::{Capacity, EventQueue, WholeLines};
use super::reading::Reading;
use super::serving::Observer;
use crate::Error;
use crate::budget::{Account, Purpose};
use crate::event::{Event, EventKind};
use crate::http_in::queue::RequestQueue;
use crate::limits::Limits;
use crate::mcp::clients::McpClientServers;
use crate::sandbox::cpu::CpuMeter;
use crate::sandbox::fault::{calls_limit, cpu_limit, output_limit};
use crate::sandbox::footprint::Footprint;
use crate::stepped_charge::SteppedCharge;
use crate::sync::lock;

/// What the host and the holder of a [`super::Process`] share about one process.
pub(crate) struct ProcessRecord {
    pub(crate) pid: u64,
    pub(crate) launch_seed: u64,
    pub(crate) username: String,
    /// As typed; none once the program has ended.
    args: Mutex<Vec<String>>,
    pub(crate) events: WholeLines,
    /// Told of the end, where the process outlives its readers.
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) mailbox: Arc<Mailbox<String>>,
    pub(crate) files: Arc<Mailbox<Vec<u8>>>,
    /// The requests by HTTP that it answers; none: it serves none.
    pub(crate) requests: Option<Arc<RequestQueue>>,
    pub(crate) cpu: Arc<CpuMeter>,
    /// What its user is charged with for its instance.
    pub(crate) footprint: Arc<Footprint>,
    /// That of its user in the budget of the engine.
    pub(crate) account: Account,
    pub(crate) launched: Instant,
    /// Nanoseconds from the launch to the call of the program's entry; 0 before.
    pub(crate) entered_ns: AtomicU64,
    /// What arrived at the `pie:*` interfaces and at `wasi:io/poll`: calls, and drops of handles.
    pub(crate) n_arrivals: AtomicU64,
    /// The drops among them.
    pub(crate) n_drops: AtomicU64,
    /// What the program has written to its outputs and to its client.
    pub(crate) n_output_bytes: AtomicU64,
    /// The likely mistakes that it was warned of.
    warned: Mistakes,
    /// The tokens that may enter its contexts; none: any number.
    pub(crate) budget: Option<TokenBudget>,
    /// What it may use.
    pub(crate) limits: Limits,
    pub(crate) kin: Kin,
    /// The servers of MCP that its client runs.
    pub(crate) mcp: Option<Arc<McpClientServers>>,
    /// Those that it has started and that end with it.
    children: Mutex<Vec<Weak<Self>>>,
    /// The program that has started it has waited for its end, or has ended it.
    is_heeded: AtomicBool,
    /// Set once, to the reason, when the process shall end.
    pub(crate) stop: watch::Sender<Option<Error>>,
}

/// What the host grants a process that begins.
pub(crate) struct Granted {
    pub(crate) launched: Instant,
    pub(crate) limits: Limits,
    /// That of its user.
    pub(crate) account: Account,
    pub(crate) stack_bytes: usize,
    pub(crate) kin: Kin,
    /// The budget that its own is a part of.
    pub(crate) budget: Option<TokenBudget>,
}

impl fmt::Debug for ProcessRecord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ProcessRecord")
            .field("pid", &self.pid)
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

impl ProcessRecord {
    /// The record of a process that begins, from a complete launch, and its events, for whoever reads them. The
    /// arguments are taken out of the launch.
    ///
    /// # Errors
    /// `limit-engine-memory` where its user has no room for one more.
    pub(crate) fn new<R: Reading>(
        pid: u64,
        launch: &mut Launch,
        granted: Granted,
        reading: R,
    ) -> Result<(Self, Arc<R::Queue>), Error> {
        let Granted {
            launched,
            limits,
            account,
            stack_bytes,
            kin,
            budget,
        } = granted;
        let footprint = Footprint::new(&account, stack_bytes as u64)?;
        footprint.promise((launch.input.len() + launch.args_bytes()) as u64)?;
        let observer = reading.observer();
        // The tokens of a served process are counted also where it has no cap.
        let most_tokens = launch
            .token_budget
            .or(observer.is_some().then_some(u64::MAX));
        let budget = match budget {
            Some(whole) => Some(whole.part(most_tokens.unwrap_or(u64::MAX))),
            None => most_tokens.map(TokenBudget::new),
        };
        let capacity = Capacity {
            entries: limits.queue_events,
            bytes: limits.queue_bytes,
        };
        let holding = || SteppedCharge::new(account.empty(Purpose::Queue));
        let events = Arc::new(reading.queue(pid, capacity, holding()));
        let record = Self {
            pid,
            launch_seed: launch.seed.unwrap_or_default(),
            username: launch.username.clone().unwrap_or_default(),
            args: Mutex::new(std::mem::take(&mut launch.args)),
            events: WholeLines::new(events.clone()),
            observer,
            mailbox: Arc::new(Mailbox::new(capacity, limits.message_bytes, holding())),
            files: Arc::new(Mailbox::new(capacity, limits.message_bytes, holding())),
            requests: launch.requests.take(),
            cpu: Arc::default(),
            footprint: Arc::new(footprint),
            account,
            launched,
            entered_ns: AtomicU64::new(0),
            n_arrivals: AtomicU64::new(0),
            n_drops: AtomicU64::new(0),
            n_output_bytes: AtomicU64::new(0),
            warned: Mistakes::default(),
            budget,
            limits,
            kin,
            mcp: launch.mcp.take(),
            children: Mutex::default(),
            is_heeded: AtomicBool::new(false),
            stop: watch::Sender::new(None),
        };
        Ok((record, events))
    }

    /// True for a process of a server, and for children of one: its clients are not the ones who run the engine.
    pub(crate) fn is_served(&self) -> bool {
        self.observer.is_some() || self.kin.lineage.is_served
    }

    /// The arguments of the program.
    pub(crate) fn args(&self) -> Vec<String> {
        lock(&self.args).clone()
    }

    /// The program has ended: what waits for it is dropped, its places are free, and its observer is told; whoever
    /// waits for its end hears of it last, and finds room for another. Gives the last event as readers get it.
    pub(crate) fn ended(&self, last: Event) -> Arc<Event> {
        *lock(&self.args) = Vec::new();
        self.footprint.release();
        self.mailbox.discard();
        self.files.discard();
        if let Some(requests) = &self.requests {
            requests.close();
        }
        self.kin.end();
        // None are left, but where its task was dropped.
        self.stop_children();
        if let Some(observer) = &self.observer {
            observer.ended(self.pid, &last);
        }
        let last = if self.is_served() {
            last.without_internals()
        } else {
            last
        };
        let last = Arc::new(last);
        self.kin.settle(&last);
        last
    }

    /// Notes a child that ends with it.
    pub(crate) fn keep_child(&self, child: &Arc<Self>) {
        let mut children = lock(&self.children);
        children.retain(Self::lives);
        children.push(Arc::downgrade(child));
    }

    /// True while a child lives that ends with it.
    pub(crate) fn has_children(&self) -> bool {
        lock(&self.children).iter().any(Self::lives)
    }

    /// The program that has started it waits for its end, or ends it.
    pub(crate) fn heed(&self) {
        self.is_heeded.store(true, Ordering::Relaxed);
    }

    /// Notes a generator that the program drops without having run it. It is told of that when it ends, unless with an
    /// error: then a call on the generator may be what has failed. One that answers requests may never end, and is told
    /// at once.
    pub(crate) fn note_unrun_generator(&self) {
        if self.requests.is_some() {
            self.warn(Mistake::GeneratorNotRun);
        } else {
            self.warned.hold_unrun_generator();
        }
    }

    /// Warns of what is a mistake in a program that ends without an error.
    pub(crate) fn warn_at_end(&self) {
        if self.warned.has_unrun_generator() {
            self.warn(Mistake::GeneratorNotRun);
        }
        self.warn_of_unheeded_children();
    }

    /// Warns of a child that ends with it, which lives, and for which the program has never waited.
    fn warn_of_unheeded_children(&self) {
        let children: Vec<Weak<Self>> = lock(&self.children).clone();
        let is_unheeded = |child: &Weak<Self>| {
            let child = child.upgrade();
            child.is_some_and(|child| {
                child.kin.ending().is_some() && !child.is_heeded.load(Ordering::Relaxed)
            })
        };
        if children.iter().any(is_unheeded) {
            self.warn(Mistake::ChildNotAwaited);
        }
    }

    fn lives(child: &Weak<Self>) -> bool {
        let child = child.upgrade();
        child.is_some_and(|child| child.kin.ending().is_some())
    }

    /// Ends its children, and waits until they have ended, theirs before them.
    pub(crate) async fn end_children(&self) {
        for ending in self.stop_children() {
            // What is heard is that it has ended, and where its task was dropped, that nothing runs any more.
            drop(ending.heard().await);
        }
    }

    /// Tells its children to end; gives what to wait for.
    fn stop_children(&self) -> Vec<Arc<ProcessEnding>> {
        let children = std::mem::take(&mut *lock(&self.children));
        let children = children.iter().filter_map(Weak::upgrade);
        let stopped = children.filter_map(|child| {
            let message = format!(
                "the process {} that started this one has ended; a child that goes on is spawned detached",
                self.pid
            );
            child.stop(Error::new(ErrorCode::Cancelled, message));
            child.kin.ending()
        });
        stopped.collect()
    }

    /// The client has disconnected, or the program is a child, which has none: nothing more will reach the program.
    pub(crate) fn close_input(&self) {
        let is_child = self.kin.lineage.depth > 0;
        let why = if is_child { NO_CLIENT } else { DISCONNECTED };
        self.mailbox.close(why);
        self.files.close(why);
    }

    /// Ends the process with `reason`, unless it was told to end before.
    pub(crate) fn stop(&self, reason: Error) {
        self.stop.send_if_modified(|stop| {
            let first = stop.is_none();
            stop.get_or_insert(reason);
            first
        });
    }

    /// True once the process was told to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.borrow().is_some()
    }

    /// Waits until the process shall end; gives the reason.
    pub(crate) async fn stopped(&self) -> Error {
        let mut stop = self.stop.subscribe();
        let reason = stop
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|reason| reason.clone());
        match reason {
            Some(reason) => reason,
            None => std::future::pending().await,
        }
    }

    /// The entry of the program is called now.
    pub(crate) fn note_entry(&self) {
        let entered_ns = u64::try_from(self.launched.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.entered_ns.store(entered_ns, Ordering::Relaxed);
    }

    /// Calls that the program made to the `pie:*` interfaces and to `wasi:io/poll`; drops of handles are not calls.
    pub(crate) fn n_calls(&self) -> u64 {
        self.n_arrivals
            .load(Ordering::Relaxed)
            .saturating_sub(self.n_drops.load(Ordering::Relaxed))
    }

    /// Checks, while the program runs, the limits that no single call of it meets.
    ///
    /// # Errors
    /// `limit-cpu`, `limit-calls`, `limit-engine-memory`.
    pub(crate) fn check_slice(&self) -> Result<(), Error> {
        let limits = &self.limits;
        self.footprint
            .settle(self.cpu.met_bytes_with_running_poll())?;
        if limits
            .cpu
            .is_some_and(|limit| self.cpu.used_with_running_poll() > limit)
        {
            return Err(cpu_limit(limits));
        }
        if self.n_calls() > limits.calls {
            return Err(calls_limit(limits));
        }
        Ok(())
    }

    /// Charges, after a turn of the program, the memory that it met. Where there is no room for it, the process ends.
    pub(crate) fn settle_memory(&self) {
        if let Err(error) = self.footprint.settle(self.cpu.met_bytes()) {
            self.stop(error);
        }
    }

    /// What the program has written to its standard error without an end of the line is told after a turn of it, unless
    /// it writes on. Where there is no room for it, the process ends.
    pub(crate) fn settle_lines(&self, waits: bool) {
        if let Err(error) = self.events.end_turn(waits) {
            self.stop(error);
        }
    }

    /// Tells of a likely mistake on the standard error of the program, once in its life. It waits for no room: where
    /// there is none, the next one is told.
    pub(crate) fn warn(&self, mistake: Mistake) {
        if !self.events.has_room(EventKind::Stderr) || !self.warned.note(mistake) {
            return;
        }
        if let Err(error) = self.events.pass_rest() {
            // That was written by the program itself.
            self.stop(error);
            return;
        }
        let line = format!("warning: {}\n", mistake.advice());
        // Where its user has no memory left for a line, it ends with the error of that soon enough.
        drop(self.events.push(Event::Stderr(line)));
    }

    /// Counts what the program writes.
    ///
    /// # Errors
    /// `limit-output` beyond what it may write in its life.
    pub(crate) fn count_output(&self, n_bytes: usize) -> Result<(), Error> {
        let before = self
            .n_output_bytes
            .fetch_add(n_bytes as u64, Ordering::Relaxed);
        if before.saturating_add(n_bytes as u64) <= self.limits.output_bytes {
            return Ok(());
        }
        Err(output_limit(&self.limits))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::budget::Budget;
    use crate::process::testing::detached_child;

    /// Who looks, when it is told of an end, whether others were told before.
    #[derive(Default)]
    struct Looking {
        ending: OnceLock<Arc<ProcessEnding>>,
        was_told_first: AtomicBool,
        n_lines: AtomicU64,
    }

    impl Observer for Looking {
        fn stderr(&self, _: u64, _: &str) {
            self.n_lines.fetch_add(1, Ordering::Relaxed);
        }

        fn ended(&self, _: u64, _: &Event) {
            let is_first = self.ending.get().is_none_or(|ending| !ending.is_settled());
            self.was_told_first.store(is_first, Ordering::Relaxed);
        }
    }

    #[test]
    fn who_waits_for_an_end_hears_of_it_when_the_place_is_free() {
        let observer = Arc::new(Looking::default());
        let (process, ending) = detached_child(&Budget::new(16 << 20, None), observer.clone());
        observer.ending.set(ending.clone()).unwrap();
        process.record().ended(Event::Return("1".to_owned()));
        assert!(ending.is_settled() && observer.was_told_first.load(Ordering::Relaxed));
    }

    #[test]
    fn a_program_is_warned_of_each_mistake_once() {
        let observer = Arc::new(Looking::default());
        let (process, _ending) = detached_child(&Budget::new(16 << 20, None), observer.clone());
        for (mistake, n_lines) in [
            (Mistake::OnlyInstructions, 1),
            (Mistake::OnlyInstructions, 1),
            (Mistake::ChildNotAwaited, 2),
        ] {
            process.record().warn(mistake);
            assert_eq!(observer.n_lines.load(Ordering::Relaxed), n_lines);
        }
    }

    #[test]
    fn what_a_child_has_left_is_held_for_those_who_can_ask_for_it() {
        let budget = Budget::new(64 << 20, None);
        let (process, ending) = detached_child(&budget, Arc::new(Looking::default()));
        let last = process.record().ended(Event::Return("x".repeat(1 << 20)));
        process.record().events.finish(last);
        // Its parent is there no more; the server keeps the process.
        drop(ending);
        assert!((1 << 20..2 << 20).contains(&budget.held_bytes()));
        process.forget();
        assert_eq!(budget.held_bytes(), 0);
    }
}
