//! Pools that hold one context of many: what is computed again stays within three times what the contexts need alone.
//!
//! A grid of loads, and loads that are drawn, in which programs fork their contexts and begin alike. By the
//! environment: `PIE_OVERCOMMITTED_RUNS` says how many are drawn, and `PIE_OVERCOMMITTED_SEED` from which seed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod support;

use std::cell::Cell;

use pie_core::batch::ArenaView;
use pie_core::{
    Capabilities, ContextId, EngineConfig, GeneratorId, ProcessId, RequestId, Stats, Submission,
    UserId,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use support::seeded::{rng, setting};
use support::world::{World, config, prompt};

/// The most that is computed again, in parts of what the contexts compute alone.
const MOST: f64 = 3.0;
/// Loads that are drawn.
const RUNS: u64 = 24;

/// How programs of several users share a pool that is too small for them together.
#[derive(Clone, Copy, Debug)]
struct Load {
    n_contexts: u32,
    n_users: u64,
    n_prompt: u32,
    n_drawn: u32,
    /// Contexts of a program, which are forks of its first one.
    n_branches: u32,
    /// Tokens of the prompt with which all contexts of a program begin: it computes them before it forks.
    n_forked: u32,
    /// Those of them with which the contexts of all programs begin.
    n_common: u32,
    /// Pages beyond those that one context needs.
    spare_pages: u32,
    host_pages: u32,
    copy_page_ns: u64,
    run_ahead: bool,
    /// Whether programs ask for each step, or for all at once.
    steps: bool,
    /// What a batch takes, however many tokens it has.
    batch_ns: u64,
    /// Whether the driver gets the batch after the one that runs.
    follows: bool,
}

struct Program {
    generator: GeneratorId,
    request: Option<RequestId>,
}

impl Load {
    const fn n_alone(&self) -> u64 {
        self.n_contexts as u64 * (self.n_prompt + self.n_drawn) as u64
    }

    fn config(&self) -> EngineConfig {
        let page_size = 16;
        EngineConfig {
            run_ahead: self.run_ahead,
            end_tokens: vec![],
            driver: Capabilities {
                page_size,
                n_pages: (self.n_prompt + self.n_drawn).div_ceil(page_size) + self.spare_pages,
                host_pages: self.host_pages,
                copy_page_ns: self.copy_page_ns,
                follows: self.follows,
                ..config().driver
            },
            ..config()
        }
    }

    /// The prompt of a context: what all begin with, what those of its program do, and its own. No two have a page in
    /// common beyond that.
    fn prompt(&self, index: u32) -> Vec<u32> {
        let mut tokens = prompt(self.n_common, 0);
        let program = index / self.n_branches;
        for (salt, end) in [(program, self.n_forked), (index, self.n_prompt)] {
            let n = end as usize - tokens.len();
            let rest = prompt(self.n_prompt, salt).into_iter().skip(2);
            tokens.extend([salt % 50, salt / 50].into_iter().chain(rest).take(n));
        }
        tokens
    }

    /// The contexts of all programs, in their order. What programs compute before they fork is computed, and nothing
    /// else.
    fn contexts(&self, world: &mut World) -> Vec<ContextId> {
        let mut contexts = Vec::new();
        world.token_ns = 1_000;
        for first in (0..self.n_contexts).step_by(self.n_branches as usize) {
            let program = u64::from(first / self.n_branches);
            let process = ProcessId(1 + program);
            let user = UserId(program % self.n_users);
            world.engine.new_process(process, user, 1).unwrap();
            let forked = &self.prompt(first)[..self.n_forked as usize];
            let root = world.context_of(process, forked);
            let branches = first..self.n_contexts.min(first + self.n_branches);
            if branches.len() > 1 && self.n_forked > 0 {
                world.flush(root).unwrap();
            }
            contexts.push(root);
            contexts.extend((1..branches.len()).map(|_| world.engine.fork(root).unwrap()));
        }
        world.token_ns = 0;
        contexts
    }

    fn program(&self, world: &mut World, context: ContextId, index: u32) -> Program {
        let own = &self.prompt(index)[self.n_forked as usize..];
        world.engine.append(context, own).unwrap();
        let generator = world.generator(context, self.n_drawn);
        let request = (!self.steps).then(|| world.submit(Submission::Run(generator)).unwrap());
        Program { generator, request }
    }

    /// Runs everything to its end.
    fn run(&self) -> Stats {
        let mut world = World::new(self.config());
        world.engine.checks = false;
        let contexts = self.contexts(&mut world);
        let mut programs: Vec<Program> = contexts
            .into_iter()
            .zip(0..)
            .map(|(context, index)| self.program(&mut world, context, index))
            .collect();
        let mut goes_on = true;
        while goes_on {
            goes_on = false;
            for program in &mut programs {
                let is_due = program.request.is_none_or(|request| {
                    world.engine.take(request).is_some_and(|answer| {
                        answer.unwrap();
                        true
                    })
                });
                if is_due {
                    let opened = world.engine.next_step(program.generator).unwrap();
                    program.request =
                        opened.map(|_| world.submit(Submission::Step(program.generator)).unwrap());
                }
                goes_on |= program.request.is_some();
            }
            if goes_on {
                assert!(!world.running.is_empty() || world.plan());
                if self.follows {
                    world.plan();
                }
                let batch = ArenaView::parse(&world.running[0].arena).unwrap();
                world.now_ns += self.batch_ns + 1_000 * batch.n_tokens() as u64;
                world.finish();
            }
        }
        world.engine.check().unwrap();
        world.engine.stats()
    }
}

fn loads() -> Vec<Load> {
    let mut loads = Vec::new();
    for (n_contexts, n_prompt, n_drawn) in [(12, 8, 390), (16, 200, 60)] {
        for spare_pages in [0, 1, 20] {
            for (host_pages, copy_page_ns) in [(0, 0), (2000, 4_000), (2000, 400_000)] {
                for (steps, run_ahead) in [(true, true), (true, false), (false, true)] {
                    for (n_users, batch_ns) in [(1, 1_000_000), (3, 1_000_000), (1, 10_000)] {
                        loads.push(Load {
                            n_contexts,
                            n_users,
                            n_prompt,
                            n_drawn,
                            n_branches: 1,
                            n_forked: 0,
                            n_common: 0,
                            spare_pages,
                            host_pages,
                            copy_page_ns,
                            run_ahead,
                            steps,
                            batch_ns,
                            follows: false,
                        });
                    }
                }
            }
        }
    }
    loads
}

/// Were a context displaced for the next one as soon as it has come back, most of all tokens would be computed again:
/// up to 27 times what the contexts compute alone.
#[test]
fn what_is_computed_again_is_bounded() {
    let mut most: f64 = 0.0;
    for load in loads() {
        let stats = load.run();
        let part = stats.n_replayed as f64 / load.n_alone() as f64;
        assert!(part <= MOST, "{part} on {load:?}: {stats:?}");
        most = most.max(part);
    }
    println!("at most {most:.2} times what the contexts compute alone");
}

/// Any load: contexts of any length, alike up to any token, forked or not, in any pool that holds one of them.
fn any_load() -> impl Strategy<Value = Load> {
    let host = prop_oneof![
        Just((0u32, 0u64)),
        Just((8u32, 4_000u64)),
        Just((2000u32, 4_000u64)),
        Just((2000u32, 400_000u64))
    ];
    let contexts = (2u32..17, 1u64..4, 1u32..5, 2u32..200, 16u32..200);
    let alike = (0u32..=100, 0u32..=100);
    let runs = (any::<bool>(), any::<bool>(), any::<bool>());
    let batch_ns = prop_oneof![Just(10_000u64), Just(1_000_000u64)];
    let pool = (0u32..24, host, batch_ns);
    (contexts, alike, runs, pool).prop_map(|(contexts, alike, runs, pool)| {
        let (n_contexts, n_users, n_branches, n_prompt, n_drawn) = contexts;
        let (spare_pages, (host_pages, copy_page_ns), batch_ns) = pool;
        let (steps, run_ahead, follows) = runs;
        let n_forked = n_prompt * alike.0 / 100;
        Load {
            n_contexts,
            n_users,
            n_prompt,
            n_drawn,
            n_branches,
            n_forked,
            n_common: n_forked * alike.1 / 100,
            spare_pages,
            host_pages,
            copy_page_ns,
            run_ahead,
            steps,
            batch_ns,
            follows,
        }
    })
}

/// The same of loads that nobody has chosen.
#[test]
fn what_is_computed_again_is_bounded_in_any_load() {
    let seed = setting("PIE_OVERCOMMITTED_SEED", 0);
    let config = ProptestConfig {
        cases: setting("PIE_OVERCOMMITTED_RUNS", RUNS) as u32,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let (most, n_replayed, n_reused) = (Cell::new(0.0f64), Cell::new(0u64), Cell::new(0u64));
    let outcome = TestRunner::new_with_rng(config, rng(seed)).run(&any_load(), |load| {
        let stats = load.run();
        let part = stats.n_replayed as f64 / load.n_alone() as f64;
        prop_assert!(part <= MOST, "{part}: {stats:?}");
        most.set(most.get().max(part));
        n_replayed.set(n_replayed.get() + stats.n_replayed);
        n_reused.set(n_reused.get() + stats.n_reused);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("seed {seed}: {error}");
    }
    assert!(n_replayed.get() > 0, "nothing was computed again");
    assert!(n_reused.get() > 0, "no context began as another one");
    println!(
        "at most {:.2} times what the contexts compute alone",
        most.get()
    );
}

/// Few contexts that need twice the pool together.
const FEW: Load = Load {
    n_contexts: 6,
    n_users: 1,
    n_prompt: 8,
    n_drawn: 390,
    n_branches: 1,
    n_forked: 0,
    n_common: 0,
    spare_pages: 1,
    host_pages: 0,
    copy_page_ns: 0,
    run_ahead: true,
    steps: false,
    batch_ns: 10_000,
    follows: false,
};

fn check_debts(load: &Load) -> Stats {
    let stats = load.run();
    let part = stats.n_replayed as f64 / load.n_alone() as f64;
    assert!(
        stats.n_suspended > 0 && part <= 2.0,
        "{part} on {load:?}: {stats:?}"
    );
    stats
}

/// What follows repays as what was planned by itself does: tokens are as new there.
#[test]
fn followers_repay_what_was_computed_again() {
    for (steps, n_users) in [(false, 1), (true, 1), (false, 2), (true, 2)] {
        let stats = check_debts(&Load {
            steps,
            n_users,
            follows: true,
            ..FEW
        });
        assert!(stats.n_followers > 0, "{stats:?}");
    }
}

/// The contexts of two users owe each for their own: neither's debts make the other compute more again.
#[test]
fn two_users_repay_each_for_their_own() {
    for steps in [false, true] {
        check_debts(&Load {
            steps,
            n_users: 2,
            ..FEW
        });
    }
}
