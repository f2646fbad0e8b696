//! Making components ready: read from disk, or else compiled, users in turns.

use std::sync::Arc;

use tokio::sync::{Semaphore, watch};
use wasmtime::Engine;

use super::apart::{GiveUp, Wanted, Workers};
use super::artefact::{self, Binder, World};
use super::blocking::{blocking, off_thread};
use super::cache::{CacheEntry, Outcome};
use super::compiler::compile_apart;
use super::component::Component;
use super::disk::{self, DiskCache};
use super::fair_turns::FairTurns;
use super::shape;
use super::single_flight::Shift;
use crate::{Error, HostConfig};

/// Compiled components that are read from disk at once: milliseconds each, beside any compilation.
const PARALLEL_LOADS: usize = 4;

/// What makes components ready.
pub(crate) struct Compilation<B> {
    config: Arc<HostConfig>,
    engine: Engine,
    binder: Arc<B>,
    disk: Option<Arc<DiskCache>>,
    /// None without a command for them.
    pub(crate) workers: Option<Arc<Workers>>,
    /// Who may compile.
    pub(crate) turns: Arc<FairTurns>,
    loading: Arc<Semaphore>,
    /// Changed, or dropped with this, to end the workers.
    pub(crate) stopping: watch::Sender<()>,
}

impl<B: Binder> Compilation<B> {
    /// # Errors
    /// `invalid-config` for a cache folder that cannot be used.
    pub(crate) fn new(config: Arc<HostConfig>, engine: Engine, binder: B) -> Result<Self, Error> {
        let disk = config
            .cache_dir
            .as_deref()
            .map(DiskCache::open)
            .transpose()?;
        let workers = config.compiler.clone().map(Workers::new);
        Ok(Self {
            engine,
            binder: Arc::new(binder),
            disk: disk.map(Arc::new),
            workers: workers.map(Arc::new),
            turns: FairTurns::new(config.max_compilations),
            loading: Arc::new(Semaphore::new(PARALLEL_LOADS)),
            stopping: watch::Sender::new(()),
            config,
        })
    }

    /// True where a component was compiled before, and the result lies on the disk.
    pub(crate) fn is_on_disk(&self, digest: &[u8; 32]) -> bool {
        let disk = self.disk.as_ref();
        disk.is_some_and(|disk| disk.has(&self.engine, digest))
    }

    /// What is in a place, or comes into it: from disk, or else compiled in a turn of the user.
    ///
    /// # Errors
    /// `invalid-program`, `limit-program`, `limit-compile`, `limit-queue`, `engine-stopped`.
    pub(crate) async fn placed(
        &self,
        entry: &CacheEntry<B::Prepared>,
        component: &Component,
        world: World,
        user: Option<&str>,
    ) -> Outcome<B::Prepared> {
        if let Some(outcome) = entry.get() {
            return outcome.clone();
        }
        if let Some(loaded) = self.loaded(component, world).await? {
            return entry.settle(loaded.map(Arc::new));
        }
        let compile = |shift| self.compiled(shift, component, world, user);
        entry
            .made(&self.turns, user.unwrap_or_default(), compile)
            .await
    }

    /// The component from disk, bound; none where it is not there.
    async fn loaded(
        &self,
        component: &Component,
        world: World,
    ) -> Result<Option<Result<B::Prepared, Error>>, Error> {
        let Some(disk) = self.disk.clone() else {
            return Ok(None);
        };
        let (engine, binder, digest) = (self.engine.clone(), self.binder.clone(), component.digest);
        let load = move || {
            let stored = disk.load(&engine, &digest)?;
            Some(binder.bind(&stored, world))
        };
        off_thread(&self.loading, load).await
    }

    /// Compiles in a turn, off the threads that run programs; none where the turn was given up for somebody else. What
    /// comes from a user is compiled apart; a runtime is our own.
    async fn compiled(
        &self,
        shift: Shift,
        component: &Component,
        world: World,
        user: Option<&str>,
    ) -> Option<Outcome<B::Prepared>> {
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
        let (component, binder) = (component.clone(), self.binder.clone());
        let compile = move || {
            let compiled = job.compile(&component)?;
            compiled
                .map(|compiled| binder.bind(&compiled, world).map(Arc::new))
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
        // Code that is mapped from its file gives its memory back under pressure; where the file cannot be had, the
        // copy serves.
        Ok(Some(
            disk.load(engine, &component.digest).unwrap_or(compiled),
        ))
    }
}
