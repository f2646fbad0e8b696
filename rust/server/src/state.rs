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
use crate::http_in::instances::HttpInstances;
use crate::http_in::places::HttpPlaces;
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
    pub(crate) http: HttpState,
    pub(crate) started: Instant,
}

/// What serves requests by HTTP.
pub(crate) struct HttpState {
    pub(crate) places: Arc<HttpPlaces>,
    pub(crate) instances: HttpInstances,
}

impl HttpState {
    /// That of a server that begins.
    pub(crate) fn new(config: &ServerConfig) -> Self {
        Self {
            places: HttpPlaces::new(config),
            instances: HttpInstances::new(config),
        }
    }
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
