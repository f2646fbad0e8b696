//! The snapshots of a model on disk, and who works on them.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use pie_core::{Capabilities, ContentId, ContextId};

use crate::Error;
use crate::program::blocking::blocking;
use crate::program::fair_turns::FairTurns;
use crate::snapshots::config::PageKeeping;
use crate::snapshots::pages::{KeptRun, PageForm};
use crate::snapshots::store::SnapshotStore;
use crate::sync::lock;

/// Snapshots that are written or read at once.
const PARALLEL: usize = 4;
/// Bytes a second that pages are thought to be read at, before any was.
const ASSUMED_RATE: u64 = 500 << 20;
/// Of what was seen before, what was seen last counts for this part.
const BLEND: u64 = 4;
/// Of what a disk was slower than thought, each time that pages are not read for it forgets this part.
const FORGETTING: u64 = 32;

/// The snapshots of a model on disk, and the turns in which users work on them.
#[derive(Debug)]
pub(crate) struct Keeping {
    pub(super) store: SnapshotStore,
    turns: Arc<FairTurns>,
    pages: PageKeeping,
    /// What the pages of the driver are; none where they are not kept.
    form: Option<PageForm>,
    /// Bytes a second that pages were read at.
    rate: AtomicU64,
    /// Held by whoever moves pages, so that what they are moved through is there once. In it is the memory of moves
    /// that were given up, which a driver may still open by its path.
    moving: Mutex<Vec<Arc<File>>>,
    jobs: Sender<Job>,
    /// Until somebody does the jobs.
    unread: Mutex<Option<Receiver<Job>>>,
}

/// What whoever brings pages is told.
#[derive(Debug)]
pub(super) enum Job {
    /// A context was opened, and nobody wants its pages yet.
    Opened(ContextId, Opening),
    /// A pass waits for the pages of a context.
    Wanted(ContextId),
    /// Neither the context nor a fork of it is there any more.
    Gone(ContextId),
}

/// The pages of a context that was opened.
#[derive(Debug)]
pub(super) struct Opening {
    /// Its first runs, of which there are pages.
    pub(super) runs: Vec<KeptRun>,
    /// The numbers of the files that are held for them.
    pub(super) held: Vec<u64>,
    /// The full pages of the context.
    pub(super) contents: Vec<ContentId>,
    /// Runs that are done.
    pub(super) n_done: usize,
}

/// Pages of a context that its first pass waits for, or that of a fork: while any of them is there.
#[derive(Debug)]
pub(super) struct AwaitedPages {
    context: ContextId,
    jobs: Sender<Job>,
}

impl Drop for AwaitedPages {
    fn drop(&mut self) {
        // Nobody does the jobs any more where the model has ended.
        drop(self.jobs.send(Job::Gone(self.context)));
    }
}

