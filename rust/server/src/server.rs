//! The server: its threads, its port, and how it ends.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use pie_host::{Error, ErrorCode, Host, Programs};
use tokio::net::{TcpListener, TcpSocket, lookup_host};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::audit::Audit;
use crate::auth::Authority;
use crate::client_places::ClientPlaces;
use crate::listener;
use crate::processes::{Numbers, Processes};
use crate::registry::Registry;
use crate::state::{HttpState, Phase, ServerState};
use crate::sync::lock;
use crate::threads::{LOOK_EVERY_TASKS, N_THREADS};
use crate::trimming;
use crate::{AuthConfig, ServerConfig};

/// The file in the data folder that says which numbers of processes were given.
const NUMBERS: &str = "process-numbers";
/// Threads that read and write installed programs, at most.
const BLOCKING_THREADS: usize = 4;
/// How long a thread of them waits for more work. What the server does from time to time by itself, each second, keeps
/// one of them and not all.
const KEEP_ALIVE: Duration = Duration::from_secs(1);
/// Bytes that the system holds for one client: whether a slow one takes something shows only when a part of them has
/// gone.
const SEND_BUFFER_BYTES: u32 = 128 << 10;
/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;
/// Why processes are cancelled when the server ends.
const ENDED: &str = "the server has ended";
/// How long cancelled processes, and then connections, have to end when the server stops.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// A running server. Dropping it stops it.
pub struct Server {
    shared: Arc<ServerState>,
    /// None once it has stopped.
    running: Mutex<Option<Running>>,
}

struct Running {
    runtime: Runtime,
    listener: JoinHandle<()>,
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Server")
            .field("address", &self.shared.address)
            .finish_non_exhaustive()
    }
}

/// The threads that serve.
fn threads() -> Result<tokio::runtime::Runtime, Error> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(N_THREADS)
        .event_interval(LOOK_EVERY_TASKS)
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_keep_alive(KEEP_ALIVE)
        .thread_name("pie-server")
        .enable_all()
        .build()
        .map_err(|error| {
            Error::internal(format!(
                "the threads of the server cannot be started: {error}"
            ))
        })
}

impl Server {
    /// Starts to serve the programs and models of `host`.
    ///
    /// # Errors
    /// `port-in-use` when the port cannot be listened on, `invalid-config` for a setting out of its range, for an
    /// address that is not of this machine, and for a folder that cannot be used, or that another server or engine
    /// uses.
    pub fn start(host: Arc<Host>, config: ServerConfig) -> Result<Self, Error> {
        config.check()?;
        let runtime = threads()?;
        let audit = Audit::open(config.auth.audit_file())?;
        // The address first: a second server by mistake must not touch the folder of the first.
        let (listener, address) = runtime.block_on(bind(&config))?;
        // A program alone may have no files: where it has, they are claimed as it first asks for them.
        if config.mount.is_none() {
            host.claim_files()?;
        }
        let authority = Authority::open(&config.auth, &config.data_dir, address)?;
        let registry = Registry::open(
            config.data_dir.join("programs"),
            config.disk_shares(),
            host.budget().clone(),
        )?;
        // The folder is this server's own from here on.
        let numbers = Numbers::open(config.data_dir.join(NUMBERS))?;
        host.number_by(numbers.numbering());
        let processes = Arc::new(Processes::new(&config, numbers, host.max_processes()));
        let mut places = ClientPlaces::new(&config, host.budget().clone());
        if authority.names_are_free() {
            places = places.with_free_names(&config);
        }
        let places = Arc::new(places);
        let shared = Arc::new(ServerState {
            host,
            address,
            authority,
            audit,
            processes: processes.clone(),
            registry,
            phase: watch::Sender::new(Phase::Serving),
            places,
            http: HttpState::new(&config),
            started: Instant::now(),
            config,
        });
        shared
            .host
            .know_programs(Arc::downgrade(&shared) as Weak<dyn Programs>);
        runtime.spawn(async move { processes.tend().await });
        let (budget, forgetting) = (shared.host.budget().clone(), shared.clone());
        let forget_unused = move || {
            forgetting.registry.forget_unused();
            forgetting.host.bus().forget_gone(Instant::now());
        };
        runtime.spawn(trimming::give_back(budget, forget_unused));
        let following = shared.clone();
        runtime.spawn(async move { following.authority.follow(&following.audit).await });
        let listener = runtime.spawn(listener::listen(listener, shared.clone()));
        tracing::info!(%address, "serving");
        Ok(Self {
            shared,
            running: Mutex::new(Some(Running { runtime, listener })),
        })
    }

