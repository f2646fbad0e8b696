//! Records of processes, for tests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::kin::Kin;
use super::launch::Launch;
use super::nameable::Nameable;
use super::reading::Alone;
use super::record::{Granted, ProcessRecord};
use crate::Limits;
use crate::budget::Budget;
use crate::program::Component;

/// The record of a process that nobody runs.
pub(crate) fn record(pid: u64, limits: Limits, is_alone: bool) -> Arc<ProcessRecord> {
    let budget = Budget::new(16 << 20, None);
    let mut launch = Launch::new(Component::new(*b""), "");
    let own = launch.program.clone().held(&budget, "").unwrap();
    let granted = Granted {
        launched: Instant::now(),
        limits,
        account: budget.account(""),
        stack_bytes: 1 << 20,
        kin: Kin::new(Nameable::new(own, BTreeMap::new()), None, is_alone),
        budget: None,
    };
    let (record, _) = ProcessRecord::new(pid, &mut launch, granted, Alone).unwrap();
    Arc::new(record)
}
