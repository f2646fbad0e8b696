//! The programs of a host, ready to be instantiated: compiled once, kept in memory and on disk by digest.

use std::sync::Arc;

use pie_core::ErrorCode;
use wasmtime::Engine;

use super::artefact::{self, Binder, World};
use super::blocking::blocking;
use super::cache::{Cache, Key, Outcome};
use super::compilation::Compilation;
use super::component::Component;
use super::failures::Failures;
use super::language::Language;
use super::opened::{Code, Opened, RuntimeChoice};
use super::own_runtime::OwnRuntime;
use super::packed::runtime_name;
use super::runtimes::KeptRuntimes;
use super::source::{LazySource, RuntimeInput};
use super::stripping::Stripper;
use crate::event::Failure;
use crate::{Error, HostConfig};

/// One part in this many of the engine's memory is what the images of compiled programs that are kept may take.
const IMAGES_PART: u64 = 8;

/// Programs by digest, and the language runtimes.
pub(crate) struct ProgramStore<B: Binder> {
    config: Arc<HostConfig>,
    compilation: Compilation<B>,
    compiled: Cache<B::Prepared>,
    failures: Failures<Key>,
    kept: Option<Arc<KeptRuntimes>>,
    stripper: Stripper,
    python: OwnRuntime<B::Prepared>,
    javascript: OwnRuntime<B::Prepared>,
}

impl<B: Binder> ProgramStore<B> {
    /// # Errors
    /// `invalid-config` for a cache folder that cannot be used.
    pub(crate) fn new(config: Arc<HostConfig>, engine: Engine, binder: B) -> Result<Self, Error> {
        let compilation = Compilation::new(config.clone(), engine, binder)?;
        let data_dir = config.data_dir.as_deref();
        Ok(Self {
            compiled: Cache::new(config.max_programs, config.memory_bytes() / IMAGES_PART),
            failures: Failures::default(),
            kept: data_dir.map(|data_dir| Arc::new(KeptRuntimes::new(data_dir))),
            stripper: Stripper::new(
                config.clone(),
                compilation.workers.clone(),
                compilation.turns.clone(),
                compilation.stopping.clone(),
            ),
            python: OwnRuntime::new(Language::Python, config.python_runtime.clone()),
            javascript: OwnRuntime::new(Language::JavaScript, config.javascript_runtime.clone()),
            compilation,
            config,
        })
    }

