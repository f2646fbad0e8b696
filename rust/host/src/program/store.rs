//! The programs of a host, ready to be instantiated: compiled once, kept in memory and on disk by digest.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use pie_core::ErrorCode;
use tokio::sync::{Semaphore, watch};
use wasmtime::Engine;
use wasmtime::component::Linker;

use super::Component;
use super::apart::{GiveUp, Wanted, Workers};
use super::artefact::{self, Prepared};
use super::compiler::compile_apart;
use super::disk::{self, DiskCache};
use super::failures::Failures;
use super::opened::{Code, Opened, RuntimeChoice};
use super::packed::runtime_name;
use super::place::{Place, Shift};
use super::runtimes::KeptRuntimes;
use super::shape;
use super::source::{Given, Language, LazySource};
use super::stripping::Stripper;
use super::turns::Turns;
use crate::config::PARALLEL_COMPILATIONS;
use crate::process::event::Failure;
use crate::process::state::ProcessState;
use crate::sync::lock;
use crate::{Error, HostConfig};

/// Compiled components that are read from disk at once: milliseconds each, beside any compilation.
const PARALLEL_LOADS: usize = 4;

/// Programs by digest, and the language runtimes.
pub(crate) struct ProgramStore {
    config: Arc<HostConfig>,
    engine: Engine,
    programs: Arc<Linker<ProcessState>>,
    runtimes: Arc<Linker<ProcessState>>,
    disk: Option<Arc<DiskCache>>,
    kept: Option<Arc<KeptRuntimes>>,
    compiled: Mutex<Compiled>,
    failures: Failures<Key>,
    /// None without a command for them.
    workers: Option<Arc<Workers>>,
    stripper: Stripper,
    python: Runtime,
    javascript: Runtime,
    compiling: Arc<Turns>,
    loading: Arc<Semaphore>,
    /// Changed, or dropped with the store, to end the workers.
    stopping: watch::Sender<()>,
}

/// A program, or why it is none.
type Outcome = Result<Arc<Prepared>, Error>;

/// The place of a program.
type Slot = Arc<Place<Arc<Prepared>>>;

/// What is compiled: what it is linked with, and its digest.
type Key = (World, [u8; 32]);

/// The runtime of a language.
struct Runtime {
    language: Language,
    path: Option<PathBuf>,
    /// The component, from when it is first needed until it is compiled.
    component: Mutex<Option<Component>>,
    /// Its digest, from when it was first read.
    digest: OnceLock<[u8; 32]>,
    slot: Slot,
}

/// What a component is linked with.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum World {
    Program,
    Runtime,
}

#[derive(Default)]
struct Compiled {
    slots: HashMap<Key, (u64, Slot)>,
    /// Counts uses, to find the program that was used longest ago.
    clock: u64,
}

/// The linkers for the two kinds of components.
pub(crate) struct Linkers {
    /// For programs.
    pub(crate) programs: Linker<ProcessState>,
    /// For language runtimes, which get the source beside.
    pub(crate) runtimes: Linker<ProcessState>,
}

impl ProgramStore {
    pub(crate) fn new(
        config: Arc<HostConfig>,
        engine: Engine,
        linkers: Linkers,
    ) -> Result<Self, Error> {
        let disk = config
            .cache_dir
            .as_deref()
            .map(DiskCache::open)
            .transpose()?
            .map(Arc::new);
        let stopping = watch::Sender::new(());
        let compiling = Turns::new(PARALLEL_COMPILATIONS);
        let workers = config
            .compiler
            .clone()
            .map(|command| Arc::new(Workers::new(command)));
        Ok(Self {
            engine,
            programs: Arc::new(linkers.programs),
            runtimes: Arc::new(linkers.runtimes),
            disk,
            kept: config
                .data_dir
                .as_deref()
                .map(|data_dir| Arc::new(KeptRuntimes::new(data_dir))),
            compiled: Mutex::default(),
            failures: Failures::default(),
            stripper: Stripper::new(
                config.clone(),
                workers.clone(),
                compiling.clone(),
                stopping.clone(),
            ),
            workers,
            python: Runtime::new(Language::Python, config.python_runtime.clone()),
            javascript: Runtime::new(Language::JavaScript, config.javascript_runtime.clone()),
            compiling,
            loading: Arc::new(Semaphore::new(PARALLEL_LOADS)),
            stopping,
            config,
        })
    }

