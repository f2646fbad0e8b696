//! The host: models, programs and processes of one engine. Several live in one process; nothing is shared between them.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pie_core::{ErrorCode, TokenBudget};
use tokio::runtime::{Handle, Runtime};

use crate::budget::Budget;
use crate::interface;
use crate::model::registry::Models;
use crate::model::state::ModelState;
use crate::model::{Model, ModelConfig, dummy, watch};
use crate::numbering::{Numbering, Numbers};
use crate::process::standing::Standings;
use crate::process::state::{Given, Record};
use crate::process::task::{self, Ending};
use crate::process::{Process, Reader, ServedProcess, Serving, pace};
use crate::program::check::{Check, PARALLEL_CHECKS};
use crate::program::preparation::Preparation;
use crate::program::store::ProgramStore;
use crate::program::turns::{Turn, Turns};
use crate::program::{Component, Language, Program};
use crate::sandbox::ticker::{Ticker, Ticking};
use crate::sandbox::{priority, wasm_engine};
use crate::settings::Value;
use crate::sync::lock;
use crate::{Error, HostConfig, Limits};

/// How long a host waits for its processes to end when it stops.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// The longest user name, and the most launch arguments and bytes in them.
const MAX_USERNAME_BYTES: usize = 256;
const MAX_ARGS: usize = 10_000;
/// Long texts that are encoded at once.
const PARALLEL_TEXTS: usize = 2;

/// How a program is launched.
#[derive(Clone, Debug)]
pub struct Launch {
    /// What is launched.
    pub program: Program,
    /// A JSON text; any other text becomes `{"input": text}`.
    pub input: String,
    /// The arguments as they were typed, unparsed.
    pub args: Vec<String>,
    /// The launch seed; none: a random one.
    pub seed: Option<u64>,
    /// The user; none: `anonymous`.
    pub username: Option<String>,
    /// The most tokens that may enter the contexts of the process; none: any number.
    pub token_budget: Option<u64>,
    /// Limits of this process by their names in [`crate::Limits::settings`], none above the engine's.
    pub limits: BTreeMap<String, Value>,
}

impl Launch {
    /// A launch of `program` with an input, and the defaults for the rest.
    pub fn new(program: impl Into<Program>, input: impl Into<String>) -> Self {
        Self {
            program: program.into(),
            input: input.into(),
            args: Vec::new(),
            seed: None,
            username: None,
            token_budget: None,
            limits: BTreeMap::new(),
        }
    }
}

/// What the tasks of the processes share with the host.
pub(crate) struct Shared {
    pub(crate) config: Arc<HostConfig>,
    /// What users may make the engine hold.
    pub(crate) budget: Arc<Budget>,
    pub(crate) instance_id: String,
    pub(crate) engine: wasmtime::Engine,
    pub(crate) models: Models,
    pub(crate) programs: Arc<ProgramStore>,
    /// Who may look at a program.
    checking: Arc<Turns>,
    /// Who may have a long text encoded.
    pub(crate) encoding: Arc<Turns>,
    /// Where programs run that compute without waiting, and where long texts are encoded.
    pub(crate) background: Handle,
    /// What users take of the threads that run programs.
    pub(crate) standings: Arc<Standings>,
    live: Mutex<Live>,
    all_ended: Condvar,
}

/// The processes that have not ended.
#[derive(Default)]
struct Live {
    stopped: bool,
    processes: HashMap<u64, (Arc<Record>, Ticking)>,
}

impl Shared {
    /// Forgets a process that has ended.
    pub(crate) fn end_process(&self, record: &Record) {
        let mut live = lock(&self.live);
        live.processes.remove(&record.pid);
        record.close_input();
        if live.processes.is_empty() {
            self.all_ended.notify_all();
        }
    }
}

/// One engine: models, programs, processes.
pub struct Host {
    shared: Arc<Shared>,
    ticker: Ticker,
    numbers: Numbers,
    /// Looks at programs have numbers too, from the other end: nobody sees those, and the ones of processes have no gaps.
    next_check: AtomicU64,
    drivers: Mutex<Vec<JoinHandle<()>>>,
    /// None once the host has stopped.
    runtimes: Mutex<Option<Runtimes>>,
}

