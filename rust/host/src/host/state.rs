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
use crate::program::fair_turns::FairTurns;
use crate::program::shared_components::SharedComponents;
use crate::program::store::ProgramStore;

/// What the tasks of processes share with the host.
pub(super) struct HostState {
    pub(super) config: Arc<HostConfig>,
    /// What users may make the engine hold.
    pub(super) budget: Arc<Budget>,
    pub(super) engine: wasmtime::Engine,
    pub(super) programs: Arc<ProgramStore<Linkers>>,
    /// Those that processes hold.
    pub(super) components: SharedComponents,
    pub(super) surroundings: Arc<Surroundings>,
    /// The turns in which programs are checked.
    pub(super) checking: Arc<FairTurns>,
    /// What users take of the threads that run programs.
    pub(super) standings: Arc<Standings>,
    pub(super) threads: Threads,
    pub(super) live: Live,
    pub(super) numbers: Numbers,
    /// Checks of programs have numbers too, counted down from the largest. Nobody sees them, and so the numbers of
    /// processes have no gaps.
    pub(super) next_look: AtomicU64,
}
