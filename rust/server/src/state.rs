//! What the connections of one server share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use pie_host::Host;
use tokio::sync::watch;

use crate::ServerConfig;
use crate::audit::Audit;
use crate::auth::Authority;
use crate::client_places::ClientPlaces;
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
pub(crate) struct ServerState {
    pub(crate) host: Arc<Host>,
    pub(crate) config: ServerConfig,
    pub(crate) address: SocketAddr,
    pub(crate) authority: Authority,
    pub(crate) audit: Audit,
    pub(crate) processes: Arc<Processes>,
    pub(crate) registry: Registry,
    pub(crate) phase: watch::Sender<Phase>,
    pub(crate) places: Arc<ClientPlaces>,
    pub(crate) started: Instant,
}

impl ServerState {
    /// Moves to a later phase; never back.
    pub(crate) fn advance(&self, to: Phase) {
        self.phase.send_if_modified(|phase| {
            let later = to > *phase;
            *phase = to.max(*phase);
            later
        });
    }
}
