//! What the tasks of processes share with the host.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::live::Live;
use super::threads::Threads;
use crate::HostConfig;
use crate::budget::Budget;
use crate::interface::linkers::Linkers;
use crate::numbering::Numbers;
use crate::process::standing::Standings;
use crate::process::surroundings::Surroundings;
use crate::program::store::ProgramStore;
use crate::program::turns::Turns;

/// What the tasks of processes share with the host.
pub(super) struct Shared {
    pub(super) config: Arc<HostConfig>,
    /// What users may make the engine hold.
    pub(super) budget: Arc<Budget>,
    pub(super) engine: wasmtime::Engine,
    pub(super) programs: Arc<ProgramStore<Linkers>>,
    pub(super) surroundings: Arc<Surroundings>,
    /// Who may look at a program.
    pub(super) checking: Arc<Turns>,
    /// What users take of the threads that run programs.
    pub(super) standings: Arc<Standings>,
    pub(super) threads: Threads,
    pub(super) live: Live,
    pub(super) numbers: Numbers,
    /// Looks at programs have numbers too, from the other end: nobody sees those, and the ones of processes have no
    /// gaps.
    pub(super) next_look: AtomicU64,
}
