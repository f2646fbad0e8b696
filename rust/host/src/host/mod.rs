//! The host: models, programs and processes of one engine. Several live in one process; nothing is shared between them.

mod check;
mod children;
mod handling;
mod launching;
mod live;
mod models;
mod state;
mod stores;
mod task;
mod threads;

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

pub use self::check::Check;
use self::check::PARALLEL_CHECKS;
use self::live::Live;
use self::state::HostState;
use self::threads::Threads;
use crate::budget::Budget;
use crate::bus::Bus;
use crate::interface::linkers::Linkers;
use crate::mcp::clients::McpClientServers;
use crate::mcp::relay::McpRelay;
use crate::mcp::servers::McpServers;
use crate::network::connection::Network;
use crate::numbering::{Numbering, Numbers};
use crate::process::reading::Alone;
use crate::process::standing::Standings;
use crate::process::surroundings::Surroundings;
use crate::process::{
    Finding, Inherited, Launch, Process, Programs, Reader, ServedProcess, Serving, random_seed,
};
use crate::program::fair_turns::{FairTurn, FairTurns};
use crate::program::shared_components::SharedComponents;
use crate::program::store::ProgramStore;
use crate::program::{Component, Language, Preparation, Program};
use crate::sandbox::ticker::Ticker;
use crate::sandbox::wasm_engine;
use crate::scratch::folders::Folders;
use crate::sync::lock;
use crate::{Error, HostConfig, Limits};

/// How long a host waits for its processes to end when it stops.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// One engine: models, programs, processes.
pub struct Host {
    shared: Arc<HostState>,
    drivers: Mutex<Vec<JoinHandle<()>>>,
}

