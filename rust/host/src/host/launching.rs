//! Launching: the one place in which processes begin, for whoever runs the engine, for a server, and for programs that
//! start others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use pie_core::ProcessId;
use pie_core::market::MICRO;

use super::state::HostState;
use super::task::{self, EndReporter};
use crate::Error;
use crate::limits::Limits;
use crate::process::kin::{Inherited, Kin};
use crate::process::nameable::Nameable;
use crate::process::purse::{Endowment, Purse};
use crate::process::queue::PipeQueue;
use crate::process::reading::{Alone, Reading};
use crate::process::record::{Granted, ProcessRecord};
use crate::process::{Launch, pace};
use crate::program::{ChargedProgram, Program};

/// A process that lives, and the task that runs it. Dropping the task ends the process.
pub(super) struct Begun<Q, T> {
    pub(super) record: Arc<ProcessRecord>,
    /// For who reads them.
    pub(super) events: Arc<Q>,
    pub(super) task: T,
}

impl HostState {
    /// Begins the process of a launch, as a child where it has inherited something.
    ///
    /// # Errors
    /// As [`crate::Host::launch`].
    pub(super) fn begin<R: Reading>(
        self: &Arc<Self>,
        mut launch: Launch,
        inherited: Option<Inherited>,
        reading: R,
    ) -> Result<Begun<R::Queue, impl Future<Output = ()> + Send + use<R>>, Error> {
        let launched = Instant::now();
        let most = inherited.as_ref();
        let most = most.map_or(&self.config.limits, |inherited| &inherited.limits);
        let limits = most.lowered(&launch.limits)?;
        launch.complete(limits.message_bytes)?;
        let endowment = Endowment {
            wanted: launch.endowment()?,
            usual: self.config.credits.saturating_mul(MICRO),
            parent: inherited.as_ref().map(|inherited| inherited.parent),
        };
        if inherited.is_none() && self.config.token_budget > 0 {
            launch.token_budget.get_or_insert(self.config.token_budget);
        }
        let user = launch.username.as_deref().unwrap_or_default();
        let program = self.components.shared(launch.program.clone());
        let program = program.held(&self.budget, user)?;
        let own = program.program.clone();
        let nameable = Nameable::new(program, self.held(&launch.programs, user)?);
        let budget = inherited.as_ref().and_then(|it| it.budget.clone());
        let is_child = inherited.is_some();
        let kin = Kin::new(nameable, inherited, launch.is_alone);
        let granted = Granted {
            budget,
            ..self.granted(launched, user, limits, kin)
        };
        let pid = self.numbers.give();
        let (record, events) = self.enter(pid, &mut launch, granted, reading)?;
        let models = self.surroundings.models.all();
        let purse = Purse::open(ProcessId(pid), models, endowment);
        record.kin.endow(purse);
        if is_child {
            // It has no client that could send anything.
            record.close_input();
        }
        let reporter = EndReporter::new(self.clone(), record.clone());
        let life = Box::pin(task::run(reporter, own, launch.input));
        let task = self.paced(record.clone(), life);
        Ok(Begun {
            record,
            events,
            task,
        })
    }

    /// Begins the check of a program, which has a process of its own.
    ///
    /// # Errors
    /// As [`crate::Host::check`].
    pub(super) fn begin_look(
        self: &Arc<Self>,
        program: Program,
        username: &str,
    ) -> Result<Begun<PipeQueue, impl Future<Output = ()> + Send + use<>>, Error> {
        let mut launch = Launch {
            seed: Some(0),
            username: Some(username.to_owned()),
            ..Launch::new(program, "")
        };
        let program = launch.program.clone().held(&self.budget, username)?;
        let limits = self.config.limits.clone();
        let own = program.program.clone();
        let kin = Kin::new(Nameable::new(program, BTreeMap::new()), None, false);
        let granted = self.granted(Instant::now(), username, limits, kin);
        let number = self.next_look.fetch_sub(1, Ordering::Relaxed);
        let (record, events) = self.enter(number, &mut launch, granted, Alone)?;
        let reporter = EndReporter::new(self.clone(), record.clone());
        let life = Box::pin(task::check(reporter, own));
        let task = self.paced(record.clone(), life);
        Ok(Begun {
            record,
            events,
            task,
        })
    }

    /// The programs of those names, charged to their user.
    fn held(
        &self,
        programs: &BTreeMap<String, Program>,
        username: &str,
    ) -> Result<BTreeMap<String, ChargedProgram>, Error> {
        let held = |(name, program): (&String, &Program)| {
            let program = self.components.shared(program.clone());
            let program = program.held(&self.budget, username)?;
            Ok((name.clone(), program))
        };
        programs.iter().map(held).collect()
    }

    fn granted(&self, launched: Instant, username: &str, limits: Limits, kin: Kin) -> Granted {
        Granted {
            launched,
            limits,
            account: self.budget.account(username),
            stack_bytes: self.config.stack_bytes,
            kin,
            budget: None,
        }
    }

    /// Makes the record of a process, which lives until its end is reported.
    fn enter<R: Reading>(
        &self,
        pid: u64,
        launch: &mut Launch,
        granted: Granted,
        reading: R,
    ) -> Result<(Arc<ProcessRecord>, Arc<R::Queue>), Error> {
        let (record, events) = ProcessRecord::new(pid, launch, granted, reading)?;
        let record = Arc::new(record);
        self.live.enter(&record)?;
        self.surroundings.standstill.enter(&record);
        Ok((record, events))
    }

    fn paced(
        &self,
        record: Arc<ProcessRecord>,
        life: pace::Life,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (users, background) = (self.standings.clone(), self.threads.background().clone());
        pace::run(life, record, users, background)
    }
}