    /// What workers can do that they should not, as far as one has run.
    pub(crate) fn lacks_of_workers(&self) -> Vec<&'static str> {
        let workers = self.workers.as_ref();
        workers.map_or_else(Vec::new, |workers| workers.lacking().told().collect())
    }

    /// What a language runtime gets of the sources that `user` supplied.
    ///
    /// # Errors
    /// Those of [`LazySource::check`] and [`Stripper::plain`].
    pub(crate) async fn source(
        &self,
        source: &Arc<LazySource>,
        user: &str,
    ) -> Result<Given, Failure> {
        if let Some(given) = source.ready() {
            return Ok(given);
        }
        let (sources, limits) = (source.clone(), self.config.limits.clone());
        let look = move || {
            sources.check(&limits)?;
            let has_types =
                sources.language() == Language::JavaScript && sources.scripts().next().is_some();
            if has_types {
                // Counted here, off the threads that run programs.
                sources.scripts_digest();
            }
            Ok::<_, Error>(has_types)
        };
        if blocking(look).await?? {
            self.stripper.plain(source, user).await
        } else {
            Ok(source.make_ready_as_is())
        }
    }

    /// The code of a program that `user` supplied.
    ///
    /// # Errors
    /// `invalid-program` when it is no component, is damaged, or does not fit the world of programs; `unknown-runtime` when the runtime
    /// that it names is not there; `limit-program` when it has too many parts, `limit-compile` when compiling it takes too much,
    /// `limit-queue` when too many of the user wait for that.
    pub(crate) async fn code(
        self: &Arc<Self>,
        code: &Code,
        user: &str,
    ) -> Result<Arc<Prepared>, Error> {
        match code {
            Code::Component(component) => self.component(World::Program, component, user).await,
            Code::Source { source, runtime } => {
                self.runtime_for(source.language(), runtime, user).await
            }
        }
    }

    async fn component(
        &self,
        world: World,
        component: &Component,
        user: &str,
    ) -> Result<Arc<Prepared>, Error> {
        artefact::check_bytes(&component.bytes, &self.config.limits)?;
        let linker = match world {
            World::Program => &self.programs,
            World::Runtime => &self.runtimes,
        };
        let key = (world, component.digest);
        if let Some(error) = self.failures.get(&key) {
            return Err(error);
        }
        let slot = self.slot(key);
        let outcome = self.placed(&slot, component, linker, Some(user)).await;
        if let Err(error) = &outcome {
            self.failures.note(key, error);
            self.forget(key, &slot);
        }
        outcome
    }

    /// What is in a place, or comes into it: from disk, or else compiled in a turn of the user.
    async fn placed(
        &self,
        slot: &Place<Arc<Prepared>>,
        component: &Component,
        linker: &Arc<Linker<ProcessState>>,
        user: Option<&str>,
    ) -> Outcome {
        if let Some(outcome) = slot.get() {
            return outcome.clone();
        }
        if let Some(loaded) = self.loaded(component, linker).await? {
            return slot.settle(loaded.map(Arc::new));
        }
        let compile = |shift| self.compiled(shift, component, linker, user);
        slot.made(&self.compiling, user.unwrap_or_default(), compile)
            .await
    }

    async fn runtime_for(
        self: &Arc<Self>,
        language: Language,
        choice: &RuntimeChoice,
        user: &str,
    ) -> Result<Arc<Prepared>, Error> {
        let digest = match choice {
            RuntimeChoice::Any => return self.runtime(language).await,
            RuntimeChoice::Named(digest) => *digest,
            RuntimeChoice::Carried(component) => component.digest,
        };
        let store = self.clone();
        let is_ours = move || store.runtime_of(language).digest() == Some(digest);
        if blocking(is_ours).await? {
            return self.runtime(language).await;
        }
        if let RuntimeChoice::Carried(component) = choice {
            return self.component(World::Runtime, component, user).await;
        }
        let slot = self.slot((World::Runtime, digest));
        if let Some(prepared) = slot.get() {
            return prepared.clone();
        }
        let kept = self.kept.clone();
        let load = move || kept.and_then(|kept| kept.load(&digest));
        let Some(component) = blocking(load).await? else {
            return Err(Error::new(
                ErrorCode::UnknownRuntime,
                format!(
                    "the program was built for the {} runtime {}, which this engine neither brings nor has kept; build it again with this engine, or with --standalone",
                    language.name(),
                    runtime_name(&digest)
                ),
            ));
        };
        self.component(World::Runtime, &component, user).await
    }

    /// True when a runtime that came with an engine runs the code: a program may bring one of its own.
    ///
    /// # Errors
    /// Those of [`blocking`].
    pub(crate) async fn is_run_by_own(self: &Arc<Self>, code: &Code) -> Result<bool, Error> {
        let (language, digest) = match code {
            Code::Component(_) => return Ok(false),
            Code::Source { source, runtime } => match runtime {
                RuntimeChoice::Any => return Ok(true),
                RuntimeChoice::Named(digest) => (source.language(), *digest),
                RuntimeChoice::Carried(component) => (source.language(), component.digest),
            },
        };
        let store = self.clone();
        // A program may name by its digest what another one brought.
        let is_own = move || {
            store.runtime_of(language).digest() == Some(digest)
                || store.kept.as_ref().is_some_and(|kept| kept.has(&digest))
        };
        blocking(is_own).await
    }

    /// The runtime of a language.
    ///
    /// # Errors
    /// `invalid-config` when it is not configured or cannot be read, `invalid-program` when it is no language runtime.
    pub(crate) async fn runtime(
        self: &Arc<Self>,
        language: Language,
    ) -> Result<Arc<Prepared>, Error> {
        let runtime = self.runtime_of(language);
        if let Some(prepared) = runtime.slot.get() {
            return prepared.clone();
        }
        let store = self.clone();
        let read = move || {
            let component = store.runtime_of(language).read()?;
            if let Some(kept) = &store.kept {
                kept.keep(&component);
            }
            Ok(component)
        };
        let component = blocking(read).await??;
        let prepared = self
            .placed(&runtime.slot, &component, &self.runtimes, None)
            .await;
        *lock(&runtime.component) = None;
        prepared
    }

    /// True when a launch of the component does not have to compile anything; false too for one that cannot be launched.
    pub(crate) fn has_component(&self, component: &Component) -> bool {
        Opened::new(component, &self.config.limits).is_ok_and(|opened| self.has_code(&opened.code))
    }

    fn has_code(&self, code: &Code) -> bool {
        let (language, choice) = match code {
            Code::Component(component) => {
                return self.has_compiled(World::Program, component.digest);
            }
            Code::Source { source, runtime } => (source.language(), runtime),
        };
        let digest = match choice {
            RuntimeChoice::Any => return self.has_runtime(language),
            RuntimeChoice::Named(digest) => *digest,
            RuntimeChoice::Carried(component) => component.digest,
        };
        if self.runtime_of(language).digest() == Some(digest) {
            self.has_runtime(language)
        } else {
            self.has_compiled(World::Runtime, digest)
        }
    }

    fn has_compiled(&self, world: World, digest: [u8; 32]) -> bool {
        let known = lock(&self.compiled)
            .slots
            .get(&(world, digest))
            .is_some_and(|(_, slot)| is_prepared(slot));
        known || self.is_on_disk(&digest)
    }

    /// True when a launch in `language` does not have to compile its runtime.
    pub(crate) fn has_runtime(&self, language: Language) -> bool {
        let runtime = self.runtime_of(language);
        is_prepared(&runtime.slot)
            || runtime
                .digest()
                .is_some_and(|digest| self.is_on_disk(&digest))
    }

    fn is_on_disk(&self, digest: &[u8; 32]) -> bool {
        self.disk
            .as_ref()
            .is_some_and(|disk| disk.has(&self.engine, digest))
    }

    fn runtime_of(&self, language: Language) -> &Runtime {
        match language {
            Language::Python => &self.python,
            Language::JavaScript => &self.javascript,
        }
    }

    fn slot(&self, key: (World, [u8; 32])) -> Slot {
        let mut compiled = lock(&self.compiled);
        compiled.clock += 1;
        let now = compiled.clock;
        if compiled.slots.len() >= self.config.max_programs && !compiled.slots.contains_key(&key) {
            let oldest = compiled
                .slots
                .iter()
                .min_by_key(|(_, (used, _))| *used)
                .map(|(key, _)| *key);
            if let Some(oldest) = oldest {
                compiled.slots.remove(&oldest);
            }
        }
        let (used, slot) = compiled.slots.entry(key).or_default();
        *used = now;
        slot.clone()
    }

    /// Ends the workers that compile.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(());
    }

    /// Lets the next launch try again.
    fn forget(&self, key: (World, [u8; 32]), slot: &Slot) {
        let mut compiled = lock(&self.compiled);
        if compiled
            .slots
            .get(&key)
            .is_some_and(|(_, kept)| Arc::ptr_eq(kept, slot))
        {
            compiled.slots.remove(&key);
        }
    }

    /// The component from disk, linked; none where it is not there.
    async fn loaded(
        &self,
        component: &Component,
        linker: &Arc<Linker<ProcessState>>,
    ) -> Result<Option<Result<Prepared, Error>>, Error> {
        let Some(disk) = self.disk.clone() else {
            return Ok(None);
        };
        let (engine, linker, digest) = (self.engine.clone(), linker.clone(), component.digest);
        let load = move || {
            let stored = disk.load(&engine, &digest)?;
            Some(artefact::link(&stored, &linker))
        };
        off_thread(&self.loading, load).await
    }

    /// Compiles in a turn, off the threads that run programs; none where the turn was given up for somebody else. What comes from a user
    /// is compiled apart; a runtime is our own.
    async fn compiled(
        &self,
        shift: Shift,
        component: &Component,
        linker: &Arc<Linker<ProcessState>>,
        user: Option<&str>,
    ) -> Option<Outcome> {
        let (_give_up, given_up) = GiveUp::new();
        let job = Job {
            engine: self.engine.clone(),
            disk: self.disk.clone(),
            config: self.config.clone(),
            workers: self.workers.clone().filter(|_| user.is_some()),
            is_ours: user.is_none(),
            wanted: Wanted {
                stopping: self.stopping.subscribe(),
                given_up,
                shift,
            },
        };
        let (component, linker) = (component.clone(), linker.clone());
        let compile = move || {
            let compiled = job.compile(&component)?;
            compiled
                .map(|compiled| artefact::link(&compiled, &linker).map(Arc::new))
                .transpose()
        };
        blocking(compile)
            .await
            .and_then(|outcome| outcome)
            .transpose()
    }
}

