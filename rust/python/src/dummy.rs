//! The dummy driver, one batch at a time.

use std::sync::{Mutex, PoisonError};

use pie_core::{Capabilities, dummy};
use pie_host::{Error, ErrorCode};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::boundary::detached;
use crate::config::{self, Given};

/// The dummy driver; see the stub.
#[pyclass(name = "DummyDriver", module = "pie._engine", frozen)]
pub(crate) struct PyDummyDriver(Mutex<dummy::Driver>);

/// The logits, float32 `[R, V]`, and the sequences that failed with their reasons.
type Computed<'py> = (Bound<'py, PyBytes>, Vec<(u32, String)>);

#[pymethods]
impl PyDummyDriver {
    #[new]
    fn new(py: Python<'_>, model: &str, capabilities: Given<'_>) -> PyResult<Self> {
        let mut served = Capabilities::default();
        config::apply(py, "driver", &capabilities, |name, value| {
            let set = served.set(name, value);
            set.map_err(|error| Error::new(ErrorCode::InvalidArgument, error.message))
        })?;
        let driver = dummy::Driver::new(model, served.vocab_size, served.n_pages, served.page_size)
            .with_host_pages(served.host_pages)
            .following(served.follows);
        Ok(Self(Mutex::new(driver)))
    }

    fn capabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let driver = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let served = driver.capabilities();
        let result = PyDict::new(py);
        for (setting, value) in Capabilities::settings().iter().zip(served.values()) {
            result.set_item(setting.name, config::written(py, value)?)?;
        }
        Ok(result)
    }

    fn run<'py>(&self, py: Python<'py>, arena: &Bound<'py, PyAny>) -> PyResult<Computed<'py>> {
        let words = PyBuffer::<u32>::get(arena)?.to_vec(py)?;
        let computed = detached(py, || {
            let mut driver = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            driver
                .run(&words)
                .map_err(|failure| Error::new(ErrorCode::DriverFailed, failure.message))
        })?;
        let n_bytes = size_of_val(&computed.logits[..]);
        let bytes = PyBytes::new_with(py, n_bytes, |room| {
            for (room, logit) in room.chunks_exact_mut(4).zip(&computed.logits) {
                room.copy_from_slice(&logit.to_ne_bytes());
            }
            Ok(())
        })?;
        Ok((bytes, computed.failures))
    }
}
