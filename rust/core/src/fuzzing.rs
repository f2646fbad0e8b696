//! What fuzzers do to the structures behind the engine. Each function takes any bytes as a case of a property test, and
//! panics where the test fails. Only with the feature `fuzzing`, and in the tests of this crate.
#![allow(clippy::panic, reason = "a fuzzer panics where it has found something")]

mod bytes;

use std::fmt::Debug;

pub use bytes::case;

use crate::bus::modelled_bus;
use crate::kv::{modelled_lanes, modelled_store};
use crate::sched::modelled_queue;

/// The pools of pages and slots, and the store that moves pages between device and host.
pub fn pages(data: &[u8]) {
    let (sizes, ops) = case(data, &modelled_store::sizes(), &modelled_store::op());
    holds(modelled_store::run(sizes, ops));
    let (sizes, ops) = case(data, &modelled_store::sizes(), &modelled_store::pool_op());
    holds(modelled_store::run_pools(sizes, ops));
}

/// The tree of pages by content, with the lanes of contexts and batches that fail.
pub fn prefix_tree(data: &[u8]) {
    let (sizes, ops) = case(data, &modelled_lanes::sizes(), &modelled_lanes::op());
    holds(modelled_lanes::run(sizes, ops));
}

/// The queue of requests and the choice among them.
pub fn scheduler(data: &[u8]) {
    let (limits, ops) = case(data, &modelled_queue::limits(), &modelled_queue::op());
    holds(modelled_queue::run(limits, ops));
}

/// The queues and subscriptions of programs that talk to each other.
pub fn bus(data: &[u8]) {
    let (limits, ops) = case(data, &modelled_bus::limits(), &modelled_bus::op());
    holds(modelled_bus::run(limits, ops));
}

fn holds<T, E: Debug>(outcome: Result<T, E>) {
    if let Err(error) = outcome {
        panic!("{error:?}");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_a_case(data in prop::collection::vec(any::<u8>(), 0..600)) {
            pages(&data);
            prefix_tree(&data);
            scheduler(&data);
            bus(&data);
        }
    }
}
