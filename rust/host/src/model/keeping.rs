//! The snapshots of a model on disk, and who works on them.

use std::sync::Arc;

use crate::Error;
use crate::program::blocking::blocking;
use crate::program::fair_turns::FairTurns;
use crate::snapshots::store::SnapshotStore;

/// Snapshots that are written or read at once.
const PARALLEL: usize = 4;

/// The snapshots of a model on disk, and the turns in which users work on them.
#[derive(Debug)]
pub(crate) struct Keeping {
    pub(super) store: SnapshotStore,
    turns: Arc<FairTurns>,
}

impl Keeping {
    /// Of those of a store.
    pub(crate) fn new(store: SnapshotStore) -> Arc<Self> {
        Arc::new(Self {
            store,
            turns: FairTurns::new(PARALLEL),
        })
    }

    /// Runs work on the disk off the threads that run programs, in turn with that of other users. What has begun is
    /// done to its end, also where the process ends.
    ///
    /// # Errors
    /// Those of the work; `limit-queue` where too many wait, `internal` where it panicked.
    pub(super) async fn work<T: Send + 'static>(
        self: Arc<Self>,
        user: &str,
        work: impl FnOnce(&SnapshotStore) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let turn = self.turns.take(user).await?;
        blocking(move || {
            let _turn = turn;
            work(&self.store)
        })
        .await?
    }
}
