//! Random programs on random engines: whatever the chunks, the batches, the pages, the cancellations and the failures
//! of the driver, every answer is the one that a naive oracle gives, and everything that a program can read is as the
//! rules say.
//!
//! How much is computed again has no bound here: runs cancel, fail and suspend at every turn, after which a run alone
//! would compute again as well. `overcommitted.rs` has the bound, over pools and loads that do none of that.
//!
//! Nobody waits for ever: no request is passed over by more batches than `Simulation::check_waits` says.
//!
//! A run is its seed. Those runs count in which pages were evicted, copied and computed again, and steps ran ahead in
//! vain. By the environment: `PIE_SIMULATION_RUNS` says how many must count, `PIE_SIMULATION_SEED` where to begin, and
//! `PIE_SIMULATION_CHECKS=0` leaves the engine's own checks out, which else run around every call that may change it,
//! so that tokens alone tell. A run that fails is made small and printed; what it found goes into `scenarios.rs`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a test fails by panicking, and is a crate of its own"
)]

// By its path, so that its modules lie beside it.
#[path = "parts.rs"]
mod parts;

use std::cell::RefCell;
use std::ops::{AddAssign, Range};

use parts::driving::Simulation;
use parts::ops::{configs, op};
use parts::support::seeded::{rng, setting};
use parts::support::world::World;
use pie_core::Stats;
use proptest::prelude::*;
use proptest::test_runner::{TestError, TestRunner};

const RUNS: u64 = 200;
/// Operations of a run. In shorter runs it is rare that all happens by which a run counts.
const LENGTHS: Range<usize> = 400..1600;

/// What happened in runs.
#[derive(Clone, Copy, Debug, Default)]
struct Happened {
    runs: u64,
    batches: u64,
    failed_batches: u64,
    device_losses: u64,
    tokens: u64,
    rows: u64,
    evicted: u64,
    copied_out: u64,
    copied_in: u64,
    replayed: u64,
    reused: u64,
    suspended: u64,
    ahead_used: u64,
    ahead_dropped: u64,
    followers: u64,
    drawn_late: u64,
    late_masks: u64,
    commands: u64,
    pages_exported: u64,
    pages_imported: u64,
    auctions: u64,
    rented: u64,
    /// Of all runs the most, not the sum.
    refused_max: u64,
}

impl Happened {
    fn in_run(world: &World) -> Self {
        let stats: Stats = world.engine.stats();
        Self {
            runs: 1,
            batches: stats.n_batches,
            failed_batches: stats.n_failed_batches,
            device_losses: stats.n_device_losses,
            tokens: stats.n_tokens,
            rows: stats.n_rows,
            evicted: stats.n_evicted,
            copied_out: stats.n_copied_out,
            copied_in: stats.n_copied_in,
            replayed: stats.n_replayed,
            reused: stats.n_reused,
            suspended: stats.n_suspended,
            ahead_used: stats.n_ahead_used,
            ahead_dropped: stats.n_ahead_dropped,
            followers: stats.n_followers,
            drawn_late: world.n_drawn_late,
            late_masks: stats.n_late_masks,
            commands: stats.n_commands,
            pages_exported: stats.n_pages_exported,
            pages_imported: stats.n_pages_imported,
            auctions: stats.n_auctions,
            rented: stats.rented_microcredits,
            refused_max: stats.n_refused_max,
        }
    }

    fn counts(&self) -> bool {
        [
            self.evicted,
            self.copied_in,
            self.replayed,
            self.ahead_dropped,
        ]
        .iter()
        .all(|&n| n > 0)
    }
}

impl AddAssign for Happened {
    fn add_assign(&mut self, other: Self) {
        for (own, other) in [
            (&mut self.runs, other.runs),
            (&mut self.batches, other.batches),
            (&mut self.failed_batches, other.failed_batches),
            (&mut self.device_losses, other.device_losses),
            (&mut self.tokens, other.tokens),
            (&mut self.rows, other.rows),
            (&mut self.evicted, other.evicted),
            (&mut self.copied_out, other.copied_out),
            (&mut self.copied_in, other.copied_in),
            (&mut self.replayed, other.replayed),
            (&mut self.reused, other.reused),
            (&mut self.suspended, other.suspended),
            (&mut self.ahead_used, other.ahead_used),
            (&mut self.ahead_dropped, other.ahead_dropped),
            (&mut self.followers, other.followers),
            (&mut self.drawn_late, other.drawn_late),
            (&mut self.late_masks, other.late_masks),
            (&mut self.commands, other.commands),
            (&mut self.pages_exported, other.pages_exported),
            (&mut self.pages_imported, other.pages_imported),
            (&mut self.auctions, other.auctions),
            (&mut self.rented, other.rented),
        ] {
            *own += other;
        }
        self.refused_max = self.refused_max.max(other.refused_max);
    }
}

/// Runs what follows from a seed, and returns what happened.
fn run(seed: u64, checks: bool) -> Happened {
    let config = ProptestConfig {
        max_shrink_iters: 400_000,
        max_shrink_time: 100_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = TestRunner::new_with_rng(config, rng(seed));
    let strategy = (configs(), prop::collection::vec(op(), LENGTHS));
    let tree = strategy.new_tree(&mut runner).unwrap();
    let happened = RefCell::new(Happened::default());
    let outcome = runner.run_one(tree, |(config, ops)| {
        let mut simulation = Simulation::new(config);
        simulation.world.token_ns = 1;
        simulation.world.engine.checks = checks;
        for op in ops {
            simulation.apply(op)?;
        }
        simulation.end()?;
        *happened.borrow_mut() = Happened::in_run(&simulation.world);
        Ok(())
    });
    if let Err(TestError::Fail(reason, (config, ops))) = outcome {
        panic!("seed {seed}: {reason}\non {config:?}\nafter {ops:#?}");
    }
    happened.into_inner()
}

#[test]
fn programs_get_what_the_oracle_says() {
    let wanted = setting("PIE_SIMULATION_RUNS", RUNS);
    let checks = setting("PIE_SIMULATION_CHECKS", 1) != 0;
    let (mut all, mut counted) = (Happened::default(), Happened::default());
    for seed in setting("PIE_SIMULATION_SEED", 0).. {
        let happened = run(seed, checks);
        all += happened;
        if happened.counts() {
            counted += happened;
        }
        if counted.runs == wanted {
            break;
        }
        assert!(
            all.runs < 100 + 100 * counted.runs,
            "hardly any run counts: {counted:?} of {all:?}"
        );
    }
    assert!(counted.followers > 0, "no batch followed another");
    assert!(counted.device_losses > 0, "no device was lost");
    assert!(counted.drawn_late > 0, "no mask came late");
    assert!(counted.late_masks > 0, "no mask came too late");
    assert!(counted.commands > 0, "no command was given");
    assert!(counted.pages_exported > 0, "no page was written");
    assert!(counted.pages_imported > 0, "no page was read");
    assert!(counted.auctions > 0, "pages were never bid for");
    assert!(counted.rented > 0, "nobody paid rent");
    assert!(counted.refused_max > 0, "nobody was passed over");
    println!("all: {all:?}\nthose that count: {counted:?}");
}
