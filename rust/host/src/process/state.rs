//! The state behind one instance: what its calls reach.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use pie_core::{ProcessId, TokenBudget};
use tokio::sync::watch;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use super::event::Event;
use super::holding::Holding;
use super::mailbox::Mailbox;
use super::queue::{Capacity, EventQueue, Keeping};
use super::random::seed_wasi;
use super::served::{Observer, Serving};
use super::stated::Told;
use super::stdio::Output;
use crate::Error;
use crate::budget::{Account, Purpose};
use crate::host::Shared;
use crate::interface::held::Held;
use crate::limits::Limits;
use crate::model::Model;
use crate::program::source::Given as GivenSource;
use crate::sandbox::cpu::CpuMeter;
use crate::sandbox::fault::{calls_limit, cpu_limit, memory_limit, output_limit};
use crate::sandbox::footprint::Footprint;
use crate::sandbox::memory::MemoryLimiter;
use crate::sync::lock;

/// What the host and the holder of a [`super::Process`] share about one process.
pub(crate) struct Record {
    pub(crate) pid: u64,
    pub(crate) launch_seed: u64,
    pub(crate) username: String,
    /// As typed; none once the program has ended.
    args: Mutex<Vec<String>>,
    pub(crate) events: Arc<EventQueue>,
    /// Told of the end, where the process outlives its readers.
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) mailbox: Arc<Mailbox<String>>,
    pub(crate) files: Arc<Mailbox<Vec<u8>>>,
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
    /// The tokens that may enter its contexts; none: any number.
    pub(crate) budget: Option<TokenBudget>,
    /// What it may use.
    pub(crate) limits: Limits,
    /// Set once, to the reason, when the process shall end.
    pub(crate) stop: watch::Sender<Option<Error>>,
}

/// What a launch gives its process.
pub(crate) struct Given {
    pub(crate) launch_seed: u64,
    pub(crate) username: String,
    pub(crate) args: Vec<String>,
    /// How its events are kept, where it outlives its readers.
    pub(crate) serving: Option<Serving>,
    pub(crate) budget: Option<TokenBudget>,
    pub(crate) limits: Limits,
    pub(crate) account: Account,
    pub(crate) stack_bytes: usize,
    /// Bytes of its input, which is held until it ends.
    pub(crate) input_bytes: usize,
}

impl fmt::Debug for Record {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Record")
            .field("pid", &self.pid)
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

impl Record {
    /// The record of a process that begins.
    ///
    /// # Errors
    /// `limit-engine-memory` where its user has no room for one more.
    pub(crate) fn new(pid: u64, launched: Instant, given: Given) -> Result<Self, Error> {
        let Given {
            launch_seed,
            username,
            args,
            serving,
            budget,
            limits,
            account,
            stack_bytes,
            input_bytes,
        } = given;
        let footprint = Footprint::new(&account, stack_bytes as u64)?;
        let args_bytes: usize = args.iter().map(String::len).sum();
        footprint.promise((input_bytes + args_bytes) as u64)?;
        let capacity = Capacity {
            entries: limits.queue_events,
            bytes: limits.queue_bytes,
        };
        let holding = || Holding::new(account.empty(Purpose::Queue));
        let observer = serving.as_ref().map(|serving| serving.observer.clone());
        let events = match serving {
            None => EventQueue::new(capacity, holding()),
            Some(serving) => EventQueue::keeping(
                capacity,
                holding(),
                Keeping {
                    pid,
                    kept_bytes: serving.kept_bytes,
                    log_bytes: serving.log_bytes,
                    observer: serving.observer,
                },
            ),
        };
        Ok(Self {
            pid,
            launch_seed,
            username,
            args: Mutex::new(args),
            events: Arc::new(events),
            observer,
            mailbox: Arc::new(Mailbox::new(capacity, limits.message_bytes, holding())),
            files: Arc::new(Mailbox::new(capacity, limits.message_bytes, holding())),
            cpu: Arc::default(),
            footprint: Arc::new(footprint),
            account,
            launched,
            entered_ns: AtomicU64::new(0),
            n_arrivals: AtomicU64::new(0),
            n_drops: AtomicU64::new(0),
            n_output_bytes: AtomicU64::new(0),
            budget,
            limits,
            stop: watch::Sender::new(None),
        })
    }

    /// True for a process of a server, whose clients are others than who runs the engine.
    pub(crate) fn is_served(&self) -> bool {
        self.observer.is_some()
    }

