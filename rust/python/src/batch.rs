//! A batch for a driver, read through the buffer protocol, and a command.

#![expect(
    unsafe_code,
    reason = "the buffer protocol is a C structure that is filled in; the arena outlives every view of it"
)]

use std::ffi::c_int;

use pie_core::AdapterName;
use pie_host::{Batch, Command};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

/// A batch to run; see the stub.
#[pyclass(name = "Batch", module = "pie._engine", frozen)]
pub(crate) struct PyBatch(pub(crate) Batch);

/// A command to carry out; see the stub.
#[pyclass(name = "Command", module = "pie._engine", frozen)]
pub(crate) struct PyCommand(pub(crate) Command);

/// What a driver should do next.
#[derive(IntoPyObject)]
pub(crate) enum PyWork {
    Batch(PyBatch),
    Command(PyCommand),
}

#[pymethods]
impl PyCommand {
    #[getter]
    fn id(&self) -> u64 {
        self.0.id()
    }

    /// What to do: its kind, the adapters that it names, and a path where it has one.
    #[getter]
    fn what(&self) -> (&'static str, Vec<(u64, u32)>, &str) {
        let name = |adapter: &AdapterName| (adapter.id, adapter.version);
        match self.0.command() {
            pie_core::Command::LoadAdapter { adapter, path } => {
                ("load-adapter", vec![name(adapter)], path)
            }
            pie_core::Command::CreateAdapter { adapter, path, .. } => {
                ("create-adapter", vec![name(adapter)], path)
            }
            pie_core::Command::ChangeAdapter { from, to, path, .. } => {
                ("change-adapter", vec![name(from), name(to)], path)
            }
            pie_core::Command::CopyAdapter { from, to } => {
                ("copy-adapter", vec![name(from), name(to)], "")
            }
            pie_core::Command::DropAdapter { adapter } => ("drop-adapter", vec![name(adapter)], ""),
            pie_core::Command::ExportPages { path, .. } => ("export-pages", Vec::new(), path),
            pie_core::Command::ImportPages { path, .. } => ("import-pages", Vec::new(), path),
        }
    }

    /// The pages that it moves: the place of each in the file, and its index in the pool.
    #[getter]
    fn pages(&self) -> Vec<(u32, u32)> {
        match self.0.command() {
            pie_core::Command::ExportPages { pages, .. }
            | pie_core::Command::ImportPages { pages, .. } => {
                pages.iter().map(|(place, page)| (*place, page.0)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// How an adapter is made: rank, alpha, sigma, and the seeds of noise with their factors.
    #[getter]
    fn recipe(&self) -> (u32, f32, Option<f32>, Vec<(u64, f32)>) {
        match self.0.command() {
            pie_core::Command::CreateAdapter {
                rank, alpha, sigma, ..
            } => (*rank, *alpha, Some(*sigma), Vec::new()),
            pie_core::Command::ChangeAdapter { sigma, changes, .. } => {
                (0, 0.0, *sigma, changes.to_vec())
            }
            _ => (0, 0.0, None, Vec::new()),
        }
    }
}

#[pymethods]
impl PyBatch {
    #[getter]
    fn id(&self) -> u64 {
        self.0.id()
    }

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
        let arena = slf.get().0.arena();
        let n_bytes = ffi::Py_ssize_t::try_from(size_of_val(arena))?;
        // SAFETY: the arena is neither moved nor changed while the batch lives, and the view that is filled in holds a
        // reference to the batch. It is read-only, so that nothing is written through the pointer.
        let failed = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                arena.as_ptr().cast_mut().cast(),
                n_bytes,
                1,
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
