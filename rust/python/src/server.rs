//! The server: the engine's models and programs for clients of the network.

use std::path::PathBuf;
use std::sync::Arc;

use pie_host::{Error, ErrorCode, Host};
use pie_server::{Server, ServerConfig};
use pyo3::prelude::*;
use pyo3::types::PyMapping;

use crate::boundary::{detached, raise};

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

/// Starts a server on an engine.
pub(crate) fn serve(
    py: Python<'_>,
    engine: Arc<Host>,
    host: String,
    port: u16,
    data_dir: PathBuf,
    options: Option<&Bound<'_, PyMapping>>,
) -> PyResult<PyServer> {
    let mut config = ServerConfig {
        host,
        port,
        ..ServerConfig::new(data_dir)
    };
    set(py, &mut config, options)?;
    detached(py, || Server::start(engine, config)).map(PyServer)
}

/// Sets what the options of a server say.
fn set(
    py: Python<'_>,
    config: &mut ServerConfig,
    options: Option<&Bound<'_, PyMapping>>,
) -> PyResult<()> {
    let Some(options) = options else {
        return Ok(());
    };
    for item in options.items()? {
        let (name, value): (String, Bound<'_, PyAny>) = item.extract()?;
        let set = if name == "allowed_origins" {
            config.allowed_origins = value.extract()?;
            Ok(())
        } else if name == "allow_anonymous" {
            config.auth.allow_anonymous = value.extract()?;
            Ok(())
        } else if let Ok(text) = value.extract::<String>() {
            config.auth.set_text(&name, &text).map(drop)
        } else if let Ok(texts) = value.extract::<Vec<String>>() {
            config.auth.set_list(&name, texts).map(drop)
        } else {
            config.set(&name, value.extract()?)
        };
        set.map_err(|error| raise(py, error))?;
    }
    Ok(())
}

/// See the stub.
#[pyfunction]
#[pyo3(signature = (host, port, *, data_dir, options=None))]
pub(crate) fn check_access(
    py: Python<'_>,
    host: &str,
    port: u16,
    data_dir: PathBuf,
    options: Option<&Bound<'_, PyMapping>>,
) -> PyResult<()> {
    let mut config = ServerConfig::new(data_dir);
    set(py, &mut config, options)?;
    detached(py, || {
        pie_server::check_access(host, port, &config.data_dir, &config.auth)
    })
}

/// Writes what the engine logs to stderr, from a level on; the first call decides.
#[pyfunction]
pub(crate) fn init_logging(py: Python<'_>, level: &str) -> PyResult<()> {
    let level: tracing_subscriber::filter::LevelFilter = level.parse().map_err(|_| {
        let message = format!("{level:?} is no level; use off, error, warn, info, debug or trace");
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