    /// The arguments of the program.
    pub(crate) fn args(&self) -> Vec<String> {
        lock(&self.args).clone()
    }

    /// The program has ended: what waits for it is dropped, and its observer is told.
    pub(crate) fn ended(&self, last: &Event) {
        *lock(&self.args) = Vec::new();
        self.footprint.release();
        self.mailbox.discard();
        self.files.discard();
        if let Some(observer) = &self.observer {
            observer.ended(self.pid, last);
        }
    }

    /// The client has gone: nothing more will reach the program.
    pub(crate) fn close_input(&self) {
        self.mailbox.close();
        self.files.close();
    }

    /// Ends the process with `reason`, unless it was told to end before.
    pub(crate) fn stop(&self, reason: Error) {
        self.stop.send_if_modified(|stop| {
            let first = stop.is_none();
            stop.get_or_insert(reason);
            first
        });
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

    /// Calls that the program made to the `pie:*` interfaces and to `wasi:io/poll`; drops of handles are not calls.
    pub(crate) fn n_calls(&self) -> u64 {
        self.n_arrivals
            .load(Ordering::Relaxed)
            .saturating_sub(self.n_drops.load(Ordering::Relaxed))
    }

    /// Looks, while the program runs, at the limits that no single call of it meets.
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

/// What the calls of one instance reach. It lives in the store and is thrown away with it.
pub(crate) struct ProcessState {
    pub(crate) wasi: WasiCtx,
    pub(crate) table: ResourceTable,
    pub(crate) memory: MemoryLimiter,
    pub(crate) held: Held,
    pub(crate) host: Arc<Shared>,
    pub(crate) record: Arc<Record>,
    /// The errors that the program was given.
    pub(crate) told: Told,
    /// The program, where a language runtime runs it.
    pub(crate) source: Option<GivenSource>,
    /// The models that know the process.
    joined: Vec<Arc<Model>>,
}

impl Drop for ProcessState {
    /// Everything that the process holds in the engine is released.
    fn drop(&mut self) {
        for model in &self.joined {
            model.with_engine(|engine| engine.end_process(self.process_id()));
        }
    }
}

impl ProcessState {
    /// The state of a new instance, whose output goes to `outputs` (standard output and error).
    pub(crate) fn new(
        host: Arc<Shared>,
        record: Arc<Record>,
        source: Option<GivenSource>,
        outputs: &[Output; 2],
    ) -> Self {
        let limits = &record.limits;
        let mut wasi = WasiCtxBuilder::new();
        // No arguments, environment, folders, network or name lookup: what is not given cannot leak.
        wasi.stdout(outputs[0].clone())
            .stderr(outputs[1].clone())
            .allow_tcp(false)
            .allow_udp(false);
        seed_wasi(&mut wasi, record.launch_seed);
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.resources);
        let memory = MemoryLimiter::new(limits.memory_bytes, record.footprint.clone());
        Self {
            wasi: wasi.build(),
            table,
            memory,
            held: Held::default(),
            told: Told::default(),
            host,
            record,
            source,
            joined: Vec::new(),
        }
    }

    /// Its number, as the core knows it.
    pub(crate) fn process_id(&self) -> ProcessId {
        ProcessId(self.record.pid)
    }

    /// Makes the process known to a model before it makes its first context there.
    ///
    /// # Errors
    /// Those of the core.
    pub(crate) fn join(&mut self, model: &Arc<Model>) -> Result<(), Error> {
        if self.joined.iter().any(|joined| Arc::ptr_eq(joined, model)) {
            return Ok(());
        }
        let user = model.user(&self.record.username);
        model.with_engine(|engine| {
            engine.new_process(self.process_id(), user, self.record.launch_seed)?;
            if let Some(budget) = &self.record.budget {
                engine.set_token_budget(self.process_id(), budget.clone());
            }
            Ok::<_, Error>(())
        })?;
        self.joined.push(model.clone());
        Ok(())
    }

    /// The error of memory that was refused.
    pub(crate) fn memory_refused(&self) -> wasmtime::Error {
        let limits = &self.record.limits;
        match self.memory.refused() {
            Some(refused) => refused.error(limits).into(),
            None => memory_limit(limits.memory_bytes, limits).into(),
        }
    }

    /// Notes that what arrived was the drop of a handle.
    pub(crate) fn count_drop(&self) {
        self.record.n_drops.fetch_add(1, Ordering::Relaxed);
    }
}

impl WasiView for ProcessState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}
