//! Launching: the one place in which processes begin, for whoever runs the engine, for a server, and for programs that start others.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::shared::Shared;
use super::task::{self, Ending};
use crate::Error;
use crate::limits::Limits;
use crate::process::record::{Granted, Record};
use crate::process::{Launch, Serving, pace};
use crate::program::Program;

/// A process that lives, and the task that runs it. A task that is dropped ends the process.
pub(super) struct Begun<T> {
    pub(super) record: Arc<Record>,
    pub(super) task: T,
}

impl Shared {
    /// Begins the process of a launch.
    ///
    /// # Errors
    /// As [`crate::Host::launch`].
    pub(super) fn begin(
        self: &Arc<Self>,
        mut launch: Launch,
        serving: Option<Serving>,
    ) -> Result<Begun<impl Future<Output = ()> + Send + use<>>, Error> {
        let launched = Instant::now();
        let limits = self.config.limits.lowered(&launch.limits)?;
        launch.complete(limits.message_bytes)?;
        let user = launch.username.as_deref().unwrap_or_default();
        let program = launch.program.clone().held(&self.budget, user)?;
        let granted = self.granted(launched, user, limits, serving);
        let pid = self.numbers.give();
        let (record, ending) = self.enter(pid, &mut launch, granted)?;
        let life = Box::pin(task::run(ending, program, launch.input));
        Ok(self.paced(record, life))
    }

    /// Begins a look at a program, which has a process of its own.
    ///
    /// # Errors
    /// As [`crate::Host::check`].
    pub(super) fn begin_look(
        self: &Arc<Self>,
        program: Program,
        username: &str,
    ) -> Result<Begun<impl Future<Output = ()> + Send + use<>>, Error> {
        let mut launch = Launch {
            seed: Some(0),
            username: Some(username.to_owned()),
            ..Launch::new(program, "")
        };
        let program = launch.program.clone().held(&self.budget, username)?;
        let limits = self.config.limits.clone();
        let granted = self.granted(Instant::now(), username, limits, None);
        let number = self.next_look.fetch_sub(1, Ordering::Relaxed);
        let (record, ending) = self.enter(number, &mut launch, granted)?;
        let life = Box::pin(task::check(ending, program));
        Ok(self.paced(record, life))
    }

    fn granted(
        &self,
        launched: Instant,
        username: &str,
        limits: Limits,
        serving: Option<Serving>,
    ) -> Granted {
        Granted {
            launched,
            limits,
            account: self.budget.account(username),
            stack_bytes: self.config.stack_bytes,
            serving,
        }
    }

    /// Makes the record of a process, which lives until its end is reported.
    fn enter(
        self: &Arc<Self>,
        pid: u64,
        launch: &mut Launch,
        granted: Granted,
    ) -> Result<(Arc<Record>, Ending), Error> {
        let record = Arc::new(Record::new(pid, launch, granted)?);
        self.live.enter(&record)?;
        let ending = Ending::new(self.clone(), record.clone());
        Ok((record, ending))
    }

    fn paced(
        &self,
        record: Arc<Record>,
        life: pace::Life,
    ) -> Begun<impl Future<Output = ()> + Send + use<>> {
        let (users, background) = (self.standings.clone(), self.threads.background().clone());
        let task = pace::run(life, record.clone(), users, background);
        Begun { record, task }
    }
}