    /// What workers are able to do and should not be. It is known once one has run.
    pub(crate) fn lacks_of_workers(&self) -> Vec<&'static str> {
        let workers = self.compilation.workers.as_ref();
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
    ) -> Result<RuntimeInput, Failure> {
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
    /// `invalid-program` when it is not a component, is damaged, or does not fit the world of programs;
    /// `unknown-runtime` when the runtime that it names is not there; `limit-program` when it has too many parts,
    /// `limit-compile` when compiling it takes too much, `limit-queue` when too many of the user wait for that, or the
    /// machine is too busy.
    pub(crate) async fn code(self: &Arc<Self>, code: &Code, user: &str) -> Outcome<B::Prepared> {
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
    ) -> Outcome<B::Prepared> {
        artefact::check_bytes(&component.bytes, &self.config.limits)?;
        let key = (world, component.digest);
        if let Some(error) = self.failures.get(&key) {
            return Err(error);
        }
        let entry = self.compiled.entry(key);
        let placed = self
            .compilation
            .placed(&entry, component, world, Some(user));
        let outcome = placed.await;
        match &outcome {
            Ok(prepared) => self.compiled.weigh(&key, &entry, B::image_bytes(prepared)),
            Err(error) => {
                self.failures.note(key, error);
                self.compiled.forget(&key, &entry);
            }
        }
        outcome
    }

    async fn runtime_for(
        self: &Arc<Self>,
        language: Language,
        choice: &RuntimeChoice,
        user: &str,
    ) -> Outcome<B::Prepared> {
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
        let entry = self.compiled.entry((World::Runtime, digest));
        if let Some(prepared) = entry.get() {
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
    /// `invalid-config` when it is not configured or cannot be read, `invalid-program` when it is not a language
    /// runtime.
    pub(crate) async fn runtime(self: &Arc<Self>, language: Language) -> Outcome<B::Prepared> {
        let runtime = self.runtime_of(language);
        if let Some(prepared) = runtime.entry.get() {
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
        let entry = &runtime.entry;
        let placed = self
            .compilation
            .placed(entry, &component, World::Runtime, None);
        let prepared = placed.await;
        runtime.done();
        prepared
    }

    /// True when a launch of the component does not have to compile anything; false too for one that cannot be
    /// launched.
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
        self.compiled.has(&(world, digest)) || self.compilation.is_on_disk(&digest)
    }

    /// True when a launch in `language` does not have to compile its runtime.
    pub(crate) fn has_runtime(&self, language: Language) -> bool {
        let runtime = self.runtime_of(language);
        let is_on_disk = |digest| self.compilation.is_on_disk(&digest);
        runtime.entry.is_made() || runtime.digest().is_some_and(is_on_disk)
    }

    fn runtime_of(&self, language: Language) -> &OwnRuntime<B::Prepared> {
        match language {
            Language::Python => &self.python,
            Language::JavaScript => &self.javascript,
        }
    }

    /// Ends the workers that compile.
    pub(crate) fn stop(&self) {
        self.compilation.stopping.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::interface::linkers::Linkers;
    use crate::program::fair_turns::FairTurn;
    use crate::program::source::SourceBundle;
    use crate::sandbox::wasm_engine;

    /// Takes all turns.
    async fn busy(store: &ProgramStore<Linkers>, n_turns: usize) -> Vec<FairTurn> {
        let mut busy = Vec::new();
        for n in 0..n_turns {
            busy.push(
                store
                    .compilation
                    .turns
                    .take(&format!("another {n}"))
                    .await
                    .unwrap(),
            );
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
        let linkers = Linkers::new(&engine).unwrap();
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
            let linkers = Linkers::new(&engine).unwrap();
            Arc::new(ProgramStore::new(config.clone(), engine.clone(), linkers).unwrap())
        };
        // It is kept on disk before it turns out that it fits no world.
        let component = Component::new(*b"\0asm\x0d\0\x01\0");
        let code = Code::Component(component.clone());
        let compiled = store().code(&code, "user").await.map(drop).unwrap_err();
        let store = store();
        assert!(store.has_component(&component));
        let _busy = busy(&store, config.max_compilations).await;
        let loading = store.code(&code, "user");
        let loaded = tokio::time::timeout(Duration::from_secs(60), loading).await;
        let loaded = loaded.unwrap().map(drop).unwrap_err();
        assert_eq!(loaded.message, compiled.message);
    }

    #[tokio::test]
    async fn nobody_waits_for_the_turn_of_another_user() {
        let config = Arc::new(HostConfig {
            max_compilations: 3,
            ..HostConfig::default()
        });
        let engine = wasm_engine(&config).unwrap();
        let linkers = Linkers::new(&engine).unwrap();
        let store = Arc::new(ProgramStore::new(config, engine, linkers).unwrap());
        let busy = busy(&store, 3).await;
        let code = Code::Component(Component::new(*b"\0asm\x0d\0\x01\0"));
        let users = ["first", "second"];
        let mut waiting = users.map(|user| Box::pin(store.code(&code, user)));
        for (waiting, user) in waiting.iter_mut().zip(users) {
            std::future::poll_fn(|context| {
                assert!(waiting.as_mut().poll(context).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
            assert_eq!(store.compilation.turns.n_waiting_of(user), 1);
        }
        drop(busy);
        let [first, second] = waiting;
        let (first, second) = tokio::join!(first, second);
        let messages = [first, second].map(|outcome| outcome.map(drop).unwrap_err().message);
        assert_eq!(messages[0], messages[1]);
        // The error is remembered, so that nobody waits to learn it again.
        let _busy = self::busy(&store, 3).await;
        let again = store.code(&code, "third").await.map(drop).unwrap_err();
        assert_eq!(again.message, messages[0]);
    }
}
