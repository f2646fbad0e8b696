//! Batches to a driver in a process of its own, and what that process does first.

#![expect(
    unsafe_code,
    reason = "the buffer protocol is a C structure that is filled in, descriptors come as numbers, and prctl is a call of the system"
)]

use std::ffi::c_int;
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pie_channel::{DriverEnd, HostEnd, Outcome, Received, View, Waited};
use pie_host::{Error, ErrorCode};
use pyo3::buffer::PyBuffer;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use crate::boundary::{detached, duration, raise, waiting};

/// The side of the host; see the stub.
#[pyclass(name = "HostEnd", module = "pie._engine", frozen)]
pub(crate) struct PyHostEnd {
    end: Mutex<HostEnd>,
    looking: Duration,
}

/// The side of the driver; see the stub.
#[pyclass(name = "DriverEnd", module = "pie._engine", frozen)]
pub(crate) struct PyDriverEnd {
    end: Mutex<DriverEnd>,
    looking: Duration,
}

/// Memory that both sides share; see the stub.
#[pyclass(name = "Area", module = "pie._engine", frozen)]
pub(crate) struct PyArea {
    view: View,
    is_writable: bool,
}

/// How a batch ended, the slot of its rows, how many they are and how many have room, how many tokens stand behind
/// them, and what there is to say.
type Answered = (&'static str, usize, usize, usize, usize, String);

/// The slot of a batch, its words, and the words and rows for which the slot has room.
type Arrival = (usize, usize, usize, usize);

#[pymethods]
impl PyHostEnd {
    #[new]
    fn new(py: Python<'_>, vocab_size: u32, looking_s: f64) -> PyResult<Self> {
        let looking = duration(py, "looking_s", looking_s)?;
        let end = Mutex::new(system(py, HostEnd::new(vocab_size))?);
        Ok(Self { end, looking })
    }

    fn descriptors(&self) -> Vec<RawFd> {
        locked(&self.end).descriptors().to_vec()
    }

    fn send(&self, py: Python<'_>, words: &Bound<'_, PyAny>, n_rows: usize) -> PyResult<()> {
        let words = PyBuffer::<u32>::get(words)?;
        if !words.is_c_contiguous() {
            let message = "the words of a batch are not contiguous";
            return Err(raise(py, Error::new(ErrorCode::InvalidArgument, message)));
        }
        // SAFETY: a contiguous buffer of as many words, aligned for its type as PyBuffer checked, and kept in place by
        // `words` during the call. A batch is never changed.
        let words =
            unsafe { std::slice::from_raw_parts(words.buf_ptr().cast(), words.item_count()) };
        system(py, locked(&self.end).send(words, n_rows))
    }

    fn wait(&self, py: Python<'_>, process: RawFd, timeout_s: f64) -> PyResult<Option<bool>> {
        let timeout = duration(py, "timeout_s", timeout_s)?;
        // SAFETY: the caller has it open during the call, as the stub asks.
        let process = unsafe { BorrowedFd::borrow_raw(process) };
        waiting(py, Some(timeout), |slice| {
            let waited = locked(&self.end).wait(process, self.looking, slice);
            Ok(match waited.map_err(failed)? {
                Waited::Answered => Some(true),
                Waited::Lost => Some(false),
                Waited::TimedOut => None,
            })
        })
    }

    fn take(&self) -> Option<Answered> {
        let answer = locked(&self.end).take()?;
        let outcome = match answer.outcome {
            Outcome::Rows => "rows",
            Outcome::Failures => "failures",
            Outcome::Failed => "failed",
            Outcome::Drawn => "drawn",
        };
        let (n_rows, n_most_rows) = (answer.n_rows, answer.n_most_rows);
        let (slot, n_tokens) = (answer.slot, answer.n_tokens);
        Some((outcome, slot, n_rows, n_most_rows, n_tokens, answer.text))
    }

    fn rows(&self, py: Python<'_>, slot: usize) -> PyResult<PyArea> {
        area(py, locked(&self.end).rows(slot), false)
    }
}

#[pymethods]
impl PyDriverEnd {
    #[new]
    fn new(
        py: Python<'_>,
        descriptors: [RawFd; 7],
        vocab_size: u32,
        looking_s: f64,
    ) -> PyResult<Self> {
        let looking = duration(py, "looking_s", looking_s)?;
        // SAFETY: the process inherited them for this, and hands them over, as the stub asks.
        let owned = descriptors.map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor) });
        let end = Mutex::new(system(py, DriverEnd::open(owned, vocab_size))?);
        Ok(Self { end, looking })
    }

    fn receive(&self, py: Python<'_>, host: RawFd) -> PyResult<Option<Arrival>> {
        // SAFETY: the caller has it open during the call, as the stub asks.
        let host = unsafe { BorrowedFd::borrow_raw(host) };
        let work = || {
            let received = locked(&self.end).receive(host, self.looking);
            received.map_err(failed)
        };
        match detached(py, work)? {
            Received::Batch(batch) => Ok(Some((
                batch.slot,
                batch.n_words,
                batch.n_most_words,
                batch.n_most_rows,
            ))),
            Received::Awaited => Ok(None),
            Received::Gone => Err(raise(
                py,
                Error::new(
                    ErrorCode::EngineStopped,
                    "the engine of this driver is gone",
                ),
            )),
        }
    }

    fn words(&self, py: Python<'_>, slot: usize) -> PyResult<PyArea> {
        area(py, locked(&self.end).words(slot), false)
    }

    fn rows(&self, py: Python<'_>, slot: usize) -> PyResult<PyArea> {
        area(py, locked(&self.end).rows(slot), true)
    }

    fn answer(&self, py: Python<'_>, n_rows: usize, failures: Option<&str>) -> PyResult<()> {
        let mut end = locked(&self.end);
        let answered = match failures {
            None => end.answer(Outcome::Rows, n_rows, ""),
            Some(failures) => end.answer(Outcome::Failures, n_rows, failures),
        };
        system(py, answered)
    }

    fn answer_drawn(
        &self,
        py: Python<'_>,
        n_rows: usize,
        n_tokens: usize,
        failures: Option<&str>,
    ) -> PyResult<()> {
        let text = failures.unwrap_or_default();
        system(py, locked(&self.end).answer_drawn(n_rows, n_tokens, text))
    }

    fn fail(&self, py: Python<'_>, message: &str) -> PyResult<()> {
        system(py, locked(&self.end).answer(Outcome::Failed, 0, message))
    }
}

