//! The dummy driver, one batch at a time.

use std::sync::{Arc, Mutex, PoisonError};

use pie_core::{AdapterName, Capabilities, Command, CommandFailure, DriverFailure, PageId, dummy};
use pie_host::{Error, ErrorCode};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::boundary::{detached, raise};
use crate::config::{self, SettingValues};

/// The dummy driver; see the stub.
#[pyclass(name = "DummyDriver", module = "pie._engine", frozen)]
pub(crate) struct PyDummyDriver(Mutex<dummy::Driver>);

/// The logits, float32 `[R, V]`; or where the driver draws, those that are wanted, float32 `[K, V]`, and the tokens,
/// uint32 `[D]`; and the sequences that failed with their reasons.
type Computed<'py> = (
    Bound<'py, PyBytes>,
    Option<Bound<'py, PyBytes>>,
    Vec<(u32, String)>,
);

#[pymethods]
impl PyDummyDriver {
    #[new]
    fn new(py: Python<'_>, model: &str, capabilities: SettingValues<'_>) -> PyResult<Self> {
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

    fn create_adapter(
        &self,
        py: Python<'_>,
        adapter: (u64, u32),
        path: String,
        recipe: (u32, f32, f32),
    ) -> PyResult<()> {
        let (adapter, (rank, alpha, sigma)) = (name(adapter), recipe);
        let command = Command::CreateAdapter {
            adapter,
            path,
            rank,
            alpha,
            sigma,
        };
        self.carry_out(py, &command)
    }

    fn change_adapter(
        &self,
        py: Python<'_>,
        source: (u64, u32),
        changed: (u64, u32),
        path: String,
    ) -> PyResult<()> {
        let command = Command::ChangeAdapter {
            from: name(source),
            to: name(changed),
            path,
            sigma: None,
            changes: Arc::default(),
        };
        self.carry_out(py, &command)
    }

    fn copy_adapter(&self, py: Python<'_>, source: (u64, u32), copy: (u64, u32)) -> PyResult<()> {
        let (from, to) = (name(source), name(copy));
        self.carry_out(py, &Command::CopyAdapter { from, to })
    }

    fn drop_adapter(&self, py: Python<'_>, adapter: (u64, u32)) -> PyResult<()> {
        let adapter = name(adapter);
        self.carry_out(py, &Command::DropAdapter { adapter })
    }

    fn export_page<'py>(&self, py: Python<'py>, page: u32) -> PyResult<Bound<'py, PyBytes>> {
        let driver = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let exported = driver.export_page(PageId(page));
        exported
            .map(|bytes| PyBytes::new(py, &bytes))
            .map_err(|failure| failed(py, failure))
    }

    fn import_page(&self, py: Python<'_>, page: u32, content: &[u8]) -> PyResult<()> {
        let mut driver = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let imported = driver.import_page(PageId(page), content);
        imported.map_err(|failure| failed(py, failure))
    }
}

impl PyDummyDriver {
    fn carry_out(&self, py: Python<'_>, command: &Command) -> PyResult<()> {
        let mut driver = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        driver
            .command(command)
            .map_err(|failure| failed(py, failure))
    }
}

fn failed(py: Python<'_>, failure: CommandFailure) -> PyErr {
    let (CommandFailure::NotServed(message)
    | CommandFailure::Failed(message)
    | CommandFailure::Refused(_, message)) = failure;
    raise(py, Error::new(ErrorCode::DriverFailed, message))
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
