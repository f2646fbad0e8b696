//! The server: the engine's models and programs for clients of the network.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use pie_host::{Error, ErrorCode, Host};
use pie_server::{LogWriter, MountedProgram, PROCESS_LOG, PROGRAM_LOG, Server, ServerConfig};
use pyo3::prelude::*;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::writer::MakeWriterExt as _;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::boundary::{detached, duration, raise};
use crate::config::{self, SettingValues};

/// A running server; see the stub.
#[pyclass(name = "Server", module = "pie._engine", frozen)]
pub(crate) struct PyServer(Server);

#[pymethods]
impl PyServer {
    #[getter]
    fn address(&self) -> String {
        self.0.address().to_string()
    }

    #[getter]
    fn n_live(&self) -> usize {
        self.0.n_live()
    }

    #[getter]
    fn n_connections(&self) -> usize {
        self.0.n_connections()
    }

    fn begin_drain(&self, py: Python<'_>) {
        py.detach(|| self.0.begin_drain());
    }

    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.0.stop());
    }
}

/// See the stub.
#[pyfunction]
pub(crate) fn check_address(py: Python<'_>, host: &str, port: u16) -> PyResult<()> {
    detached(py, || pie_server::check_address(host, port))
}

/// Starts a server on an engine, for clients or for one program that serves HTTP.
pub(crate) fn serve(
    py: Python<'_>,
    engine: Arc<Host>,
    data_dir: PathBuf,
    settings: &SettingValues<'_>,
    mount: Option<MountedProgram>,
) -> PyResult<PyServer> {
    let config = ServerConfig {
        mount,
        ..config_of(py, data_dir, settings)?
    };
    detached(py, || Server::start(engine, config)).map(PyServer)
}

/// The configuration of a server with these settings.
fn config_of(
    py: Python<'_>,
    data_dir: PathBuf,
    settings: &SettingValues<'_>,
) -> PyResult<ServerConfig> {
    let mut config = ServerConfig::new(data_dir);
    config::apply(py, "server", settings, |name, value| {
        config.set_in_section(name, value)
    })?;
    Ok(config)
}

/// See the stub.
#[pyfunction]
#[pyo3(signature = (data_dir, settings = None))]
pub(crate) fn check_access(
    py: Python<'_>,
    data_dir: PathBuf,
    settings: SettingValues<'_>,
) -> PyResult<()> {
    let config = config_of(py, data_dir, &settings)?;
    detached(py, || {
        pie_server::check_access(&config.host, config.port, &config.data_dir, &config.auth)
    })
}

/// See the stub.
///
/// What tells of a fault is written at once. All else is more, and waits for nobody: so do the lines of programs,
/// whatever their level.
#[pyfunction]
#[pyo3(signature = (level, *, programs = true))]
pub(crate) fn init_logging(py: Python<'_>, level: &str, programs: bool) -> PyResult<()> {
    let level: LevelFilter = level.parse().map_err(|_| {
        let message =
            format!("{level:?} is not a level; use off, error, warn, info, debug or trace");
        raise(py, Error::new(ErrorCode::InvalidConfig, message))
    })?;
    let of_programs = if !programs {
        level.min(LevelFilter::WARN)
    } else if level >= LevelFilter::WARN {
        level.max(LevelFilter::INFO)
    } else {
        level
    };
    let log = LogWriter::start(std::io::stderr()).map_err(|error| {
        let message = format!("no thread can be started that writes the log: {error}");
        raise(py, Error::new(ErrorCode::Internal, message))
    })?;
    let waiting = log.clone();
    let writer = std::io::stderr
        .with_filter(|of: &Metadata<'_>| *of.level() <= Level::WARN && of.target() != PROGRAM_LOG)
        .or_else(move || waiting.clone());
    let of_stderr = if programs {
        of_programs
    } else {
        LevelFilter::OFF
    };
    let filter = Targets::new()
        .with_default(level)
        .with_target(PROCESS_LOG, of_programs)
        .with_target(PROGRAM_LOG, of_stderr);
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level.max(of_programs))
        .with_writer(writer)
        .with_ansi(false)
        .finish()
        .with(filter);
    // Where a subscriber is installed already, it stays.
    if subscriber.try_init().is_ok() {
        drop(LOG.set(log));
    }
    Ok(())
}

/// What the subscriber of this process writes to, of which there is one: it is the process that ends.
static LOG: OnceLock<LogWriter> = OnceLock::new();

/// See the stub.
#[pyfunction]
pub(crate) fn drain_log(py: Python<'_>, patience_s: f64) -> PyResult<bool> {
    let patience = duration(py, "patience_s", patience_s)?;
    detached(py, || Ok(LOG.get().is_none_or(|log| log.drain(patience))))
}