impl Keeping {
    /// Of those of a store, for a model on a driver.
    pub(crate) fn new(store: SnapshotStore, driver: &Capabilities) -> Arc<Self> {
        let pages = store.page_keeping();
        let (jobs, unread) = mpsc::channel();
        Arc::new(Self {
            store,
            turns: FairTurns::new(PARALLEL),
            pages,
            form: PageForm::of(driver).filter(|_| pages != PageKeeping::Never),
            rate: AtomicU64::new(ASSUMED_RATE),
            moving: Mutex::default(),
            jobs,
            unread: Mutex::new(Some(unread)),
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

    /// What the pages of the driver are; none where they are not kept.
    pub(super) const fn form(&self) -> Option<&PageForm> {
        self.form.as_ref()
    }

    /// Whether reading a page seems to be cheaper than computing it, where a token costs `token_ns`; 0: that is not
    /// known.
    pub(super) fn is_worth(&self, form: &PageForm, token_ns: u64) -> bool {
        let rate = self.rate.load(Ordering::Relaxed).max(1);
        let read_ns = (form.page_bytes as u64).saturating_mul(1_000_000_000) / rate;
        let compute_ns = token_ns.saturating_mul(u64::from(form.page_size()));
        let is_worth = self.pages == PageKeeping::Always || token_ns == 0 || read_ns < compute_ns;
        if !is_worth {
            // A disk that was slow once is tried again some day.
            let missing = ASSUMED_RATE.saturating_sub(rate);
            self.rate
                .store(rate + missing / FORGETTING, Ordering::Relaxed);
        }
        is_worth
    }

    /// So many bytes of pages were read, from the disk into the pool.
    pub(super) fn note_read(&self, n_bytes: u64, took: Duration) {
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(1);
        let seen = n_bytes.saturating_mul(1_000_000_000) / took_ns;
        let usual = self.rate.load(Ordering::Relaxed);
        self.rate
            .store(usual - usual / BLEND + seen / BLEND, Ordering::Relaxed);
    }

    /// Nobody else moves pages meanwhile. What is locked is the memory of moves that were given up.
    pub(super) fn alone(&self) -> MutexGuard<'_, Vec<Arc<File>>> {
        lock(&self.moving)
    }

    /// A context was opened of which there are pages.
    pub(super) fn opened(&self, context: ContextId, opening: Opening) -> Arc<AwaitedPages> {
        drop(self.jobs.send(Job::Opened(context, opening)));
        Arc::new(AwaitedPages {
            context,
            jobs: self.jobs.clone(),
        })
    }

    /// Passes wait for the pages of these contexts. False: nobody brings them.
    pub(super) fn want(&self, contexts: &[ContextId]) -> bool {
        let mut contexts = contexts.iter();
        contexts.all(|&context| self.jobs.send(Job::Wanted(context)).is_ok())
    }

    /// What is to be done, for the only one who does it.
    pub(super) fn take_jobs(&self) -> Option<Receiver<Job>> {
        lock(&self.unread).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshots::config::SnapshotConfig;
    use crate::snapshots::store::ModelIdentity;

    fn keeping(pages: PageKeeping) -> Arc<Keeping> {
        let config = SnapshotConfig {
            pages,
            ..SnapshotConfig::default()
        };
        let identity = ModelIdentity {
            name: "tiny".to_owned(),
            backend: "dummy".to_owned(),
            folder: "/checkpoint".into(),
        };
        let driver = Capabilities {
            page_bytes: 1 << 20,
            ..Capabilities::default()
        };
        Keeping::new(
            SnapshotStore::new("/absent".as_ref(), config, identity),
            &driver,
        )
    }

    #[test]
    fn the_cheaper_way_is_taken() {
        let keeping = self::keeping(PageKeeping::Auto);
        let form = keeping.form().unwrap();
        // A page takes 2 ms to read, and 16 tokens to compute.
        assert!(keeping.is_worth(form, 0), "nothing is known");
        assert!(keeping.is_worth(form, 130_000));
        assert!(!keeping.is_worth(form, 120_000));
        for _ in 0..100 {
            keeping.note_read(1 << 30, Duration::from_secs(1));
        }
        assert!(keeping.is_worth(form, 63_000));
        assert!(!keeping.is_worth(form, 59_000));
    }

    #[test]
    fn a_disk_that_was_slow_is_tried_again() {
        let keeping = self::keeping(PageKeeping::Auto);
        let form = keeping.form().unwrap();
        for _ in 0..100 {
            keeping.note_read(1 << 20, Duration::from_secs(1));
        }
        assert!(!keeping.is_worth(form, 130_000));
        let n_refused = (0..1000).position(|_| keeping.is_worth(form, 130_000));
        assert!(n_refused.is_some_and(|n| n > 50), "{n_refused:?}");
    }

    #[test]
    fn what_is_set_holds_whatever_it_costs() {
        let always = keeping(PageKeeping::Always);
        assert!(always.is_worth(always.form().unwrap(), 1));
        assert!(keeping(PageKeeping::Never).form().is_none());
    }
}