    /// The address that is listened on.
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// Processes that live.
    pub fn n_live(&self) -> usize {
        self.shared.processes.counts().0
    }

    /// Clients that are connected.
    pub fn n_connections(&self) -> usize {
        self.shared.places.count()
    }

    /// From now on launches are refused, and clients are told. Processes run on, at most for the time of
    /// [`ServerConfig::drain`].
    pub fn begin_drain(&self) {
        let running = lock(&self.running);
        let Some(running) = running.as_ref() else {
            return;
        };
        if *self.shared.phase.borrow() != Phase::Serving {
            return;
        }
        tracing::info!(n_live = self.n_live(), "draining");
        let (processes, time) = (self.shared.processes.clone(), self.shared.config.drain);
        processes.drain();
        self.shared.advance(Phase::Draining);
        let shared = self.shared.clone();
        running
            .runtime
            .spawn(async move { shared.http.instances.end_all().await });
        running.runtime.spawn(async move {
            tokio::time::sleep(time).await;
            processes.cancel_all(ENDED);
        });
    }

    /// Cancels every process, lets the clients have what is left, and closes. A second call does nothing.
    pub fn stop(&self) {
        let Some(Running { runtime, listener }) = lock(&self.running).take() else {
            return;
        };
        self.shared.advance(Phase::Draining);
        let processes = &self.shared.processes;
        processes.cancel_all(ENDED);
        runtime.block_on(async {
            // What does not end in time is cut off.
            drop(tokio::time::timeout(STOP_PATIENCE, processes.all_ended()).await);
            self.shared.advance(Phase::Closing);
            drop(tokio::time::timeout(STOP_PATIENCE, listener).await);
        });
        // What still reads or writes programs is waited for: the next server may use the folder from then on.
        runtime.shutdown_timeout(STOP_PATIENCE);
        processes.close_numbers(self.shared.host.next_count());
        self.shared.registry.close();
        processes.clear();
        self.shared.audit.close();
        tracing::info!("stopped");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Checks whether an address can be listened on, so that a caller with much to prepare knows it early.
///
/// # Errors
/// `port-in-use` or `invalid-config`, as [`Server::start`] would say.
pub fn check_address(host: &str, port: u16) -> Result<(), Error> {
    std::net::TcpListener::bind((host, port))
        .map(drop)
        .map_err(|error| unusable(host, port, &error))
}

/// Checks whether clients can connect to an address, and that not anybody can be any user there. [`Server::start`]
/// checks the same; this tells it early.
///
/// # Errors
/// `invalid-config`, with the remedy.
pub fn check_access(
    host: &str,
    port: u16,
    data_dir: &Path,
    auth: &AuthConfig,
) -> Result<(), Error> {
    let found = (host, port).to_socket_addrs();
    let address = found.map_err(|error| unusable(host, port, &error))?.next();
    match address {
        Some(address) => Authority::open(auth, data_dir, address).map(drop),
        None => Ok(()),
    }
}

async fn bind(config: &ServerConfig) -> Result<(TcpListener, SocketAddr), Error> {
    let unusable = |error: io::Error| unusable(&config.host, config.port, &error);
    let mut fault = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in lookup_host((config.host.as_str(), config.port))
        .await
        .map_err(unusable)?
    {
        match listener_at(address) {
            Ok(listener) => {
                let address = listener.local_addr().map_err(unusable)?;
                return Ok((listener, address));
            }
            Err(error) => fault = error,
        }
    }
    Err(unusable(fault))
}

fn listener_at(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    // The connections inherit it.
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn unusable(host: &str, port: u16, error: &std::io::Error) -> Error {
    use std::io::ErrorKind::{AddrInUse, PermissionDenied};
    let (code, remedy) = match error.kind() {
        AddrInUse => (
            ErrorCode::PortInUse,
            "give another port (0 picks a free one), or end what listens there",
        ),
        PermissionDenied => (
            ErrorCode::PortInUse,
            "give a port above 1023 (0 picks a free one)",
        ),
        _ => (
            ErrorCode::InvalidConfig,
            "set server.host to an address of this machine, as 127.0.0.1",
        ),
    };
    Error::new(
        code,
        format!("{host}:{port} cannot be served on ({error}); {remedy}"),
    )
}
