//! The place of a child among the processes of its user.

use std::sync::{Arc, Weak};

use super::Processes;

/// A child that lives. Dropping it ends that.
pub(crate) struct ChildPlace {
    /// The table holds processes, and they hold their places.
    processes: Weak<Processes>,
    user: String,
}

impl ChildPlace {
    pub(super) fn new(processes: &Arc<Processes>, user: &str) -> Self {
        Self {
            processes: Arc::downgrade(processes),
            user: user.to_owned(),
        }
    }
}

impl Drop for ChildPlace {
    fn drop(&mut self) {
        if let Some(processes) = self.processes.upgrade() {
            processes.release_child(&self.user);
        }
    }
}
