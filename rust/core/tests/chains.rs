//! Chains of forward passes: a program asks for the next one when it has the answer to the last.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    reason = "a test fails by panicking, and is a crate of its own"
)]

mod support;

use std::collections::BTreeSet;
use std::time::Duration;

use pie_core::{ContextId, EngineConfig, Forward, Input, NextWork, RequestId, Submission};
use support::world::{World, config, prompt};

/// What a batch takes, and what a program takes to come back.
const BATCH_NS: u64 = 100_000;
const THINK_NS: u64 = 20_000;

fn world() -> World {
    let config = EngineConfig {
        hold: Duration::from_millis(2),
        ..config()
    };
    World::with_process(config, 1)
}

/// What happens next: the next pass of a chain is submitted, or what runs ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Submit(usize),
    Ended,
    Ask,
}

/// Runs chains on a clock of their own until each has made `n` passes. A chain goes over its contexts in turn. Returns
/// when the last one ended.
fn run(world: &mut World, chains: &[&[ContextId]], starts_ns: &[u64], n: usize) -> u64 {
    let mut events: BTreeSet<(u64, Event)> = BTreeSet::new();
    for (chain, &at_ns) in starts_ns.iter().enumerate() {
        events.insert((at_ns, Event::Submit(chain)));
    }
    let mut waiting: Vec<(RequestId, usize)> = Vec::new();
    let mut n_made = vec![0; chains.len()];
    let mut running = None;
    while let Some((now_ns, event)) = events.pop_first() {
        world.now_ns = now_ns;
        match event {
            Event::Submit(chain) => {
                let context = chains[chain][n_made[chain] % chains[chain].len()];
                let input = vec![Input {
                    token: n_made[chain] as u32 % 50,
                    position: None,
                }];
                let forward = Forward {
                    input,
                    ..Forward::default()
                };
                let submission = Submission::Forward(context, Box::new(forward));
                waiting.push((world.submit(submission).unwrap(), chain));
            }
            Event::Ended => {
                let batch: pie_core::Batch = running.take().unwrap();
                let logits = world.driver.run(&batch.arena).unwrap().logits;
                world.conclude(&batch, &logits, &[]);
                for (request, chain) in std::mem::take(&mut waiting) {
                    if world.ready.remove(&request).is_none() {
                        waiting.push((request, chain));
                        continue;
                    }
                    world.engine.take(request).unwrap().unwrap();
                    n_made[chain] += 1;
                    if n_made[chain] < n {
                        events.insert((now_ns + THINK_NS, Event::Submit(chain)));
                    }
                }
            }
            Event::Ask => {}
        }
        if running.is_some() {
            continue;
        }
        match world.engine.next_batch(now_ns) {
            NextWork::Batch(batch) => {
                running = Some(batch);
                events.insert((now_ns + BATCH_NS, Event::Ended));
            }
            NextWork::HoldUntil(until_ns) => {
                events.insert((until_ns, Event::Ask));
            }
            NextWork::Command(command) => panic!("nobody asked for {command:?}"),
            NextWork::Idle => {}
        }
    }
    assert!(n_made.iter().all(|&made| made == n), "{n_made:?}");
    world.now_ns
}

/// The second chain begins while the first pass of the first one runs: without a hold they would take turns for ever.
#[test]
fn chains_that_begin_one_after_the_other_come_to_share_batches() {
    for n_chains in [2, 4] {
        let mut world = world();
        let contexts: Vec<ContextId> = (0..n_chains)
            .map(|salt| world.context(&prompt(3, salt)))
            .collect();
        let chains: Vec<&[ContextId]> = contexts.chunks(1).collect();
        let starts: Vec<u64> = (0..u64::from(n_chains)).map(|at| at * 30_000).collect();
        let n = 100;
        let ended_ns = run(&mut world, &chains, &starts, n);
        let stats = world.engine.stats();
        assert_eq!(stats.n_sequences, u64::from(n_chains) * n as u64);
        assert!(stats.n_batches <= n as u64 + 4, "{}", stats.n_batches);
        let alone_ns = n as u64 * (BATCH_NS + THINK_NS);
        assert!(ended_ns < alone_ns * 11 / 10, "{ended_ns}");
    }
}

/// One program goes from one context to the next and back: none of them comes back before another was answered, and
/// nothing is held for it.
#[test]
fn a_chain_over_several_contexts_is_not_held_for_itself() {
    let mut world = world();
    let contexts: Vec<ContextId> = (0..3).map(|salt| world.context(&prompt(3, salt))).collect();
    let n = 99;
    let ended_ns = run(&mut world, &[&contexts], &[0], n);
    assert_eq!(world.engine.stats().n_batches, n as u64);
    assert_eq!(world.engine.stats().n_holds, 0);
    assert_eq!(ended_ns, n as u64 * (BATCH_NS + THINK_NS) - THINK_NS);
}

/// A chain that ends keeps the other ones waiting once at the most.
#[test]
fn a_chain_that_ends_is_forgotten() {
    let mut world = world();
    let contexts: Vec<ContextId> = (0..2).map(|salt| world.context(&prompt(3, salt))).collect();
    let chains: Vec<&[ContextId]> = contexts.chunks(1).collect();
    run(&mut world, &chains, &[0, 30_000], 10);
    let held_before = world.engine.stats().n_holds;
    let began_ns = world.now_ns;
    let ended_ns = run(&mut world, &chains[..1], &[began_ns], 20);
    let n_held = world.engine.stats().n_holds - held_before;
    assert!(n_held <= 1, "{n_held}");
    let alone_ns = 20 * (BATCH_NS + THINK_NS);
    assert!(ended_ns - began_ns < alone_ns + 2_000_000);
}
