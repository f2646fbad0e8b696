//! A task that ends with whoever wants what it does.

use tokio::task::{AbortHandle, JoinHandle};

/// A task that is ended when this is dropped.
#[derive(Debug)]
pub(crate) struct Running(AbortHandle);

impl Running {
    /// Ends a task that somebody still waits for.
    pub(crate) fn of<T>(task: &JoinHandle<T>) -> Self {
        Self(task.abort_handle())
    }
}

impl<T> From<JoinHandle<T>> for Running {
    fn from(task: JoinHandle<T>) -> Self {
        Self(task.abort_handle())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}
