//! Since when a process stands still, and who has clients.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use pie_host::ServedProcess;

/// Since when nothing of a process was seen: no client that it belongs to, and no work.
#[derive(Debug)]
pub(in crate::processes) struct Still {
    pub(super) since: Instant,
    /// What it had done when it was looked at last, and when that was.
    pub(super) done: Done,
    pub(super) looked: Option<Instant>,
    /// It was told to end, so that another one has its place.
    pub(super) gives_way: bool,
}

/// What a process has done.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Done {
    cpu: Duration,
    n_tokens: u64,
}

/// Users of whom clients are connected, and how many; of those who have processes also when the last one left.
#[derive(Debug, Default)]
pub(super) struct Present(pub(super) HashMap<String, Clients>);

#[derive(Debug)]
pub(super) struct Clients {
    pub(super) n: usize,
    pub(super) last: Instant,
}

/// The process that was told to end for a launch which waits for its place.
#[derive(Debug, Default)]
pub(in crate::processes) struct WaitsFor(pub(super) Option<u64>);

impl Still {
    /// That of a process which begins.
    pub(in crate::processes) fn new(now: Instant) -> Self {
        Self {
            since: now,
            done: Done::default(),
            looked: None,
            gives_way: false,
        }
    }

    /// True where it was told to end.
    #[cfg(test)]
    pub(super) const fn gives_way(&self) -> bool {
        self.gives_way
    }
}

impl Done {
    pub(super) fn of(process: &ServedProcess) -> Self {
        Self {
            cpu: process.cpu(),
            n_tokens: process.n_tokens(),
        }
    }
}

impl Present {
    pub(super) fn is(&self, user: &str) -> bool {
        self.0.get(user).is_some_and(|clients| clients.n > 0)
    }

    /// When the last client of the user left; none: it is not known.
    pub(super) fn left(&self, user: &str) -> Option<Instant> {
        self.0.get(user).map(|clients| clients.last)
    }
}
