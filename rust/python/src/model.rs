//! A model, and the calls of its driver.

#![expect(
    unsafe_code,
    reason = "logits are read where they lie; the buffer protocol keeps them there during the call"
)]

use std::sync::Arc;
use std::time::Duration;

use pie_core::{AdapterName, Command};
use pie_host::{
    CommandFailure, DriverAnswer, Error, ErrorCode, Figure, Host, Model, ModelState, Work,
};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::batch::{PyBatch, PyCommand, PyWork};
use crate::boundary::{beside, detached, duration, raise, waiting};

/// A loaded model; see the stub.
#[pyclass(name = "Model", module = "pie._engine", frozen)]
pub(crate) struct PyModel {
    pub(crate) host: Arc<Host>,
    pub(crate) model: Arc<Model>,
}

#[pymethods]
impl PyModel {
    #[getter]
    fn name(&self) -> &str {
        self.model.name()
    }

    #[getter]
    fn vocab_size(&self) -> u32 {
        self.model.vocab_size()
    }

    #[getter]
    fn page_size(&self) -> u32 {
        self.model.page_size()
    }

    #[getter]
    fn stopped(&self) -> bool {
        self.model.is_stopped()
    }

    fn next_work(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<PyWork>> {
        let timeout = duration(py, "timeout_s", timeout_s)?;
        let wait = |slice: Duration| Ok(self.model.next_work(slice));
        // A model that was stopped has no batches: its driver is told at once.
        let timeout = if self.model.is_stopped() {
            Duration::ZERO
        } else {
            timeout
        };
        let work = waiting(py, Some(timeout), wait)?;
        Ok(work.map(|work| match work {
            Work::Batch(batch) => PyWork::Batch(PyBatch(batch)),
            Work::Command(command) => PyWork::Command(PyCommand(command)),
        }))
    }

    #[pyo3(signature = (batch, logits, failures = Vec::new()))]
    fn complete(
        &self,
        py: Python<'_>,
        batch: &Bound<'_, PyBatch>,
        logits: &Bound<'_, PyAny>,
        failures: Vec<(u32, String)>,
    ) -> PyResult<()> {
        let logits = self.rows(py, logits)?;
        let answer = DriverAnswer::Logits(items(&logits));
        let batch = &batch.get().0;
        detached(py, || self.model.complete(batch, answer, &failures))
    }

    #[pyo3(signature = (batch, tokens, logits, failures = Vec::new()))]
    fn complete_drawn(
        &self,
        py: Python<'_>,
        batch: &Bound<'_, PyBatch>,
        tokens: &Bound<'_, PyAny>,
        logits: &Bound<'_, PyAny>,
        failures: Vec<(u32, String)>,
    ) -> PyResult<()> {
        let tokens = PyBuffer::<u32>::get(tokens)?;
        if !tokens.is_c_contiguous() {
            let message = "the tokens are not contiguous; pass numpy.ascontiguousarray of them";
            return Err(raise(py, Error::new(ErrorCode::InvalidArgument, message)));
        }
        let logits = self.rows(py, logits)?;
        let answer = DriverAnswer::Drawn {
            tokens: items(&tokens),
            logits: items(&logits),
        };
        let batch = &batch.get().0;
        detached(py, || self.model.complete(batch, answer, &failures))
    }

    fn complete_command(&self, py: Python<'_>, command: &Bound<'_, PyCommand>) -> PyResult<()> {
        let command = &command.get().0;
        detached(py, || self.model.complete_command(command, Ok(())))
    }

    #[pyo3(signature = (command, message, *, code = "driver-failed"))]
    fn fail_command(
        &self,
        py: Python<'_>,
        command: &Bound<'_, PyCommand>,
        message: String,
        code: &str,
    ) -> PyResult<()> {
        let failure = match ErrorCode::from_name(code) {
            Some(ErrorCode::DriverFailed) => CommandFailure::Failed(message),
            Some(ErrorCode::Unsupported) => CommandFailure::NotServed(message),
            Some(code @ (ErrorCode::InvalidAdapter | ErrorCode::LimitAdapters)) => {
                CommandFailure::Refused(code, message)
            }
            _ => {
                let message = format!(
                    "a command fails with driver-failed, unsupported, invalid-adapter or limit-adapters, not with {code:?}"
                );
                return Err(raise(py, Error::new(ErrorCode::InvalidArgument, message)));
            }
        };
        let command = &command.get().0;
        detached(py, || self.model.complete_command(command, Err(failure)))
    }

    fn load_adapter(&self, py: Python<'_>, adapter: (u64, u32), path: String) -> PyResult<()> {
        let adapter = adapter_name(adapter);
        self.carry_out(py, Command::LoadAdapter { adapter, path })
    }

    fn copy_adapter(&self, py: Python<'_>, source: (u64, u32), copy: (u64, u32)) -> PyResult<()> {
        let (from, to) = (adapter_name(source), adapter_name(copy));
        self.carry_out(py, Command::CopyAdapter { from, to })
    }

    fn drop_adapter(&self, py: Python<'_>, adapter: (u64, u32)) -> PyResult<()> {
        let adapter = adapter_name(adapter);
        self.carry_out(py, Command::DropAdapter { adapter })
    }

    fn fail(&self, py: Python<'_>, batch: &Bound<'_, PyBatch>, message: &str) -> PyResult<()> {
        let batch = &batch.get().0;
        detached(py, || self.model.fail(batch, message))
    }

    fn lose_device(&self, py: Python<'_>, message: &str) {
        py.detach(|| self.model.lose_device(message));
    }

    #[getter]
    fn state(&self) -> (&'static str, String) {
        let state = self.model.state();
        (state.name(), state.reason().to_owned())
    }

    #[pyo3(signature = (name, reason, detail = ""))]
    fn set_state(&self, py: Python<'_>, name: &str, reason: String, detail: &str) -> PyResult<()> {
        let state = match name {
            "serving" => ModelState::Serving,
            "restarting" => ModelState::Restarting(reason),
            "failed" => ModelState::Failed(reason),
            _ => {
                let message =
                    format!("{name:?} is not a state; give serving, restarting or failed");
                return Err(raise(py, Error::new(ErrorCode::InvalidArgument, message)));
            }
        };
        py.detach(|| self.model.set_state(state, detail));
        Ok(())
    }

    #[pyo3(signature = (script = Vec::new()))]
    fn run_dummy(&self, py: Python<'_>, script: Vec<(String, String)>) -> PyResult<()> {
        detached(py, || self.host.run_dummy(&self.model, script))
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = py.detach(|| self.model.stats());
        let result = PyDict::new(py);
        for (name, figure) in stats.figures() {
            match figure {
                Figure::Number(number) => result.set_item(name, number)?,
                Figure::Histogram(histogram) => {
                    let parts = PyDict::new(py);
                    parts.set_item("counts", histogram.counts())?;
                    parts.set_item("sum", histogram.sum())?;
                    parts.set_item("max", histogram.max())?;
                    result.set_item(name, parts)?;
                }
            }
        }
        Ok(result)
    }

    fn check(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.model.check())
    }
}

