//! Random programs on a whole engine: the simulation of `pie-core`, whose seeds run in the tests there.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "files of the tests of another crate; this needs a part of them"
)]

#[path = "../../core/tests/simulation/parts.rs"]
mod parts;

use parts::{driving, ops};
use pie_core::fuzzing::case;

/// Runs programs, batches and failures as the bytes say, and compares each answer with that of the oracle.
pub fn programs(data: &[u8]) {
    let (config, ops) = case(data, &ops::configs(), &ops::op());
    let mut simulation = driving::Simulation::new(config);
    for op in ops {
        simulation.apply(op).unwrap();
    }
    simulation.end().unwrap();
}
