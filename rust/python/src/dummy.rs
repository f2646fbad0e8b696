//! The dummy driver, one batch at a time.

use std::sync::{Mutex, PoisonError};

use pie_core::dummy;
use pie_host::{Error, ErrorCode};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::boundary::{detached, raise};

/// The dummy driver; see the stub.
#[pyclass(name = "DummyDriver", module = "pie._engine", frozen)]
pub(crate) struct PyDummyDriver(Mutex<dummy::Driver>);

/// The logits, float32 `[R, V]`, and the sequences that failed with their reasons.
type Computed<'py> = (Bound<'py, PyBytes>, Vec<(u32, String)>);

#[pymethods]
impl PyDummyDriver {
    #[new]
    #[pyo3(signature = (model, *, vocab_size, n_pages, page_size, host_pages = 0, follows = false))]
    fn new(
        py: Python<'_>,
        model: &str,
        vocab_size: u32,
        n_pages: u32,
        page_size: u32,
        host_pages: u32,
        follows: bool,
    ) -> PyResult<Self> {
        for (name, value) in [("n_pages", n_pages), ("page_size", page_size)] {
            if value == 0 {
                let message = format!("{name} is 0; it must be at least 1");
                return Err(raise(py, Error::new(ErrorCode::InvalidArgument, message)));
            }
        }
        let driver = dummy::Driver::new(model, vocab_size, n_pages, page_size);
        let driver = driver.with_host_slots(host_pages).following(follows);
        Ok(Self(Mutex::new(driver)))
    }

    fn capabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let declared = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .capabilities();
        let result = PyDict::new(py);
        for (name, value) in [
            ("vocab_size", declared.vocab_size),
            ("max_positions", declared.max_positions),
            ("page_size", declared.page_size),
            ("n_pages", declared.n_pages),
            ("host_pages", declared.host_pages),
        ] {
            result.set_item(name, value)?;
        }
        result.set_item("copy_page_ns", declared.copy_page_ns)?;
        for (name, value) in [
            ("masks", declared.masks),
            ("positions", declared.positions),
            ("adapters", declared.adapters),
            ("media", declared.media),
            ("follows", declared.follows),
        ] {
            result.set_item(name, value)?;
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
