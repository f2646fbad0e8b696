//! Crossing from Python: releases the interpreter, maps errors, honours Ctrl-C.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use pie_host::{Error, ErrorCode};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// How long a wait lasts before signals are checked.
const SIGNAL_SLICE: Duration = Duration::from_millis(100);

/// Runs `work` without the interpreter, so that other Python threads run on.
///
/// # Errors
/// What `work` answers, as `pie.errors.PieError`.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    py.detach(work).map_err(|error| raise(py, error))
}

/// Runs `wait` without the interpreter in slices of time until it answers or `timeout` is over; Ctrl-C ends it in
/// between.
///
/// # Errors
/// Those of `wait`, and what a signal handler raises.
pub(crate) fn waiting<T: Send>(
    py: Python<'_>,
    timeout: Option<Duration>,
    mut wait: impl FnMut(Duration) -> Result<Option<T>, Error> + Send,
) -> PyResult<Option<T>> {
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    loop {
        let left = deadline.map_or(SIGNAL_SLICE, |deadline| {
            deadline.saturating_duration_since(Instant::now())
        });
        if let Some(value) = detached(py, || wait(left.min(SIGNAL_SLICE)))? {
            return Ok(Some(value));
        }
        py.check_signals()?;
        if left <= SIGNAL_SLICE && deadline.is_some() {
            return Ok(None);
        }
    }
}

/// Runs `work`, which nothing can interrupt, on a thread of its own and waits for it; Ctrl-C ends the wait, and what
/// `work` answers then is dropped.
///
/// # Errors
/// Those of `work`, `internal` where no thread can be started, and what a signal handler raises.
pub(crate) fn beside<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    // A caller that was interrupted wants no answer.
    let thread = move || drop(sender.send(work()));
    thread::Builder::new()
        .name("pie-loading".to_owned())
        .spawn(thread)
        .map_err(|error| {
            raise(
                py,
                Error::internal(format!("no thread can be started: {error}")),
            )
        })?;
    let lost = || Error::internal("the thread that loads ended without an answer");
    let wait = move |slice| match receiver.recv_timeout(slice) {
        Ok(answer) => answer.map(Some),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Err(lost()),
    };
    waiting(py, None, wait)?.ok_or_else(|| raise(py, lost()))
}

/// A time in seconds from Python.
///
/// # Errors
/// `invalid-argument` for one that is negative or not finite.
pub(crate) fn duration(py: Python<'_>, name: &str, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        let message = format!(
            "{name} = {seconds} is not a time; give a finite number of seconds that is not negative"
        );
        raise(py, Error::new(ErrorCode::InvalidArgument, message))
    })
}

/// The error as `pie.errors.PieError`, with `code`, `message` and `details`.
pub(crate) fn raise(py: Python<'_>, error: Error) -> PyErr {
    made(py, &error).unwrap_or_else(|failed| failed)
}

fn made(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.import(py, "pie.errors", "PieError")?;
    let value = class.call1((error.code.as_str(), &error.message))?;
    let details = py
        .import("json")?
        .call_method1("loads", (&error.details,))?;
    value.setattr("details", details)?;
    Ok(PyErr::from_value(value))
}
