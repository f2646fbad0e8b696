//! The Python module `pie._engine`: converts and forwards, nothing else.
//!
//! Whatever waits or computes releases the interpreter through [`boundary`]; bulk data crosses as buffers. The stub
//! `python/pie/_engine.pyi` is the document of what this module offers.

mod batch;
mod boundary;
#[cfg(target_os = "linux")]
mod channel;
mod config;
mod dummy;
mod engine;
mod keys;
mod model;
mod process;
mod program;
mod sampling;
mod server;

// The symbols of the CPU kernels are exported from this library; `pie` opens it through cffi.
use pie_kernels as _;
use pyo3::prelude::*;

/// The native half of the package `pie`.
#[pymodule]
mod _engine {
    use super::*;

    #[pymodule_export]
    use super::batch::{PyBatch, PyCommand};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::channel::{PyArea, PyDriverEnd, PyHostEnd, die_with_parent, take_short_turns};
    #[pymodule_export]
    use super::config::{PySetting, settings};
    #[pymodule_export]
    use super::dummy::PyDummyDriver;
    #[pymodule_export]
    use super::engine::{PyEngine, compile_worker, keep_little_free, keep_small_pages};
    #[pymodule_export]
    use super::keys::{add_key, list_keys, revoke_key};
    #[pymodule_export]
    use super::model::PyModel;
    #[pymodule_export]
    use super::process::PyProcess;
    #[pymodule_export]
    use super::program::{pack_program, read_manifest, read_packed};
    #[pymodule_export]
    use super::sampling::draw;

    #[pymodule_export]
    use super::server::{PyServer, check_access, check_address, drain_log, init_logging};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("MAX_TEXT_BYTES", pie_channel::MAX_TEXT_BYTES)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
