//! What a process has to do with the one that has started it, and with those that it starts.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use pie_core::{ErrorCode, TokenBudget};
use sha2::{Digest, Sha256};

use super::ending::Ending;
use super::family::{Family, Member};
use super::nameable::Nameable;
use crate::Error;
use crate::event::Event;
use crate::limits::Limits;
use crate::program::Program;
use crate::sync::lock;

/// What a child has of its parent. A host makes it.
#[derive(Clone, Debug)]
pub struct Inherited {
    /// Its own are at most these.
    pub(crate) limits: Limits,
    /// What enters its contexts is taken from this one too.
    pub(crate) budget: Option<TokenBudget>,
    pub(crate) family: Arc<Family>,
    /// Generations below the launch.
    pub(crate) depth: usize,
    pub(crate) is_alone: bool,
    pub(crate) is_served: bool,
    pub(crate) ending: Arc<Ending>,
    /// Given up at its end.
    pub(crate) places: Arc<Places>,
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

/// A child, as far as the one that has started it ends it.
pub(crate) trait Offspring: Send + Sync {
    /// Tells it to end for a reason.
    fn stop(&self, reason: Error);

    /// Its end, for who waits for that; none: it was not started by another.
    fn ending(&self) -> Option<&Arc<Ending>>;
}

/// The kin of one process.
pub(crate) struct Kin {
    pub(crate) family: Arc<Family>,
    /// Generations below the launch.
    pub(crate) depth: usize,
    /// Nobody but its family launches anything while it lives.
    pub(crate) is_alone: bool,
    /// Its client is not the one who runs the engine.
    pub(crate) is_served: bool,
    /// Told of its end; none: it was not started by another.
    pub(crate) ending: Option<Arc<Ending>>,
    /// What ends with it; none once it has ended.
    alive: Mutex<Option<Alive>>,
    /// Those that it has started and that end with it.
    children: Mutex<Vec<Weak<dyn Offspring>>>,
    /// How many it has started.
    n_started: AtomicU64,
}

struct Alive {
    nameable: Arc<Nameable>,
    _places: Option<Arc<Places>>,
}

impl Kin {
    /// That of a process which can start what `nameable` finds, as a child where it has inherited something.
    pub(crate) fn new(nameable: Nameable, inherited: Option<Inherited>, is_alone: bool) -> Self {
        let alive = |places| {
            Mutex::new(Some(Alive {
                nameable: Arc::new(nameable),
                _places: places,
            }))
        };
        let (children, n_started) = (Mutex::default(), AtomicU64::new(0));
        match inherited {
            None => Self {
                family: Arc::default(),
                depth: 0,
                is_alone,
                is_served: false,
                ending: None,
                alive: alive(None),
                children,
                n_started,
            },
            Some(inherited) => Self {
                family: inherited.family,
                depth: inherited.depth,
                is_alone: inherited.is_alone,
                is_served: inherited.is_served,
                ending: Some(inherited.ending),
                alive: alive(Some(inherited.places)),
                children,
                n_started,
            },
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

    /// Notes a child that ends with it.
    pub(crate) fn keep_child(&self, child: Weak<dyn Offspring>) {
        let mut children = lock(&self.children);
        children.retain(lives);
        children.push(child);
    }

    /// True while a child that ends with it lives.
    pub(crate) fn has_children(&self) -> bool {
        lock(&self.children).iter().any(lives)
    }

    /// Ends its children, and waits until they have ended, theirs before them.
    pub(crate) async fn end_children(&self, pid: u64) {
        for ending in self.stop_children(pid) {
            // What is heard is that it has ended, and where its task was dropped, that nothing runs any more.
            drop(ending.heard().await);
        }
    }

    /// Tells its children to end; gives what to wait for.
    fn stop_children(&self, pid: u64) -> Vec<Arc<Ending>> {
        let children = std::mem::take(&mut *lock(&self.children));
        let children = children.iter().filter_map(Weak::upgrade);
        let stopped = children.filter_map(|child| {
            let message = format!("the process {pid} that started this one has ended; a child that goes on is spawned detached");
            child.stop(Error::new(ErrorCode::Cancelled, message));
            child.ending().cloned()
        });
        stopped.collect()
    }

    /// The process has ended.
    pub(crate) fn end(&self, pid: u64, last: &Event) {
        lock(&self.alive).take();
        // None are left, but where its task was dropped.
        self.stop_children(pid);
        if let Some(ending) = &self.ending {
            let last = last.clone();
            ending.settle(if self.is_served {
                last.without_internals()
            } else {
                last
            });
        }
    }
}

fn lives(child: &Weak<dyn Offspring>) -> bool {
    let child = child.upgrade();
    child.is_some_and(|child| child.ending().is_some_and(|ending| !ending.is_settled()))
}