/// What a compilation needs.
struct Job {
    engine: Engine,
    disk: Option<Arc<DiskCache>>,
    config: Arc<HostConfig>,
    /// None where it is compiled here.
    workers: Option<Arc<Workers>>,
    /// Whether it is a language runtime that comes with the engine: no limits hold for it.
    is_ours: bool,
    /// The turn is given back when this is dropped.
    wanted: Wanted,
}

impl Job {
    /// Compiles a component and keeps it on disk.
    fn compile(
        &self,
        component: &Component,
    ) -> Result<Option<wasmtime::component::Component>, Error> {
        let (engine, disk) = (&self.engine, self.disk.as_deref());
        // Who had this turn before may have compiled the same, for a launch that was cancelled.
        if let Some(stored) = disk.and_then(|disk| disk.load(engine, &component.digest)) {
            return Ok(Some(stored));
        }
        if !self.is_ours {
            shape::check(&component.bytes, &self.config.limits)?;
        }
        let (compiled, code) = match &self.workers {
            Some(workers) => {
                let bytes = &component.bytes;
                let Some(code) = compile_apart(workers, &self.config, bytes, &self.wanted)? else {
                    return Ok(None);
                };
                let compiled = disk::load_code(engine, &code).map_err(Error::internal)?;
                (compiled, code)
            }
            None => {
                let compiled = artefact::compile(engine, &component.bytes)?;
                let code = compiled.serialize().map_err(Error::internal)?;
                (compiled, code)
            }
        };
        let Some(disk) = disk else {
            return Ok(Some(compiled));
        };
        disk.store(engine, &component.digest, &code);
        // Code that is mapped from its file gives its memory back under pressure; where the file cannot be had, the copy serves.
        Ok(Some(
            disk.load(engine, &component.digest).unwrap_or(compiled),
        ))
    }
}

