//! The server: its threads, its port, and how it ends.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pie_host::{Error, ErrorCode, Host};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::ServerConfig;
use crate::listener;
use crate::processes::Processes;
use crate::registry::Registry;
use crate::shared::{Phase, Shared, lock};

/// Threads that serve connections; programs run on those of the host.
const THREADS: usize = 2;
/// Threads that read and write installed programs, at most.
const BLOCKING_THREADS: usize = 4;
/// How long cancelled processes, and then connections, have to end when the server stops.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// A running server. Dropping it stops it.
pub struct Server {
    shared: Arc<Shared>,
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

impl Server {
    /// Starts to serve the programs and models of `host`.
    ///
    /// # Errors
    /// `port-in-use` when the address cannot be listened on, `invalid-config` for a folder that cannot be used.
    pub fn start(host: Arc<Host>, config: ServerConfig) -> Result<Self, Error> {
        let registry =
            Registry::open(config.data_dir.join("programs"), config.max_installed_bytes)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .max_blocking_threads(BLOCKING_THREADS)
            .thread_name("pie-server")
            .enable_all()
            .build()
            .map_err(|error| {
                Error::internal(format!(
                    "the threads of the server cannot be started: {error}"
                ))
            })?;
        let bound = runtime.block_on(bind(&config))?;
        let (listener, address) = bound;
        let processes = Arc::new(Processes::new(&config));
        let shared = Arc::new(Shared {
            host,
            address,
            processes: processes.clone(),
            registry,
            upload_bytes: AtomicUsize::new(0),
            phase: watch::Sender::new(Phase::Serving),
            n_connections: AtomicUsize::new(0),
            next_connection: AtomicU64::new(1),
            started: Instant::now(),
            config,
        });
        runtime.spawn(async move { processes.tend().await });
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
        self.shared
            .n_connections
            .load(std::sync::atomic::Ordering::Relaxed)
    }

    /// From now on launches are refused, and clients are told. Processes run on.
    pub fn begin_drain(&self) {
        tracing::info!(n_live = self.n_live(), "draining");
        self.shared.advance(Phase::Draining);
    }

    /// Begins to drain and waits at most `timeout` for the last process to end; true when none lives.
    pub fn drain(&self, timeout: Duration) -> bool {
        self.begin_drain();
        let running = lock(&self.running);
        let Some(running) = running.as_ref() else {
            return true;
        };
        let ended = async {
            tokio::time::timeout(timeout, self.shared.processes.all_ended())
                .await
                .is_ok()
        };
        running.runtime.block_on(ended)
    }

    /// Cancels every process, lets the clients have what is left, and closes. A second call does nothing.
    pub fn stop(&self) {
        let Some(Running { runtime, listener }) = lock(&self.running).take() else {
            return;
        };
        self.shared.advance(Phase::Draining);
        let processes = &self.shared.processes;
        processes.cancel_all("the server has ended");
        runtime.block_on(async {
            // What does not end in time is cut off.
            drop(tokio::time::timeout(STOP_PATIENCE, processes.all_ended()).await);
            self.shared.advance(Phase::Closing);
            drop(tokio::time::timeout(STOP_PATIENCE, listener).await);
        });
        runtime.shutdown_background();
        processes.clear();
        tracing::info!("stopped");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Looks whether an address can be listened on, so that whoever has much to make ready first knows early.
///
/// # Errors
/// `port-in-use`, as [`Server::start`] would say.
pub fn check_address(host: &str, port: u16) -> Result<(), Error> {
    std::net::TcpListener::bind((host, port))
        .map(drop)
        .map_err(|error| unusable(host, port, &error))
}

async fn bind(config: &ServerConfig) -> Result<(TcpListener, SocketAddr), Error> {
    let unusable = |error: std::io::Error| unusable(&config.host, config.port, &error);
    let listener = TcpListener::bind((config.host.as_str(), config.port))
        .await
        .map_err(unusable)?;
    let address = listener.local_addr().map_err(unusable)?;
    Ok((listener, address))
}

fn unusable(host: &str, port: u16, error: &std::io::Error) -> Error {
    let message = format!(
        "{host}:{port} cannot be served on ({error}); give another port (0 picks a free one), or end what listens there"
    );
    Error::new(ErrorCode::PortInUse, message)
}
