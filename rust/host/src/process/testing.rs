//! Records of processes, for tests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use pie_core::ProcessId;

use super::ending::ProcessEnding;
use super::family::Family;
use super::kin::{Inherited, Kin, Lineage, Places};
use super::launch::Launch;
use super::nameable::Nameable;
use super::reading::{Alone, Reading};
use super::record::{Granted, ProcessRecord};
use super::served::ServedProcess;
use super::serving::{Observer, Serving};
use crate::Limits;
use crate::budget::{Budget, Purpose};
use crate::program::Component;
use crate::stepped_charge::SteppedCharge;

/// The record of a process that nobody runs.
pub(crate) fn record(pid: u64, limits: Limits, is_alone: bool) -> Arc<ProcessRecord> {
    let budget = Budget::new(16 << 20, None);
    let kin = |nameable| Kin::new(nameable, None, is_alone);
    let (record, _) = made(pid, &budget, (limits, kin), Alone);
    record
}

/// A detached child that nobody runs, and its end, for its parent.
pub(crate) fn detached_child(
    budget: &Arc<Budget>,
    observer: Arc<dyn Observer>,
) -> (ServedProcess, Arc<ProcessEnding>) {
    let limits = Limits::default();
    let holding = SteppedCharge::new(budget.account("").empty(Purpose::Queue));
    let ending = Arc::new(ProcessEnding::new(holding));
    let family: Arc<Family> = Arc::default();
    let (of_family, start) = family.admit(1, &limits).unwrap();
    start.succeed();
    let inherited = Inherited {
        limits: limits.clone(),
        budget: None,
        lineage: Lineage {
            family,
            depth: 1,
            is_served: true,
        },
        ending: ending.clone(),
        places: Places::new(of_family, None),
        parent: ProcessId(1),
    };
    let serving = Serving {
        kept_bytes: 1 << 20,
        log_bytes: 1 << 20,
        window_bytes: None,
        observer,
    };
    let kin = |nameable| Kin::new(nameable, Some(inherited), false);
    let (record, events) = made(2, budget, (limits, kin), serving);
    (ServedProcess::new(record, events), ending)
}

fn made<R: Reading>(
    pid: u64,
    budget: &Arc<Budget>,
    (limits, kin): (Limits, impl FnOnce(Nameable) -> Kin),
    reading: R,
) -> (Arc<ProcessRecord>, Arc<R::Queue>) {
    let mut launch = Launch::new(Component::new(*b""), "");
    let own = launch.program.clone().held(budget, "").unwrap();
    let granted = Granted {
        launched: Instant::now(),
        limits,
        account: budget.account(""),
        stack_bytes: 1 << 20,
        kin: kin(Nameable::new(own, BTreeMap::new())),
        budget: None,
    };
    let (record, events) = ProcessRecord::new(pid, &mut launch, granted, reading).unwrap();
    (Arc::new(record), events)
}
