//! What the connections of one server share.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use pie_host::Host;
use tokio::sync::watch;

use crate::ServerConfig;
use crate::processes::Processes;
use crate::registry::Registry;

/// How far the server has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    /// No launches; processes run to their end.
    Draining,
    /// Connections say what is left, and end.
    Closing,
}

/// What the connections of one server share.
pub(crate) struct Shared {
    pub(crate) host: Arc<Host>,
    pub(crate) config: ServerConfig,
    pub(crate) address: SocketAddr,
    pub(crate) processes: Arc<Processes>,
    pub(crate) registry: Registry,
    /// Bytes of uploads that all connections hold.
    pub(crate) upload_bytes: AtomicUsize,
    pub(crate) phase: watch::Sender<Phase>,
    pub(crate) n_connections: AtomicUsize,
    pub(crate) next_connection: AtomicU64,
    pub(crate) started: Instant,
}

impl Shared {
    /// The place of one more client among those that may be connected; none when there are too many.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Place> {
        let most = self.config.max_connections;
        self.n_connections
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |n| {
                (n < most).then_some(n + 1)
            })
            .ok()?;
        Some(Place(self.clone()))
    }

    /// Goes on to a later phase.
    pub(crate) fn advance(&self, to: Phase) {
        self.phase.send_if_modified(|phase| {
            let later = to > *phase;
            *phase = to.max(*phase);
            later
        });
    }
}

/// A place among the connected clients, which becomes free when it is dropped.
pub(crate) struct Place(Arc<Shared>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.n_connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Locks `mutex`. A panic of another holder was reported where it happened, and the value is used as it stands, so that one fault
/// does not become an outage.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
