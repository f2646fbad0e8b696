//! The server: the engine's models and programs for clients of the network.

use std::path::PathBuf;
use std::sync::Arc;

use pie_host::{Error, ErrorCode, Host};
use pie_server::{MountedProgram, Server, ServerConfig};
use pyo3::prelude::*;

use crate::boundary::{detached, raise};
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

/// Writes what the engine logs to stderr, from a level on; the first call decides.
#[pyfunction]
pub(crate) fn init_logging(py: Python<'_>, level: &str) -> PyResult<()> {
    let level: tracing_subscriber::filter::LevelFilter = level.parse().map_err(|_| {
        let message =
            format!("{level:?} is not a level; use off, error, warn, info, debug or trace");
        raise(py, Error::new(ErrorCode::InvalidConfig, message))
    })?;
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(false);
    // Where a subscriber is installed already, it stays.
    drop(subscriber.try_init());
    Ok(())
}
