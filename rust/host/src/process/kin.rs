//! What a process has to do with the one that has started it, and what it can start.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pie_core::{ProcessId, TokenBudget};
use sha2::{Digest, Sha256};

use super::ending::ProcessEnding;
use super::family::{Family, Member};
use super::nameable::Nameable;
use super::purse::Purse;
use crate::event::Event;
use crate::limits::Limits;
use crate::program::Program;
use crate::sync::lock;

/// What a child has of its parent. A host makes it for one child, which gives it up at its end.
#[derive(Debug)]
pub struct Inherited {
    /// Its own are at most these.
    pub(crate) limits: Limits,
    /// What enters its contexts is taken from this one too.
    pub(crate) budget: Option<TokenBudget>,
    pub(crate) lineage: Lineage,
    /// Told of its end.
    pub(crate) ending: Arc<ProcessEnding>,
    /// Given up at its end.
    pub(crate) places: Places,
    /// The process that starts it.
    pub(crate) parent: ProcessId,
}

/// Where a process stands among all that come of one launch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lineage {
    pub(crate) family: Arc<Family>,
    /// Generations below the launch.
    pub(crate) depth: usize,
    /// Its client is not the one who runs the engine.
    pub(crate) is_served: bool,
}

/// Where a child that lives is counted, until it is dropped.
pub(crate) struct Places {
    _of_family: Member,
    _of_user: Option<Box<dyn Any + Send + Sync>>,
}

impl Places {
    /// Among its family, and among the processes of its user where somebody counts those.
    pub(crate) fn new(of_family: Member, of_user: Option<Box<dyn Any + Send + Sync>>) -> Self {
        Self {
            _of_family: of_family,
            _of_user: of_user,
        }
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Places").finish_non_exhaustive()
    }
}

/// The kin of one process.
pub(crate) struct Kin {
    pub(crate) lineage: Lineage,
    /// Nobody but its family launches anything while it lives.
    pub(crate) is_alone: bool,
    /// What ends with it; none once it has ended.
    alive: Mutex<Option<Alive>>,
    /// Its end, for who waits for that; none: it was not started by another, or its end was told. What it has left then
    /// is held by those who may still ask for it.
    ending: Mutex<Option<Arc<ProcessEnding>>>,
    /// How many it has started.
    n_started: AtomicU64,
}

struct Alive {
    nameable: Arc<Nameable>,
    _places: Option<Places>,
    /// Its accounts; none before they are opened.
    purse: Option<Arc<Purse>>,
}

impl Kin {
    /// That of a process which can start what `nameable` finds, as a child where it has inherited something.
    pub(crate) fn new(nameable: Nameable, inherited: Option<Inherited>, is_alone: bool) -> Self {
        let (lineage, ending, places) = match inherited {
            None => (Lineage::default(), None, None),
            Some(Inherited {
                lineage,
                ending,
                places,
                ..
            }) => (lineage, Some(ending), Some(places)),
        };
        Self {
            lineage,
            is_alone,
            alive: Mutex::new(Some(Alive {
                nameable: Arc::new(nameable),
                _places: places,
                purse: None,
            })),
            ending: Mutex::new(ending),
            n_started: AtomicU64::new(0),
        }
    }

    /// The programs that it can start; none once it has ended.
    pub(crate) fn nameable(&self) -> Option<Arc<Nameable>> {
        lock(&self.alive)
            .as_ref()
            .map(|alive| alive.nameable.clone())
    }

    /// The programs that its launch names, for its children.
    pub(crate) fn given(&self) -> BTreeMap<String, Program> {
        let nameable = self.nameable();
        nameable.map_or_else(BTreeMap::new, |nameable| nameable.given())
    }

    /// The launch seed of its next child, where none is given.
    pub(crate) fn next_seed(&self, own_seed: u64) -> u64 {
        let mut hash = Sha256::new();
        hash.update(b"child");
        hash.update(own_seed.to_le_bytes());
        hash.update(self.n_started.load(Ordering::Relaxed).to_le_bytes());
        let digest: [u8; 32] = hash.finalize().into();
        let (first, _) = digest.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
        u64::from_le_bytes(*first)
    }

    /// Counts a child that it has started.
    pub(crate) fn count_child(&self) {
        self.n_started.fetch_add(1, Ordering::Relaxed);
    }

    /// Its end, for who waits for that; none where nobody does, or where it was told.
    pub(crate) fn ending(&self) -> Option<Arc<ProcessEnding>> {
        lock(&self.ending).clone()
    }

    /// Its accounts are there until it has ended.
    pub(crate) fn endow(&self, purse: Purse) {
        if let Some(alive) = lock(&self.alive).as_mut() {
            alive.purse = Some(Arc::new(purse));
        }
    }

    /// Its accounts; none once it has ended.
    pub(crate) fn purse(&self) -> Option<Arc<Purse>> {
        lock(&self.alive).as_ref()?.purse.clone()
    }

    /// The process has ended: it starts nothing more, its places are free, and its accounts are closed.
    pub(crate) fn end(&self) {
        let alive = lock(&self.alive).take();
        // Accounts are closed under the locks of their models, and not under this one.
        drop(alive);
    }

    /// Tells its end to who waits for it.
    pub(crate) fn settle(&self, last: &Arc<Event>) {
        // Whoever finds it here waits for it, so that it stays until it is told.
        if let Some(ending) = self.ending() {
            ending.settle(last.clone());
            lock(&self.ending).take();
        }
    }
}
