//! The dummy driver, one batch at a time.

use std::sync::{Mutex, PoisonError};

use pie_core::{AdapterName, Command, CommandFailure, DriverFailure, dummy};
use pie_host::{Error, ErrorCode};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::boundary::{detached, raise};

/// The dummy driver; see the stub.
#[pyclass(name = "DummyDriver", module = "pie._engine", frozen)]
pub(crate) struct PyDummyDriver(Mutex<dummy::Driver>);

/// The logits, float32 `[R, V]`; or where the driver draws, those that are wanted, float32 `[K, V]`, and the tokens, uint32 `[D]`; and the
/// sequences that failed with their reasons.
type Computed<'py> = (
    Bound<'py, PyBytes>,
    Option<Bound<'py, PyBytes>>,
    Vec<(u32, String)>,
);

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
        let failed = |failure: DriverFailure| Error::new(ErrorCode::DriverFailed, failure.message);
        let (computed, drawn) = detached(py, || {
            let mut driver = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let computed = driver.run(&words).map_err(failed)?;
            let draws = driver.capabilities().follows;
            let drawn = draws.then(|| driver.draw_all(&words, &computed));
            Ok((computed, drawn.transpose().map_err(failed)?))
        })?;
        let (logits, tokens) = match drawn {
            None => (
                bytes(py, &computed.logits, |logit| logit.to_ne_bytes())?,
                None,
            ),
            Some(drawn) => (
                bytes(py, &drawn.logits, |logit| logit.to_ne_bytes())?,
                Some(bytes(py, &drawn.tokens, |token| token.to_ne_bytes())?),
            ),
        };
        Ok((logits, tokens, computed.failures))
    }

    fn load_adapter(&self, py: Python<'_>, adapter: (u64, u32), path: String) -> PyResult<()> {
        let adapter = name(adapter);
        self.carry_out(py, &Command::LoadAdapter { adapter, path })
    }

    fn copy_adapter(&self, py: Python<'_>, source: (u64, u32), copy: (u64, u32)) -> PyResult<()> {
        let (from, to) = (name(source), name(copy));
        self.carry_out(py, &Command::CopyAdapter { from, to })
    }

    fn drop_adapter(&self, py: Python<'_>, adapter: (u64, u32)) -> PyResult<()> {
        let adapter = name(adapter);
        self.carry_out(py, &Command::DropAdapter { adapter })
    }
}

impl PyDummyDriver {
    fn carry_out(&self, py: Python<'_>, command: &Command) -> PyResult<()> {
        let mut driver = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        driver.command(command).map_err(|failure| {
            let (CommandFailure::NotServed(message) | CommandFailure::Failed(message)) = failure;
            raise(py, Error::new(ErrorCode::DriverFailed, message))
        })
    }
}

const fn name((id, version): (u64, u32)) -> AdapterName {
    AdapterName { id, version }
}

/// Words as the bytes that they are in memory.
fn bytes<'py, T: Copy>(
    py: Python<'py>,
    words: &[T],
    to_bytes: impl Fn(T) -> [u8; 4],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, 4 * words.len(), |room| {
        for (room, &word) in room.chunks_exact_mut(4).zip(words) {
            room.copy_from_slice(&to_bytes(word));
        }
        Ok(())
    })
}
