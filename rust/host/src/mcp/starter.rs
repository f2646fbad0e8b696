//! Where the processes of servers are started: a thread that lives as long as somebody may start one.
//!
//! Linux kills a process with the thread that has started it, where the process asks for that. A thread of the runtime
//! may end before its engine does; this one ends with it, and where the engine is killed. So a server that does not
//! look at the end of its input does not outlive its engine. That holds for the process of the command, and not for
//! what it starts itself: those processes see the end of their input, and are killed with the group
//! ([`super::group`]) where the engine ends in order.

#![expect(
    unsafe_code,
    reason = "has a process ask for its end between fork and exec, where the standard library lets run what is given"
)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Mutex, mpsc};
use std::thread;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
use tokio::process::Child;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::group::Group;
use crate::sync::lock;

/// A process, and the group that it leads. Whoever drops them kills the group first.
pub(crate) type Started = (Group, Child);

/// A process that shall be started, and whoever waits for it.
type Order = (Command, oneshot::Sender<io::Result<Started>>);

/// Starts the processes of servers.
#[derive(Debug)]
pub(crate) struct Starter {
    /// Where processes are waited for.
    runtime: Handle,
    /// Variables of the engine that they do not get.
    withheld: Vec<String>,
    /// The way to the thread; none before the first process. A server is started by one order at a time.
    orders: Mutex<Option<mpsc::Sender<Order>>>,
}

impl Starter {
    /// One whose processes are waited for in `runtime`, and get no variables of those that are `withheld`.
    pub(crate) fn new(runtime: Handle, withheld: &[String]) -> Self {
        Self {
            runtime,
            withheld: withheld.to_vec(),
            orders: Mutex::default(),
        }
    }

    /// A command, with what its process has of the variables of the engine.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for variable in &self.withheld {
            command.env_remove(variable);
        }
        command
    }

    /// Starts a process in a group of its own.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) async fn start(&self, command: Command) -> io::Result<Started> {
        let (answer, started) = oneshot::channel();
        let has_ended = || io::Error::other("the thread that starts processes has ended");
        self.way()?
            .send((command, answer))
            .map_err(|_| has_ended())?;
        started.await.unwrap_or_else(|_| Err(has_ended()))
    }

    /// The way to the thread, which begins with the first order.
    fn way(&self) -> io::Result<mpsc::Sender<Order>> {
        let mut orders = lock(&self.orders);
        if let Some(way) = &*orders {
            return Ok(way.clone());
        }
        let (way, received) = mpsc::channel();
        let runtime = self.runtime.clone();
        thread::Builder::new()
            .name("pie-mcp-starter".to_owned())
            .spawn(move || follow(&runtime, &received))?;
        Ok(orders.insert(way).clone())
    }
}

/// Starts what is ordered, until nobody can order any more.
fn follow(runtime: &Handle, orders: &mpsc::Receiver<Order>) {
    let _entered = runtime.enter();
    for (command, answer) in orders {
        // Nobody may want it any more: it is killed then.
        drop(answer.send(started(command)));
    }
}

fn started(mut command: Command) -> io::Result<Started> {
    // Ctrl-C is for the engine, which ends its servers; what they start ends with them.
    command.process_group(0);
    tie(&mut command, getpid());
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(true);
    let child = command.spawn()?;
    Ok((Group::new(child.id()), child))
}

/// Has the system kill the process with this thread.
fn tie(command: &mut Command, engine: Pid) {
    let tied = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // Where the engine has ended before, nothing tells the process any more.
        match getppid() == Some(engine) {
            true => Ok(()),
            false => Err(io::Error::from(Errno::SRCH)),
        }
    };
    // SAFETY: between fork and exec it makes two calls to the system, which take no lock and allocate nothing.
    unsafe { command.pre_exec(tied) };
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;

    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn a_process_ends_with_the_thread_that_has_started_it() {
        let starter = Starter::new(Handle::current(), &[]);
        let mut command = starter.command("sleep");
        command.arg("1000").stdout(Stdio::piped());
        let (group, mut child) = starter.start(command).await.unwrap();
        let mut stdout = child.stdout.take().unwrap();
        drop(starter);
        // Its output ends with it, before anybody kills the group.
        let mut said = Vec::new();
        stdout.read_to_end(&mut said).await.unwrap();
        drop(group);
        assert_eq!(child.wait().await.unwrap().signal(), Some(9));
    }

    #[tokio::test]
    async fn what_cannot_be_started_says_why_and_the_next_one_is() {
        let starter = Starter::new(Handle::current(), &[]);
        let error = starter.start(starter.command("/nowhere/at/all")).await;
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::NotFound);
        let (group, mut child) = starter.start(starter.command("true")).await.unwrap();
        drop(group);
        child.wait().await.unwrap();
    }
}
