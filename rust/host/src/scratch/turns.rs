//! Work on files: off the threads that run programs, in turn with that of other users, and on the processor time of the
//! process that it is for.
//!
//! Walks through a folder take long, and so do paths of many names and links. A program that always waits for them
//! computes nothing itself: without this, neither its limit nor its user's standing would know of it.

use std::io;
use std::sync::Arc;
use std::thread::available_parallelism;

use tokio::runtime::Handle;

use super::folder::{Fault, Outcome};
use crate::program::fair_turns::FairTurns;
use crate::sandbox::cpu::CpuMeter;

/// Turns for each processor: the disk works while another thread computes.
const TURNS_PER_PROCESSOR: usize = 2;

/// The turns of all programs of a host. A call of a process or a stream waits for one, and other limits bound those.
pub(super) fn turns_of_host() -> Arc<FairTurns> {
    let n_processors = available_parallelism().map_or(2, usize::from);
    FairTurns::with_any_room(n_processors.max(2) * TURNS_PER_PROCESSOR)
}

/// How the work of one process on files is done.
#[derive(Clone)]
pub(crate) struct FileTurns {
    turns: Arc<FairTurns>,
    user: Arc<str>,
    cpu: Arc<CpuMeter>,
    threads: Handle,
}

impl FileTurns {
    /// That of a process of `user`, whose processor time `cpu` counts. It works on `threads`, wherever the program
    /// runs: a turn, or a folder, that is held by a thread of low priority would hold up users who owe no time.
    pub(super) const fn new(
        turns: Arc<FairTurns>,
        user: Arc<str>,
        cpu: Arc<CpuMeter>,
        threads: Handle,
    ) -> Self {
        Self {
            turns,
            user,
            cpu,
            threads,
        }
    }

    /// Does work that may block, when its turn comes. What has begun is done to its end, also where nobody waits for it
    /// any more.
    ///
    /// # Errors
    /// `io` where the work panics, or the engine ends before it has begun.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Outcome<T> {
        let turn = self.turns.take(&self.user).await?;
        let cpu = self.cpu.clone();
        let working = self.threads.spawn_blocking(move || {
            let done = cpu.measured(work);
            drop(turn);
            done
        });
        working
            .await
            .map_err(|failed| Fault::Io(io::Error::other(failed)))
    }
}