/// The threads of a host that run programs.
struct Runtimes {
    /// Those of the tasks.
    foreground: Runtime,
    /// Those of lower priority, which tasks are handed to.
    background: Runtime,
}

impl fmt::Debug for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Host")
            .field("instance_id", &self.shared.instance_id)
            .finish_non_exhaustive()
    }
}

impl Host {
    /// Makes a host without models.
    ///
    /// # Errors
    /// `invalid-config` for a setting out of its range, or a cache folder that cannot be used.
    pub fn new(config: HostConfig) -> Result<Self, Error> {
        config.check()?;
        let config = Arc::new(config);
        let engine = wasm_engine(&config)?;
        let linkers = interface::linkers(&engine).map_err(Error::internal)?;
        let programs = Arc::new(ProgramStore::new(config.clone(), engine.clone(), linkers)?);
        let instance_id = match &config.instance_id {
            Some(instance_id) => instance_id.clone(),
            None => format!("{:016x}", random_seed()?),
        };
        let runtimes = Runtimes {
            foreground: async_runtime(&config, "pie-worker", {
                let niceness = config.worker_niceness;
                move || priority::lower_this_thread(niceness)
            })?,
            background: async_runtime(&config, "pie-background", {
                let niceness = config.background_niceness.max(config.worker_niceness);
                let has_one = AtomicBool::new(false);
                // One of them gets its part of a core however busy the others are, so that what computes for long comes to an end.
                move || match has_one.swap(true, Ordering::Relaxed) {
                    false => priority::lower_this_thread(niceness),
                    true => priority::idle_this_thread(),
                }
            })?,
        };
        let ticker = Ticker::start(engine.clone())?;
        let shared = Shared {
            budget: config.budget(),
            config,
            instance_id,
            engine,
            models: Models::default(),
            programs,
            checking: Turns::new(PARALLEL_CHECKS),
            encoding: Turns::new(PARALLEL_TEXTS),
            background: runtimes.background.handle().clone(),
            standings: Arc::new(Standings::new(runtimes.foreground.metrics().num_workers())),
            live: Mutex::default(),
            all_ended: Condvar::new(),
        };
        Ok(Self {
            shared: Arc::new(shared),
            ticker,
            numbers: Numbers::default(),
            next_check: AtomicU64::new(u64::MAX),
            drivers: Mutex::default(),
            runtimes: Mutex::new(Some(runtimes)),
        })
    }

    /// The name by which programs know this engine.
    pub fn instance_id(&self) -> &str {
        &self.shared.instance_id
    }