/// Runs `work` off the threads that run programs. The permit stays with the work, which goes on when the launch that waits for it is
/// cancelled.
async fn off_thread<T: Send + 'static>(
    permits: &Arc<Semaphore>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    let permit = permits
        .clone()
        .acquire_owned()
        .await
        .map_err(Error::internal)?;
    let work = move || {
        let _permit = permit;
        work()
    };
    tokio::task::spawn_blocking(work)
        .await
        .map_err(Error::internal)
}

/// Reads or hashes off the threads that run programs.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(Error::internal)
}

fn is_prepared(slot: &Slot) -> bool {
    slot.get().is_some_and(Result::is_ok)
}

impl Runtime {
    fn new(language: Language, path: Option<PathBuf>) -> Self {
        Self {
            language,
            path,
            component: Mutex::default(),
            digest: OnceLock::new(),
            slot: Slot::default(),
        }
    }

    /// The digest of the component; none where it cannot be read.
    fn digest(&self) -> Option<[u8; 32]> {
        if self.digest.get().is_none() {
            drop(self.read());
        }
        self.digest.get().copied()
    }

    /// Reads the component once.
    fn read(&self) -> Result<Component, Error> {
        let mut component = lock(&self.component);
        if let Some(component) = &*component {
            return Ok(component.clone());
        }
        let invalid = |message: String| Error::new(ErrorCode::InvalidConfig, message);
        let Some(path) = &self.path else {
            return Err(invalid(format!(
                "no runtime for {} is configured; set the path of its component",
                self.language.name()
            )));
        };
        let bytes = std::fs::read(path).map_err(|error| {
            invalid(format!(
                "the {} runtime cannot be read: {error}; install the package again, or build it with make",
                self.language.name()
            ))
        })?;
        let component = component.insert(Component::new(bytes)).clone();
        self.digest.get_or_init(|| component.digest);
        Ok(component)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::interface;
    use crate::program::source::SourceBundle;
    use crate::program::turns::Turn;
    use crate::sandbox::wasm_engine;

    #[tokio::test]
    async fn work_whose_launch_is_cancelled_keeps_its_permit_until_it_is_done() {
        let permits = Arc::new(Semaphore::new(1));
        let (started, has_started) = tokio::sync::oneshot::channel();
        let (finish, finished) = mpsc::channel::<()>();
        {
            let mut work = pin!(off_thread(&permits, move || {
                started.send(()).unwrap();
                // The other end is dropped.
                assert!(finished.recv().is_err());
            }));
            tokio::select! {
                biased;
                _ = &mut work => panic!("the work cannot be done"),
                started = has_started => started.unwrap(),
            }
        }
        assert_eq!(permits.available_permits(), 0);
        drop(finish);
        drop(permits.acquire().await.unwrap());
    }

    /// Takes all turns.
    async fn busy(store: &ProgramStore) -> Vec<Turn> {
        let mut busy = Vec::new();
        for n in 0..PARALLEL_COMPILATIONS {
            busy.push(store.compiling.take(&format!("another {n}")).await.unwrap());
        }
        busy
    }

    #[tokio::test]
    async fn only_a_runtime_that_came_with_an_engine_is_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("python.wasm");
        std::fs::write(&path, b"the runtime").unwrap();
        let config = Arc::new(HostConfig {
            python_runtime: Some(path),
            data_dir: Some(dir.path().join("data")),
            ..HostConfig::default()
        });
        let engine = wasm_engine(&config).unwrap();
        let linkers = interface::linkers(&engine).unwrap();
        let store = Arc::new(ProgramStore::new(config, engine, linkers).unwrap());
        let [own, kept, other] =
            [&b"the runtime"[..], b"an older one", b"another"].map(Component::new);
        store.kept.as_ref().unwrap().keep(&kept);
        let sources = Arc::new(LazySource::new(SourceBundle {
            language: Language::Python,
            files: Arc::default(),
            entry: "main.py".to_owned(),
        }));
        for (runtime, expected) in [
            (RuntimeChoice::Any, true),
            (RuntimeChoice::Carried(own.clone()), true),
            (RuntimeChoice::Carried(other.clone()), false),
            (RuntimeChoice::Named(own.digest), true),
            (RuntimeChoice::Named(kept.digest), true),
            (RuntimeChoice::Named(other.digest), false),
        ] {
            let source = sources.clone();
            let code = Code::Source { source, runtime };
            assert_eq!(
                store.is_run_by_own(&code).await.unwrap(),
                expected,
                "{code:?}"
            );
        }
        assert!(!store.is_run_by_own(&Code::Component(own)).await.unwrap());
    }

