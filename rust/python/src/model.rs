//! A model, and the calls of its driver.

#![expect(
    unsafe_code,
    reason = "logits are read where they lie; the buffer protocol keeps them there during the call"
)]

use std::sync::Arc;
use std::time::Duration;

use pie_host::{Error, ErrorCode, Figure, Host, Model, ModelState};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::batch::PyBatch;
use crate::boundary::{detached, duration, raise, waiting};

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

    fn next_batch(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<PyBatch>> {
        let timeout = duration(py, "timeout_s", timeout_s)?;
        let wait = |slice: Duration| Ok(self.model.next_batch(slice));
        // A model that was stopped has no batches: its driver is told at once.
        let timeout = if self.model.is_stopped() {
            Duration::ZERO
        } else {
            timeout
        };
        Ok(waiting(py, Some(timeout), wait)?.map(PyBatch))
    }

    #[pyo3(signature = (batch, logits, failures = Vec::new()))]
    fn complete(
        &self,
        py: Python<'_>,
        batch: &Bound<'_, PyBatch>,
        logits: &Bound<'_, PyAny>,
        failures: Vec<(u32, String)>,
    ) -> PyResult<()> {
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
        let rows: &[f32] = if logits.item_count() == 0 {
            &[]
        } else {
            // SAFETY: a C-contiguous buffer of float32 of that many items, aligned for its type as PyBuffer checked,
            // and kept in place by `logits` until the end of the call. The stub asks the caller to leave it unchanged
            // meanwhile.
            unsafe { std::slice::from_raw_parts(logits.buf_ptr().cast(), logits.item_count()) }
        };
        let batch = &batch.get().0;
        detached(py, || self.model.complete(batch, rows, &failures))
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