    /// What users may make this engine hold.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.shared.budget
    }

    /// What the processes that read programs can do that they should not, for want of means of this system. Known once
    /// one of them has run.
    pub fn lacks_of_workers(&self) -> Vec<&'static str> {
        self.shared.programs.lacks_of_workers()
    }

    /// What each process may use.
    pub fn limits(&self) -> &Limits {
        &self.shared.config.limits
    }

    /// Adds a model; somebody has to drive it.
    ///
    /// # Errors
    /// `invalid-model` when a file of its folder is missing or damaged, `invalid-config` for a setting out of its range or a name that
    /// is taken, `internal` when there is no thread to watch its driver.
    pub fn add_model(&self, config: ModelConfig) -> Result<Arc<Model>, Error> {
        let is_watched = config.engine.driver_timeout_ns > 0;
        let model = Arc::new(Model::new(config)?);
        if is_watched {
            watch::start(&model)?;
        }
        self.shared.models.add(model.clone())?;
        Ok(model)
    }

    /// The model of a name, or none.
    pub fn model(&self, name: &str) -> Option<Arc<Model>> {
        self.shared.models.find(name).ok()
    }

    /// The names of the models, in order.
    pub fn models(&self) -> Vec<String> {
        self.shared.models.names()
    }

    /// Where the driver of each model stands, in order. The engine is ready where all of them serve.
    pub fn model_states(&self) -> Vec<(String, ModelState)> {
        let models = self.shared.models.all();
        let state = |model: &Arc<Model>| (model.name().to_owned(), model.state());
        models.iter().map(state).collect()
    }

    /// Drives a model with the dummy driver, in a thread that ends when the host stops. Where the visible text holds the pattern of a
    /// pair of `script`, the pair's reply is what the model says.
    ///
    /// # Errors
    /// `invalid-argument` for a reply that cannot be encoded, `internal` when no thread can be started.
    pub fn run_dummy(
        &self,
        model: &Arc<Model>,
        script: Vec<(String, String)>,
    ) -> Result<(), Error> {
        let thread = dummy::drive(model.clone(), script)?;
        lock(&self.drivers).push(thread);
        Ok(())
    }

    /// True when launches of the component do not have to compile it.
    pub fn is_compiled(&self, component: &Component) -> bool {
        self.shared.programs.has_component(component)
    }

    /// True when launches in `language` do not have to compile its runtime.
    pub fn is_prepared(&self, language: Language) -> bool {
        self.shared.programs.has_runtime(language)
    }

    /// Begins to load the runtime of a language, or to compile it.
    ///
    /// # Errors
    /// `engine-stopped` after [`Host::stop`]; waiting for it answers `invalid-config` when there is no runtime for the language.
    pub fn prepare(&self, language: Language) -> Result<Preparation, Error> {
        let shared = self.shared.clone();
        self.begin(async move { shared.programs.runtime(language).await.map(drop) })
    }

    /// Begins to load a component, or to compile it.
    ///
    /// # Errors
    /// `engine-stopped` after [`Host::stop`]; waiting for it answers `invalid-program` when it is no component, is damaged, or does not
    /// fit the world of programs, and `unknown-runtime` for a built program whose runtime is not there.
    pub fn compile(&self, component: &Component) -> Result<Preparation, Error> {
        let (shared, program) = (self.shared.clone(), Program::from(component.clone()));
        self.begin(async move {
            let opened = program.opened(&shared.config.limits).await?;
            shared.programs.code(&opened.code, "").await.map(drop)
        })
    }

    /// Begins to look at a program without running any of it: whether it is a component that fits the host; or, of sources, whether the
    /// entry and what it imports compile, and whether there is something to call. What is found there once is not looked for again by a
    /// launch: the component is compiled and kept.
    ///
    /// # Errors
    /// `limit-processes`, `limit-engine-memory`, `engine-stopped`. Waiting for it answers `invalid-program`, with file, line and column of sources that do not parse; `unknown-runtime`; `limit-program`, `limit-compile`,
    /// `limit-memory` and `limit-stack` for one that takes too much to be looked at.
    pub fn check(&self, program: Program, username: &str) -> Result<Check, Error> {
        self.begin_check(program, username, None)
    }

    /// Looks at a program as [`Host::check`] does, in turn with those of other users.
    ///
    /// # Errors
    /// As there, and `limit-queue` where too many programs of the user wait.
    pub async fn checked(&self, program: Program, username: &str) -> Result<(), Error> {
        let turn = self.shared.checking.take(username).await?;
        let check = self.begin_check(program, username, Some(turn))?;
        check.outcome().await
    }

    fn begin_check(
        &self,
        program: Program,
        username: &str,
        turn: Option<Turn>,
    ) -> Result<Check, Error> {
        let given = Given {
            launch_seed: 0,
            username: username.to_owned(),
            args: Vec::new(),
            serving: None,
            budget: None,
            limits: self.shared.config.limits.clone(),
            account: self.shared.budget.account(username),
            stack_bytes: self.shared.config.stack_bytes,
            input_bytes: 0,
        };
        let program = program.held(&self.shared.budget, username)?;
        let number = self.next_check.fetch_sub(1, Ordering::Relaxed);
        let (record, ending) = self.begin_process(number, Instant::now(), given)?;
        let life = Box::pin(task::check(ending, program));
        self.spawn(pace::run(
            life,
            record.clone(),
            self.shared.standings.clone(),
            self.shared.background.clone(),
        ))?;
        Ok(Check::new(Process::new(record), turn))
    }

    /// Launches a program. What is wrong with the program itself is its last event.
    ///
    /// # Errors
    /// `limit-processes` when too many processes live, `limit-engine-memory` where the user has no room for it, `limit-message` for an input that is
    /// too long, `invalid-argument` for arguments or limits beyond their bounds, `engine-stopped` after [`Host::stop`].
    pub fn launch(&self, launch: Launch) -> Result<Process, Error> {
        let (record, task) = self.admitted(launch, None)?;
        self.spawn(task)?;
        Ok(Process::new(record))
    }

    /// Launches a program that outlives its readers. The reader is there where `serving` gives a window.
    ///
    /// # Errors
    /// As [`Host::launch`].
    pub fn launch_served(
        &self,
        launch: Launch,
        serving: Serving,
    ) -> Result<(ServedProcess, Option<Reader>), Error> {
        let window_bytes = serving.window_bytes;
        let (record, task) = self.admitted(launch, Some(serving))?;
        let reader = window_bytes
            .map(|window_bytes| Reader::first(record.clone(), window_bytes))
            .transpose()?;
        self.spawn(task)?;
        Ok((ServedProcess::new(record), reader))
    }

    /// Makes the record of a process, which lives from now on, and the task that runs it. A task that is dropped ends the process.
    fn admitted(
        &self,
        launch: Launch,
        serving: Option<Serving>,
    ) -> Result<(Arc<Record>, impl Future<Output = ()> + Send + use<>), Error> {
        let launched = Instant::now();
        let Launch {
            program,
            input,
            args,
            seed,
            username,
            token_budget,
            limits,
        } = launch;
        let limits = self.shared.config.limits.lowered(&limits)?;
        let input = json_input(input);
        check_size("the input", input.len(), limits.message_bytes)?;
        check_size(
            "the launch arguments together",
            args.iter().map(String::len).sum(),
            limits.message_bytes,
        )?;
        let username = username.unwrap_or_else(|| "anonymous".to_owned());
        if args.len() > MAX_ARGS || username.len() > MAX_USERNAME_BYTES {
            let message = format!(
                "the launch has {} arguments and a user name of {} bytes, of at most {MAX_ARGS} and {MAX_USERNAME_BYTES}; put what is longer into the input",
                args.len(),
                username.len()
            );
            return Err(Error::new(ErrorCode::InvalidArgument, message));
        }
        let launch_seed = match seed {
            Some(seed) => seed,
            None => random_seed()?,
        };
        let account = self.shared.budget.account(&username);
        let given = Given {
            launch_seed,
            username,
            args,
            // Of a process that is served, what it uses is counted also where it has no cap.
            budget: token_budget
                .or(serving.is_some().then_some(u64::MAX))
                .map(TokenBudget::new),
            serving,
            limits,
            account,
            stack_bytes: self.shared.config.stack_bytes,
            input_bytes: input.len(),
        };
        let program = program.held(&self.shared.budget, &given.username)?;
        let pid = self.numbers.give();
        let (record, ending) = self.begin_process(pid, launched, given)?;
        let life = Box::pin(task::run(ending, program, input));
        let task = pace::run(
            life,
            record.clone(),
            self.shared.standings.clone(),
            self.shared.background.clone(),
        );
        Ok((record, task))
    }

    /// Makes the record of a process, which lives until its end is reported.
    fn begin_process(
        &self,
        pid: u64,
        launched: Instant,
        given: Given,
    ) -> Result<(Arc<Record>, Ending), Error> {
        let record = Arc::new(Record::new(pid, launched, given)?);
        self.admit(&record)?;
        let ending = Ending::new(self.shared.clone(), record.clone());
        Ok((record, ending))
    }

    /// Ends every process and every driver. Later launches are refused; a second call does nothing.
    pub fn stop(&self) {
        let runtimes = lock(&self.runtimes).take();
        let mut live = lock(&self.shared.live);
        live.stopped = true;
        for (record, _) in live.processes.values() {
            record.stop(stopped());
        }
        let deadline = Instant::now() + STOP_PATIENCE;
        while !live.processes.is_empty() {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else {
                break;
            };
            live = self
                .shared
                .all_ended
                .wait_timeout(live, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        drop(live);
        self.shared.programs.stop();
        for model in self.shared.models.all() {
            model.stop();
        }
        for driver in lock(&self.drivers).drain(..) {
            // A panic of a driver thread was printed when it happened.
            drop(driver.join());
        }
        if let Some(runtimes) = runtimes {
            runtimes.foreground.shutdown_background();
            runtimes.background.shutdown_background();
        }
    }

    fn admit(&self, record: &Arc<Record>) -> Result<(), Error> {
        let mut live = lock(&self.shared.live);
        if live.stopped {
            return Err(stopped());
        }
        let most = self.shared.config.max_processes;
        if live.processes.len() >= most as usize {
            let message = format!(
                "{most} processes live, the most that max_processes allows; wait for one to end, or raise the limit"
            );
            return Err(Error::new(ErrorCode::LimitProcesses, message));
        }
        live.processes
            .insert(record.pid, (record.clone(), self.ticker.enter()));
        Ok(())
    }

    /// Processes get their numbers so from now on, behind what the host has given already.
    pub fn number_by(&self, numbering: Numbering) {
        self.numbers.set(numbering);
    }

    /// The count of the next process.
    pub fn next_count(&self) -> u64 {
        self.numbers.next()
    }

    /// Runs `work` among the programs.
    fn begin(
        &self,
        work: impl Future<Output = Result<(), Error>> + Send + 'static,
    ) -> Result<Preparation, Error> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.spawn(async move {
            // A caller that is gone needs no answer.
            drop(sender.send(work.await));
        })?;
        Ok(Preparation::new(receiver))
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Result<(), Error> {
        let runtimes = lock(&self.runtimes);
        let runtimes = runtimes.as_ref().ok_or_else(stopped)?;
        runtimes.foreground.spawn(task);
        Ok(())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop();
    }
}

fn async_runtime(
    config: &HostConfig,
    name: &'static str,
    on_thread_start: impl Fn() + Send + Sync + 'static,
) -> Result<Runtime, Error> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder
        .enable_time()
        .thread_name(name)
        .on_thread_start(on_thread_start);
    if config.worker_threads > 0 {
        builder.worker_threads(config.worker_threads);
    }
    builder.build().map_err(|error| {
        Error::internal(format!(
            "the threads for programs cannot be started: {error}"
        ))
    })
}

