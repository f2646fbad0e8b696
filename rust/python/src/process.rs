//! A launched program and its events.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pie_host::{Event, Process};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyTuple, PyType};

use crate::boundary::{detached, duration, waiting};

/// A launched program; see the stub.
#[pyclass(name = "Process", module = "pie._engine", frozen)]
pub(crate) struct PyProcess {
    process: Process,
    /// Events that were read.
    n_read: AtomicU64,
    /// Those of which Python made nothing, as when an interrupt came in between: they are read again.
    unmade: Mutex<VecDeque<(u64, Event)>>,
}

impl PyProcess {
    pub(crate) fn new(process: Process) -> Self {
        Self {
            process,
            n_read: AtomicU64::new(0),
            unmade: Mutex::default(),
        }
    }

    fn unmade(&self) -> MutexGuard<'_, VecDeque<(u64, Event)>> {
        // It is held for a moment, in which nothing can panic.
        self.unmade.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What Python sees of an event, which is kept where that cannot be made.
    fn made<'py>(&self, py: Python<'py>, seq: u64, read: Event) -> PyResult<Bound<'py, PyAny>> {
        event(py, &read, seq).inspect_err(|_| self.unmade().push_back((seq, read)))
    }
}

/// An event as a `pie.events.Event`, with its number.
fn event<'py>(py: Python<'py>, event: &Event, seq: u64) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.import(py, "pie.events", "Event")?;
    let named = PyDict::new(py);
    named.set_item("seq", seq)?;
    let made =
        |kind: &str, said: Bound<'py, PyTuple>| class.getattr(kind)?.call(said, Some(&named));
    match event {
        Event::Stdout(text) => made("Stdout", (text,).into_pyobject(py)?),
        Event::Stderr(text) => made("Stderr", (text,).into_pyobject(py)?),
        Event::Sent(text, form) => made("Stdout", (text, form.as_str()).into_pyobject(py)?),
        Event::Notice(text) => made("Notice", (text,).into_pyobject(py)?),
        Event::Message(text) => made("Message", (text,).into_pyobject(py)?),
        Event::File(data) => made("File", (PyBytes::new(py, data),).into_pyobject(py)?),
        Event::Return(value) => made("Return", (value,).into_pyobject(py)?),
        Event::Error(failure) => {
            let code = failure.code.as_deref().unwrap_or("program-error");
            let said = (code, &failure.message, &failure.kind, &failure.traceback);
            made("Error", said.into_pyobject(py)?)
        }
    }
}

#[pymethods]
impl PyProcess {
    #[getter]
    fn pid(&self) -> u64 {
        self.process.pid()
    }

    #[getter]
    fn launch_seed(&self) -> u64 {
        self.process.launch_seed()
    }

    #[getter]
    fn ended(&self) -> bool {
        self.process.is_drained() && self.unmade().is_empty()
    }

    #[getter]
    fn n_calls(&self) -> u64 {
        self.process.n_calls()
    }

    #[getter]
    fn cpu_s(&self) -> f64 {
        self.process.cpu().as_secs_f64()
    }

    #[getter]
    fn launch_s(&self) -> Option<f64> {
        self.process.launch_time().map(|time| time.as_secs_f64())
    }

    #[pyo3(signature = (timeout_s = None))]
    fn next_event<'py>(
        &self,
        py: Python<'py>,
        timeout_s: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let timeout = timeout_s
            .map(|seconds| duration(py, "timeout_s", seconds))
            .transpose()?;
        let unmade = self.unmade().pop_front();
        if let Some((seq, read)) = unmade {
            return self.made(py, seq, read).map(Some);
        }
        // Outer: whether the wait is over; inner: the event, or none when there are no more.
        let wait = |slice: Duration| {
            let event = self.process.next_event(Some(slice));
            Ok((event.is_some() || self.process.is_drained()).then_some(event))
        };
        let read = waiting(py, timeout, wait)?.flatten();
        let Some(read) = read else {
            return Ok(None);
        };
        let seq = self.n_read.fetch_add(1, Ordering::Relaxed) + 1;
        self.made(py, seq, read).map(Some)
    }

    #[pyo3(signature = (text, timeout_s = None))]
    fn send(&self, py: Python<'_>, text: String, timeout_s: Option<f64>) -> PyResult<()> {
        let timeout = timeout_s
            .map(|seconds| duration(py, "timeout_s", seconds))
            .transpose()?;
        if timeout != Some(Duration::ZERO) {
            waiting(py, timeout, |slice| {
                Ok(self.process.wait_for_room(slice).then_some(()))
            })?;
        }
        detached(py, || self.process.send(text))
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
                Ok(self.process.wait_for_file_room(slice).then_some(()))
            })?;
        }
        detached(py, || self.process.send_file(data.to_vec()))
    }

    fn close_input(&self) {
        self.process.close_input();
    }

    fn cancel(&self) {
        self.process.cancel();
    }
}