#[pymethods]
impl PyArea {
    /// What `memoryview` gives: by this name interpreters before 3.12 lack it.
    fn __buffer__<'py>(
        slf: &Bound<'py, Self>,
        #[expect(unused_variables, reason = "the view is the same for all of them")] flags: c_int,
    ) -> PyResult<Bound<'py, PyMemoryView>> {
        PyMemoryView::from(slf)
    }

    /// # Safety
    /// Called by the interpreter with a structure to fill.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let area = slf.get();
        let n_bytes = ffi::Py_ssize_t::try_from(area.view.n_bytes())?;
        let is_read_only = c_int::from(!area.is_writable);
        // SAFETY: the memory stays mapped while the view lives, which holds a reference to the area.
        let failed = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                area.view.start().cast(),
                n_bytes,
                is_read_only,
                flags,
            )
        } != 0;
        if failed {
            Err(PyErr::fetch(slf.py()))
        } else {
            Ok(())
        }
    }
}

/// Has the system kill this process when the thread that started it ends. False: `parent` has ended already.
#[pyfunction]
pub(crate) fn die_with_parent(py: Python<'_>, parent: u32) -> PyResult<bool> {
    // SAFETY: the call takes numbers.
    let done = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    if done < 0 {
        return system(py, Err(io::Error::last_os_error()));
    }
    Ok(std::os::unix::process::parent_id() == parent)
}

/// Has this thread, and those that it starts, run in short turns; see the stub.
#[pyfunction]
pub(crate) fn take_short_turns() {
    pie_host::take_short_turns();
}

fn area(py: Python<'_>, view: Option<View>, is_writable: bool) -> PyResult<PyArea> {
    let made = view.map(|view| PyArea { view, is_writable });
    made.ok_or_else(|| raise(py, Error::internal("there is no such slot")))
}

fn locked<T>(end: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    end.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failed(error: io::Error) -> Error {
    Error::internal(format!("the channel to the driver failed: {error}"))
}

fn system<T>(py: Python<'_>, result: io::Result<T>) -> PyResult<T> {
    result.map_err(|error| raise(py, failed(error)))
}
