//! Pools that hold one context of many: what is computed again stays within three times what the contexts need alone.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod support;

use pie_core::batch::ArenaView;
use pie_core::{
    Capabilities, EngineConfig, GeneratorId, ProcessId, RequestId, Stats, Submission, UserId,
};
use support::world::{World, config, prompt};

/// How programs of several users share a pool that is too small for them together.
#[derive(Clone, Copy, Debug)]
struct Load {
    n_contexts: u32,
    n_users: u64,
    n_prompt: u32,
    n_drawn: u32,
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

    fn program(&self, world: &mut World, index: u32) -> Program {
        let process = ProcessId(1 + u64::from(index));
        let user = UserId(u64::from(index) % self.n_users);
        world.engine.new_process(process, user, 1).unwrap();
        let context = world.engine.new_context(process).unwrap();
        // No two contexts share a page.
        let mut tokens = prompt(self.n_prompt, index);
        tokens[..2].copy_from_slice(&[index % 50, index / 50]);
        world.engine.append(context, &tokens).unwrap();
        let generator = world.generator(context, self.n_drawn);
        let request = (!self.steps).then(|| world.submit(Submission::Run(generator)).unwrap());
        Program { generator, request }
    }

    /// Runs everything to its end.
    fn run(&self) -> Stats {
        let mut world = World::new(self.config());
        world.engine.checks = false;
        let mut programs: Vec<Program> = (0..self.n_contexts)
            .map(|index| self.program(&mut world, index))
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
        assert!(part <= 3.0, "{part} on {load:?}: {stats:?}");
        most = most.max(part);
    }
    println!("at most {most:.2} times what the contexts compute alone");
}

/// Few contexts that need twice the pool together.
const FEW: Load = Load {
    n_contexts: 6,
    n_users: 1,
    n_prompt: 8,
    n_drawn: 390,
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