/// The text as an input: JSON as it is, anything else as `{"input": text}`.
fn json_input(text: String) -> String {
    match serde_json::from_str::<serde::de::IgnoredAny>(&text) {
        Ok(_) => text,
        Err(_) => serde_json::json!({ "input": text }).to_string(),
    }
}

fn check_size(what: &str, n_bytes: usize, limit: usize) -> Result<(), Error> {
    if n_bytes <= limit {
        return Ok(());
    }
    let message = format!(
        "{what} has {n_bytes} bytes, more than limits.message_bytes = {limit}; send the rest as messages"
    );
    Err(Error::new(ErrorCode::LimitMessage, message))
}

fn random_seed() -> Result<u64, Error> {
    getrandom::u64()
        .map_err(|error| Error::internal(format!("the system gives no randomness: {error}")))
}

pub(crate) fn stopped() -> Error {
    Error::new(
        ErrorCode::EngineStopped,
        "the engine is stopping; start it again",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Event;

    #[test]
    fn a_launch_that_the_stop_overtakes_leaves_no_process() {
        let host = Host::new(HostConfig::default()).unwrap();
        // As far as `stop` has come when it overtakes a launch that was admitted.
        let runtimes = lock(&host.runtimes).take().unwrap();
        let launch = Launch::new(Component::new(*b""), "null");
        let refused = host.launch(launch).unwrap_err();
        assert_eq!(refused.code, ErrorCode::EngineStopped);
        assert!(lock(&host.shared.live).processes.is_empty());
        runtimes.foreground.shutdown_background();
        runtimes.background.shutdown_background();
    }

    #[test]
    fn a_process_whose_task_is_dropped_ends() {
        let host = Host::new(HostConfig::default()).unwrap();
        let launch = Launch::new(Component::new(*b"any"), "null");
        let (record, task) = host.admitted(launch, None).unwrap();
        assert_eq!(lock(&host.shared.live).processes.len(), 1);
        drop(task);
        assert!(lock(&host.shared.live).processes.is_empty());
        let last = Process::new(record).next_event(None);
        assert!(
            matches!(&last, Some(Event::Error(failure)) if failure.code.as_deref() == Some("engine-stopped")),
            "{last:?}"
        );
    }

    #[test]
    fn a_text_that_is_not_json_becomes_the_input_field() {
        for (text, expected) in [
            ("{\"a\":1}", "{\"a\":1}"),
            ("null", "null"),
            ("hello \"x\"", "{\"input\":\"hello \\\"x\\\"\"}"),
            ("", "{\"input\":\"\"}"),
        ] {
            assert_eq!(json_input(text.to_owned()), expected);
        }
    }
}