impl PyModel {
    /// Rows of logits of the width of the model.
    fn rows(&self, py: Python<'_>, logits: &Bound<'_, PyAny>) -> PyResult<PyBuffer<f32>> {
        let logits = PyBuffer::<f32>::get(logits)?;
        if !logits.is_c_contiguous() {
            let message = "the logits are not C-contiguous; pass numpy.ascontiguousarray of them";
            return Err(raise(py, Error::new(ErrorCode::InvalidArgument, message)));
        }
        let width = self.model.vocab_size() as usize;
        if logits.item_count() > 0 && !matches!(logits.shape(), [_, columns] if *columns == width) {
            // Read as rows of the right width, they would give tokens that nobody computed.
            let message = format!(
                "the logits have the shape {:?}; answer [rows, {width}]",
                logits.shape()
            );
            return Err(raise(py, Error::new(ErrorCode::InvalidArgument, message)));
        }
        Ok(logits)
    }

    fn carry_out(&self, py: Python<'_>, command: Command) -> PyResult<()> {
        let model = self.model.clone();
        beside(py, move || model.carry_out(command))
    }
}

const fn adapter_name((id, version): (u64, u32)) -> AdapterName {
    AdapterName { id, version }
}

/// The items of a C-contiguous buffer, which stays in place as long as it is borrowed. The stub asks the caller to
/// leave it unchanged meanwhile.
fn items<T: Element>(buffer: &PyBuffer<T>) -> &[T] {
    if buffer.item_count() == 0 {
        return &[];
    }
    // SAFETY: a C-contiguous buffer of that many items, aligned for their type as PyBuffer checked.
    unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast(), buffer.item_count()) }
}
