//! Processes that programs start.

use std::sync::Arc;

use pie_core::ErrorCode;

use super::state::HostState;
use crate::Error;
use crate::budget::Purpose;
use crate::process::child::{Child, Spawn, Spawner};
use crate::process::ending::Ending;
use crate::process::kin::{Inherited, Places};
use crate::process::programs::Named;
use crate::process::queue::PassedOn;
use crate::process::record::ProcessRecord;
use crate::process::{Launch, Programs};
use crate::stepped_charge::SteppedCharge;

impl HostState {
    /// From now on programs start others through this host.
    pub(super) fn know_spawner(self: &Arc<Self>) {
        let shared: Arc<dyn Spawner> = self.clone();
        let known = self.surroundings.spawner.set(Arc::downgrade(&shared));
        debug_assert!(known.is_ok(), "a host is made once");
    }

    /// What a child of `parent` has of it, counted wherever it counts.
    fn inherited(
        &self,
        parent: &ProcessRecord,
        of_user: Option<&Arc<dyn Programs>>,
    ) -> Result<Inherited, Error> {
        let kin = &parent.kin;
        let depth = kin.depth + 1;
        let of_family = kin.family.admit(depth, &parent.limits)?;
        let of_user = of_user.map(|programs| programs.clone().admit(&parent.username));
        let holding = SteppedCharge::new(parent.account.empty(Purpose::Queue));
        Ok(Inherited {
            limits: parent.limits.clone(),
            budget: parent.budget.clone(),
            family: kin.family.clone(),
            depth,
            is_alone: kin.is_alone,
            is_served: parent.is_served(),
            ending: Arc::new(Ending::new(holding)),
            places: Arc::new(Places::new(of_family, of_user.transpose()?)),
        })
    }
}

impl Spawner for HostState {
    fn spawn(self: Arc<Self>, parent: &Arc<ProcessRecord>, spawn: Spawn) -> Result<Child, Error> {
        let keeper = self.surroundings.directory.get();
        // A detached one is counted where it is kept.
        let counted_by = keeper.as_ref().filter(|_| !spawn.is_detached);
        let inherited = self.inherited(parent, counted_by)?;
        let ending = inherited.ending.clone();
        let Named { label, program } = spawn.named;
        let own_seed = parent.kin.next_seed(parent.launch_seed);
        let launch = Launch {
            args: spawn.args,
            seed: Some(spawn.seed.unwrap_or(own_seed)),
            username: Some(parent.username.clone()),
            token_budget: spawn.token_budget,
            programs: parent.kin.given(),
            is_alone: inherited.is_alone,
            inherited: Some(inherited),
            ..Launch::new(program, spawn.input)
        };
        let record = if spawn.is_detached {
            let keeper = keeper.ok_or_else(not_kept)?;
            let process = keeper.launch_detached(label, launch)?;
            process.record().clone()
        } else {
            let counted = parent.clone();
            let count = Box::new(move |n_bytes| counted.count_output(n_bytes));
            let events = PassedOn::new(parent.events.clone(), count, spawn.with_output);
            let begun = self.begin(launch, events)?;
            self.threads.spawn(begun.task)?;
            let child = Arc::downgrade(&begun.record);
            parent.kin.keep_child(child);
            begun.record
        };
        parent.kin.count_child();
        Ok(Child::new(record, ending))
    }
}

fn not_kept() -> Error {
    Error::new(
        ErrorCode::Unsupported,
        "a detached child lives on in a server, and this engine is none; run the program by `pie serve`, or leave `detached` out",
    )
}