    #[tokio::test]
    async fn a_load_from_disk_does_not_wait_for_compilations() {
        let dir = tempfile::tempdir().unwrap();
        let config = Arc::new(HostConfig {
            cache_dir: Some(dir.path().join("cache")),
            ..HostConfig::default()
        });
        let engine = wasm_engine(&config).unwrap();
        let store = || {
            let linkers = interface::linkers(&engine).unwrap();
            Arc::new(ProgramStore::new(config.clone(), engine.clone(), linkers).unwrap())
        };
        // It is kept on disk before it is seen to fit no world.
        let component = Component::new(*b"\0asm\x0d\0\x01\0");
        let code = Code::Component(component.clone());
        let compiled = store().code(&code, "user").await.map(drop).unwrap_err();
        let store = store();
        assert!(store.has_component(&component));
        let _busy = busy(&store).await;
        let loading = store.code(&code, "user");
        let loaded = tokio::time::timeout(Duration::from_secs(60), loading).await;
        let loaded = loaded.unwrap().map(drop).unwrap_err();
        assert_eq!(loaded.message, compiled.message);
    }

    #[tokio::test]
    async fn nobody_waits_for_the_turn_of_another_user() {
        let config = Arc::new(HostConfig::default());
        let engine = wasm_engine(&config).unwrap();
        let linkers = interface::linkers(&engine).unwrap();
        let store = Arc::new(ProgramStore::new(config, engine, linkers).unwrap());
        let busy = busy(&store).await;
        let code = Code::Component(Component::new(*b"\0asm\x0d\0\x01\0"));
        let users = ["first", "second"];
        let mut waiting = users.map(|user| Box::pin(store.code(&code, user)));
        for (waiting, user) in waiting.iter_mut().zip(users) {
            std::future::poll_fn(|context| {
                assert!(waiting.as_mut().poll(context).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
            assert_eq!(store.compiling.n_waiting_of(user), 1);
        }
        drop(busy);
        let [first, second] = waiting;
        let (first, second) = tokio::join!(first, second);
        let messages = [first, second].map(|outcome| outcome.map(drop).unwrap_err().message);
        assert_eq!(messages[0], messages[1]);
        // It is remembered: nobody has to wait to learn it again.
        let _busy = self::busy(&store).await;
        let again = store.code(&code, "third").await.map(drop).unwrap_err();
        assert_eq!(again.message, messages[0]);
    }
}