impl fmt::Debug for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Host")
            .field("instance_id", &self.shared.surroundings.instance_id)
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
        let linkers = Linkers::new(&engine).map_err(Error::internal)?;
        let programs = Arc::new(ProgramStore::new(config.clone(), engine.clone(), linkers)?);
        let instance_id = match &config.instance_id {
            Some(instance_id) => instance_id.clone(),
            None => format!("{:016x}", random_seed()?),
        };
        let threads = Threads::start(&config)?;
        let ticker = Ticker::start(engine.clone())?;
        let foreground = threads.foreground().clone();
        let background = threads.background().clone();
        let bus = config.shared_bus();
        let folders = Folders::new(config.files.clone(), config.data_dir.as_deref())?;
        let network = Network::new(config.network.clone())?;
        let mcp = McpServers::new(
            &config.mcp,
            &config.mcp_servers,
            &config.limits,
            (
                foreground.clone(),
                &config.network.ca_file,
                &config.mcp_withheld,
            ),
        );
        let shared = HostState {
            budget: config.budget(),
            live: Live::new(config.max_processes, ticker),
            config,
            engine,
            programs,
            components: SharedComponents::default(),
            surroundings: Arc::new(Surroundings::new(
                instance_id,
                bus,
                Arc::new(folders),
                Arc::new(network),
                mcp,
                foreground,
                background,
            )),
            checking: FairTurns::new(PARALLEL_CHECKS),
            standings: Arc::new(Standings::new(threads.n_foreground)),
            threads,
            numbers: Numbers::default(),
            next_look: AtomicU64::new(u64::MAX),
        };
        let shared = Arc::new(shared);
        shared.know_spawner();
        Ok(Self {
            shared,
            drivers: Mutex::default(),
        })
    }

    /// The name by which programs know this engine.
    pub fn instance_id(&self) -> &str {
        &self.shared.surroundings.instance_id
    }

    /// What users may make this engine hold.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.shared.budget
    }

    /// What programs send to each other.
    pub fn bus(&self) -> &Arc<Bus> {
        &self.shared.surroundings.bus
    }

    /// What the processes that read programs are able to do and should not be, where this system lacks the means to
    /// stop them. It is known once one of them has run.
    pub fn lacks_of_workers(&self) -> Vec<&'static str> {
        self.shared.programs.lacks_of_workers()
    }

    /// How often the host was at odds with itself and went on: 0, unless it has a fault.
    pub fn n_faults(&self) -> u64 {
        self.shared.surroundings.standstill.n_faults()
    }

    /// From now on this host alone keeps files of programs in its folder of data, until it stops. Unless it is called,
    /// that begins when the first program asks for its files, which has none where another host keeps them. It reads
    /// the disk.
    ///
    /// # Errors
    /// `invalid-config` where another host keeps files there, and where the folder cannot be used.
    pub fn claim_files(&self) -> Result<(), Error> {
        self.shared.surroundings.folders.claim()
    }

    /// What each process may use.
    pub fn limits(&self) -> &Limits {
        &self.shared.config.limits
    }

    /// Processes that may live at once, children among them.
    pub fn max_processes(&self) -> usize {
        self.shared.config.max_processes as usize
    }

    /// True when launches of the component do not have to compile it.
    pub fn is_compiled(&self, component: &Component) -> bool {
        self.shared.programs.has_component(component)
    }

    /// True when launches in `language` do not have to compile its runtime.
    pub fn is_prepared(&self, language: Language) -> bool {
        self.shared.programs.has_runtime(language)
    }

    /// Begins to load the runtime of a language, or to compile it, for launches to come.
    ///
    /// # Errors
    /// `engine-stopped` after [`Host::stop`]. Waiting for it returns `invalid-config` when there is no runtime for the
    /// language.
    pub fn prepare(&self, language: Language) -> Result<Preparation, Error> {
        let shared = self.shared.clone();
        self.begin(async move { shared.programs.runtime(language).await.map(drop) })
    }

    /// Begins to load a component, or to compile it.
    ///
    /// # Errors
    /// `engine-stopped` after [`Host::stop`]. Waiting for it returns `invalid-program` when it is not a component, is
    /// damaged, or does not fit the world of programs, and `unknown-runtime` for a built program whose runtime is not
    /// there.
    pub fn compile(&self, component: &Component) -> Result<Preparation, Error> {
        let (shared, program) = (self.shared.clone(), Program::from(component.clone()));
        self.begin(async move {
            let opened = program.opened(&shared.config.limits).await?;
            shared.programs.code(&opened.code, "").await.map(drop)
        })
    }

    /// Begins to check a program without running any of it. A component has to fit the host. Of sources, the entry and
    /// what it imports have to compile, and there has to be something to call. A launch does not repeat what was found
    /// once: the component is compiled and kept.
    ///
    /// # Errors
    /// `limit-processes`, `limit-engine-memory`, `engine-stopped`. Waiting for it returns `invalid-program`, with file,
    /// line and column of sources that do not parse; `unknown-runtime`; `limit-program`, `limit-compile`,
    /// `limit-memory` and `limit-stack` for one whose check takes too much.
    pub fn check(&self, program: Program, username: &str) -> Result<Check, Error> {
        self.begin_check(program, username, None)
    }

    /// Checks a program as [`Host::check`] does, in turn with those of other users.
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
        turn: Option<FairTurn>,
    ) -> Result<Check, Error> {
        let begun = self.shared.begin_look(program, username)?;
        self.shared.threads.spawn(begun.task)?;
        Ok(Check::new(Process::new(begun.record, begun.events), turn))
    }

    /// Launches a program. A mistake in the program itself is its last event.
    ///
    /// # Errors
    /// `limit-processes` when too many processes live, `limit-engine-memory` where the user has no room for it,
    /// `limit-message` for an input that is too long, `invalid-argument` for arguments or limits beyond their bounds,
    /// `engine-stopped` after [`Host::stop`].
    pub fn launch(&self, launch: Launch) -> Result<Process, Error> {
        let begun = self.shared.begin(launch, None, Alone)?;
        self.shared.threads.spawn(begun.task)?;
        Ok(Process::new(begun.record, begun.events))
    }

    /// Launches a program that outlives its readers, as a child where it has `inherited` something. The reader is there
    /// where `serving` gives a window.
    ///
    /// # Errors
    /// As [`Host::launch`].
    pub fn launch_served(
        &self,
        launch: Launch,
        inherited: Option<Inherited>,
        serving: Serving,
    ) -> Result<(ServedProcess, Option<Reader>), Error> {
        let window_bytes = serving.window_bytes;
        let begun = self.shared.begin(launch, inherited, serving)?;
        let process = ServedProcess::new(begun.record, begun.events);
        let reader = window_bytes
            .map(|window_bytes| process.attach(window_bytes, 0))
            .transpose()?;
        self.shared.threads.spawn(begun.task)?;
        Ok((process, reader))
    }

    /// Ends every process and every driver. Later launches are refused; a second call does nothing.
    pub fn stop(&self) {
        let _threads = self.shared.threads.close();
        self.shared.live.stop(STOP_PATIENCE);
        self.shared.surroundings.mcp.end();
        self.shared.programs.stop();
        for model in self.shared.surroundings.models.all() {
            model.stop();
        }
        for driver in lock(&self.drivers).drain(..) {
            // A panic of a driver thread was printed when it happened.
            drop(driver.join());
        }
        self.shared.surroundings.folders.give_up();
        for model in self.shared.surroundings.models.all() {
            model.close_snapshots();
        }
    }

    /// From now on programs by name and processes by number are looked up in `programs`, as long as that is there.
    pub fn know_programs(&self, programs: Weak<dyn Programs>) {
        self.shared.surroundings.directory.set(programs);
    }

    /// What a client registers the servers of MCP with that it runs. `relay` carries their lines as long as it is
    /// there.
    pub fn mcp_of_client(&self, relay: Weak<dyn McpRelay>) -> Arc<McpClientServers> {
        self.shared.surroundings.mcp.of_client(relay)
    }

    /// The program that a user calls by that name, where somebody keeps programs for users. No such program is the
    /// error `unknown-program`.
    pub fn find_program(&self, user: &str, name: &str) -> Finding {
        self.shared.surroundings.directory.find(user, name)
    }

    /// A process of a user, where somebody keeps processes for users.
    ///
    /// # Errors
    /// `unknown-process`.
    pub fn find_process(&self, user: &str, pid: u64) -> Result<ServedProcess, Error> {
        self.shared.surroundings.directory.process(user, pid)
    }

    /// From now on processes get their numbers by `numbering`, behind those that the host has given already.
    pub fn number_by(&self, numbering: Numbering) {
        self.shared.numbers.set(numbering);
    }

    /// The count of the next process.
    pub fn next_count(&self) -> u64 {
        self.shared.numbers.next()
    }

    /// Runs `work` among the programs.
    fn begin(
        &self,
        work: impl Future<Output = Result<(), Error>> + Send + 'static,
    ) -> Result<Preparation, Error> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.shared.threads.spawn(async move {
            // A caller that has given up needs no answer.
            drop(sender.send(work.await));
        })?;
        Ok(Preparation::new(receiver))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pie_core::ErrorCode;

    use crate::event::Event;

    #[test]
    fn a_launch_that_the_stop_overtakes_leaves_no_process() {
        let host = Host::new(HostConfig::default()).unwrap();
        // This is how far `stop` has come when it overtakes a launch that was admitted.
        let _threads = host.shared.threads.close();
        let launch = Launch::new(Component::new(*b""), "null");
        let refused = host.launch(launch).unwrap_err();
        assert_eq!(refused.code, ErrorCode::EngineStopped);
        assert_eq!(host.shared.live.count(), 0);
    }

    #[test]
    fn hosts_share_a_bus_that_they_are_given_and_no_other() {
        let [first, other] = [(); 2].map(|()| Host::new(HostConfig::default()).unwrap());
        let second = Host::new(HostConfig {
            bus: Some(first.bus().clone()),
            ..HostConfig::default()
        });
        first.bus().of("ada").subscribe("news").unwrap();
        assert_eq!(second.unwrap().bus().stats().n_subscriptions, 1);
        assert_eq!(other.bus().stats().n_subscriptions, 0);
    }

    #[test]
    fn a_process_whose_task_is_dropped_ends() {
        let host = Host::new(HostConfig::default()).unwrap();
        let launch = Launch::new(Component::new(*b"any"), "null");
        let begun = host.shared.begin(launch, None, Alone).unwrap();
        assert_eq!(host.shared.live.count(), 1);
        drop(begun.task);
        assert_eq!(host.shared.live.count(), 0);
        let last = Process::new(begun.record, begun.events).next_event(None);
        assert!(
            matches!(&last, Some(Event::Error(failure)) if failure.code.as_deref() == Some("engine-stopped")),
            "{last:?}"
        );
    }
}
