//! The processes of a server. They are known to what speaks to the server and to what waits for its end, and whichever
//! is dropped first kills them: an engine that stops does not leave that to its threads, which may end before.

use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::sync::lock;

/// A group of processes, which are killed once, when any value of it is dropped.
#[derive(Debug)]
pub(crate) struct Group(Arc<Mutex<Option<Pid>>>);

impl Group {
    /// The group of a process that leads one, by its number. The process must not be waited for before the group was
    /// killed: its number may be of another one then.
    pub(crate) fn new(leader: Option<u32>) -> Self {
        let leader = leader.and_then(|id| Pid::from_raw(id.cast_signed()));
        Self(Arc::new(Mutex::new(leader)))
    }

    /// The same group, for somebody else.
    pub(crate) fn shared(&self) -> Self {
        Self(self.0.clone())
    }

    /// Kills the processes. Again it does nothing.
    pub(crate) fn kill(&self) {
        let leader = lock(&self.0).take();
        if let Some(leader) = leader {
            // Those that have ended cannot be killed.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::Command;

    use super::*;

    #[test]
    fn whoever_is_dropped_first_kills_and_nobody_after_that() {
        let mut leader = Command::new("sleep")
            .arg("1000")
            .process_group(0)
            .spawn()
            .unwrap();
        let group = Group::new(Some(leader.id()));
        let other = group.shared();
        drop(group);
        assert_eq!(leader.wait().unwrap().signal(), Some(9));
        assert!(lock(&other.0).is_none());
    }
}
