//! Work on files: off the threads that run programs, in turn with that of other users, and on the processor time of the
//! process that it is for.
//!
//! Walks through a folder take long, and so do paths of many names and links. A program that always waits for them
//! computes nothing itself: without this, neither its limit nor its user's standing would know of it.

use std::io;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::runtime::Handle;

use super::folder::{Fault, Outcome};
use super::watch::Watch;
use crate::program::fair_turns::FairTurns;
use crate::sandbox::cpu::CpuMeter;

/// Turns for each processor: the disk works while another thread computes.
const TURNS_PER_PROCESSOR: usize = 2;

/// The turns of all programs of a host. A call of a process or a stream waits for one, and other limits bound those.
#[derive(Clone)]
pub(super) struct HostTurns {
    turns: Arc<FairTurns>,
    watch: Arc<Watch>,
}

impl HostTurns {
    /// Those of this machine, for work that may last for `patience`.
    pub(super) fn of_machine(patience: Duration) -> Self {
        let n_processors = available_parallelism().map_or(2, usize::from);
        Self::new(n_processors.max(2) * TURNS_PER_PROCESSOR, patience)
    }

    /// `n` turns.
    pub(super) fn new(n: usize, patience: Duration) -> Self {
        Self {
            turns: FairTurns::with_any_room(n),
            watch: Watch::new(patience, n),
        }
    }

    /// Work that has not ended.
    #[cfg(test)]
    pub(super) fn n_working(&self) -> usize {
        self.watch.n_working()
    }
}

/// How the work of one process on files is done.
#[derive(Clone)]
pub(crate) struct FileTurns {
    of_host: HostTurns,
    user: Arc<str>,
    cpu: Arc<CpuMeter>,
    threads: Handle,
}

impl FileTurns {
    /// That of a process of `user`, whose processor time `cpu` counts. It works on `threads`, wherever the program
    /// runs: a turn, or a folder, that is held by a thread of low priority would hold up users who owe no time.
    pub(super) const fn new(
        of_host: HostTurns,
        user: Arc<str>,
        cpu: Arc<CpuMeter>,
        threads: Handle,
    ) -> Self {
        Self {
            of_host,
            user,
            cpu,
            threads,
        }
    }

    /// Waits for something that work on files may hold up, as a folder that somebody changes.
    ///
    /// # Errors
    /// `files-stalled` where work of the user does not end, or that of others does not and what was waited for did not
    /// come.
    pub(super) async fn waiting<T>(&self, awaited: impl Future<Output = T>) -> Outcome<T> {
        Ok(self.of_host.watch.waiting(&self.user, awaited).await?)
    }

    /// Does work that may block, when its turn comes. What has begun is done to its end, also where nobody waits for it
    /// any more.
    ///
    /// # Errors
    /// As [`Self::waiting`]; `io` where the work panics, or the engine ends before it has begun.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Outcome<T> {
        let HostTurns { turns, watch } = &self.of_host;
        let turn = self.waiting(turns.take(&self.user)).await??;
        let (cpu, under_way) = (self.cpu.clone(), watch.begin(turn, &self.user));
        let working = self.threads.spawn_blocking(move || {
            let done = cpu.measured(work);
            drop(under_way);
            done
        });
        let done = self.waiting(working).await?;
        done.map_err(|failed| Fault::Io(io::Error::other(failed)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use pie_core::ErrorCode;

    use super::*;

    fn refused<T>(outcome: Outcome<T>) -> ErrorCode {
        match outcome {
            Err(Fault::Refused(error)) => error.code,
            Err(Fault::Io(error)) => panic!("the system has refused it: {error}"),
            Ok(_) => panic!("it was done"),
        }
    }

    #[test]
    fn work_that_hangs_ends_the_calls_of_its_user_and_no_others() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_time()
            .build()
            .unwrap();
        let of_host = HostTurns::new(2, Duration::from_millis(500));
        let of = |user: &str| {
            let threads = runtime.handle().clone();
            FileTurns::new(of_host.clone(), user.into(), Arc::default(), threads)
        };
        let (ada, bob) = (of("ada"), of("bob"));
        let (go, hangs) = mpsc::channel::<()>();
        runtime.block_on(async {
            let hanging = ada.run(move || hangs.recv().is_ok()).await;
            assert_eq!(refused(hanging), ErrorCode::FilesStalled);
            assert_eq!(refused(ada.run(|| ()).await), ErrorCode::FilesStalled);
            assert_eq!(bob.run(|| 7).await.unwrap(), 7);
            go.send(()).unwrap();
            while of_host.n_working() > 0 {
                tokio::task::yield_now().await;
            }
            ada.run(|| ()).await.unwrap();
        });
    }

    /// As a change holds the folder that it changes.
    #[test]
    fn whoever_waits_for_what_work_that_hangs_holds_is_refused() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_time()
            .build()
            .unwrap();
        let of_host = HostTurns::new(4, Duration::from_millis(100));
        let threads = runtime.handle();
        let ada = FileTurns::new(
            of_host.clone(),
            "ada".into(),
            Arc::default(),
            threads.clone(),
        );
        let bob = FileTurns::new(of_host, "bob".into(), Arc::default(), threads.clone());
        let folder = Arc::new(tokio::sync::Mutex::new(()));
        let (go, hangs) = mpsc::channel::<()>();
        runtime.block_on(async {
            let held = folder.clone().lock_owned().await;
            let hanging = ada.run(move || {
                let received = hangs.recv();
                drop(held);
                received
            });
            assert_eq!(refused(hanging.await), ErrorCode::FilesStalled);
            let waited = bob.waiting(folder.clone().lock_owned()).await;
            assert_eq!(refused(waited), ErrorCode::FilesStalled);
            go.send(()).unwrap();
            drop(folder.lock().await);
        });
    }
}
