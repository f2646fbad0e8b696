//! A launched program and its events.

use std::time::Duration;

use pie_host::{Event, Process};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::boundary::{detached, duration, waiting};

/// One event of a process; see the stub.
#[pyclass(name = "Event", module = "pie._engine", frozen, get_all)]
pub(crate) struct PyEvent {
    kind: &'static str,
    text: String,
    data: Option<Py<PyBytes>>,
    code: Option<String>,
    error_kind: Option<String>,
    traceback: String,
}

#[pymethods]
impl PyEvent {
    fn __repr__(&self) -> String {
        format!(
            "Event(kind={:?}, text={:?}, code={:?})",
            self.kind, self.text, self.code
        )
    }
}

impl PyEvent {
    fn new(py: Python<'_>, event: Event) -> Self {
        let plain = |kind, text| Self {
            kind,
            text,
            data: None,
            code: None,
            error_kind: None,
            traceback: String::new(),
        };
        match event {
            Event::Stdout(text) => plain("stdout", text),
            Event::Stderr(text) => plain("stderr", text),
            Event::File(data) => Self {
                data: Some(PyBytes::new(py, &data).unbind()),
                ..plain("file", String::new())
            },
            Event::Message(text) => plain("message", text),
            Event::Return(value) => plain("return", value),
            Event::Error(failure) => Self {
                kind: "error",
                text: failure.message,
                data: None,
                code: failure.code,
                error_kind: Some(failure.kind),
                traceback: failure.traceback,
            },
        }
    }
}

/// A launched program; see the stub.
#[pyclass(name = "Process", module = "pie._engine", frozen)]
pub(crate) struct PyProcess(pub(crate) Process);

#[pymethods]
impl PyProcess {
    #[getter]
    fn pid(&self) -> u64 {
        self.0.pid()
    }

    #[getter]
    fn launch_seed(&self) -> u64 {
        self.0.launch_seed()
    }

    #[getter]
    fn ended(&self) -> bool {
        self.0.is_drained()
    }

    #[getter]
    fn n_calls(&self) -> u64 {
        self.0.n_calls()
    }

    #[getter]
    fn cpu_s(&self) -> f64 {
        self.0.cpu().as_secs_f64()
    }

    #[getter]
    fn launch_s(&self) -> Option<f64> {
        self.0.launch_time().map(|time| time.as_secs_f64())
    }

    #[pyo3(signature = (timeout_s = None))]
    fn next_event(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<Option<PyEvent>> {
        let timeout = timeout_s
            .map(|seconds| duration(py, "timeout_s", seconds))
            .transpose()?;
        // Outer: whether the wait is over; inner: the event, or none when there are no more.
        let wait = |slice: Duration| {
            let event = self.0.next_event(Some(slice));
            Ok((event.is_some() || self.0.is_drained()).then_some(event))
        };
        let event = waiting(py, timeout, wait)?.flatten();
        Ok(event.map(|event| PyEvent::new(py, event)))
    }

    #[pyo3(signature = (text, timeout_s = None))]
    fn send(&self, py: Python<'_>, text: String, timeout_s: Option<f64>) -> PyResult<()> {
        let timeout = timeout_s
            .map(|seconds| duration(py, "timeout_s", seconds))
            .transpose()?;
        if timeout != Some(Duration::ZERO) {
            waiting(py, timeout, |slice| {
                Ok(self.0.wait_for_room(slice).then_some(()))
            })?;
        }
        detached(py, || self.0.send(text))
    }

    #[pyo3(signature = (data, timeout_s = None))]
    fn send_file(
        &self,
        py: Python<'_>,
        data: PyBackedBytes,
        timeout_s: Option<f64>,
    ) -> PyResult<()> {
        let timeout = timeout_s
            .map(|seconds| duration(py, "timeout_s", seconds))
            .transpose()?;
        if timeout != Some(Duration::ZERO) {
            waiting(py, timeout, |slice| {
                Ok(self.0.wait_for_file_room(slice).then_some(()))
            })?;
        }
        detached(py, || self.0.send_file(data.to_vec()))
    }

    fn close_input(&self) {
        self.0.close_input();
    }

    fn cancel(&self) {
        self.0.cancel();
    }
}
