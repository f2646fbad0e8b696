//! Which batches the steps share whose token masks come late.

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

use pie_core::{EngineConfig, GeneratorId, NextWork, RequestId, Submission};
use support::world::{World, config, output, prompt};

/// What a batch takes, and what a program takes to come back.
const BATCH_NS: u64 = 1_000_000;
const THINK_NS: u64 = 20_000;
/// How long a batch is held at the most.
const HOLD_NS: u64 = 2 * BATCH_NS;
/// Tokens of each generation.
const N_TOKENS: u32 = 50;

/// What happens next, to a program or to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A program asks for its next step.
    Step(usize),
    /// It gives the mask of that step.
    Mask(usize),
    BatchEnded,
    AskDriver,
}

/// A program that steps a generator, and gives the mask of each step so long after it asked for it.
struct Stepper {
    generator: GeneratorId,
    mask_ns: u64,
    request: Option<RequestId>,
    ended_ns: u64,
}

/// Programs beside runs to the end, on a clock of their own.
struct Scene {
    world: World,
    steppers: Vec<Stepper>,
    runs: Vec<RequestId>,
    /// When the last of the runs ended.
    runs_ended_ns: u64,
    running: Option<pie_core::Batch>,
    events: BTreeSet<(u64, Event)>,
}

impl Scene {
    /// Generations without a mask, and one for each of the times that masks take.
    fn new(run_ahead: bool, n_runs: u32, masks_ns: &[u64]) -> Self {
        let mut config = EngineConfig {
            hold: Duration::from_nanos(HOLD_NS),
            run_ahead,
            ..config()
        };
        // Nobody waits for pages.
        config.driver.n_pages = 1024;
        let mut world = World::with_process(config, 1);
        let mut generator = |salt| {
            let context = world.context(&prompt(3, salt));
            (world.generator(context, N_TOKENS), salt)
        };
        let plain: Vec<_> = (0..n_runs).map(&mut generator).collect();
        let masked: Vec<_> = (n_runs..).take(masks_ns.len()).map(generator).collect();
        let submit = |(generator, _)| world.submit(Submission::Run(generator)).unwrap();
        let runs = plain.into_iter().map(submit).collect();
        let stepper = |((generator, _), &mask_ns): ((GeneratorId, u32), &u64)| {
            world.engine.set_late_masks(generator, true).unwrap();
            Stepper {
                generator,
                mask_ns,
                request: None,
                ended_ns: 0,
            }
        };
        let steppers: Vec<_> = masked.into_iter().zip(masks_ns).map(stepper).collect();
        let events = (0..steppers.len()).map(|at| (at as u64, Event::Step(at)));
        Self {
            events: events.collect(),
            world,
            steppers,
            runs,
            runs_ended_ns: 0,
            running: None,
        }
    }

    fn run(&mut self) {
        while let Some((now_ns, event)) = self.events.pop_first() {
            self.world.now_ns = now_ns;
            match event {
                Event::Step(at) => self.step(at),
                Event::Mask(at) => {
                    // A generation that has ended needs none.
                    if let Some(request) = self.steppers[at].request {
                        self.world.give_mask(request, 0, &[]).unwrap();
                    }
                }
                Event::BatchEnded => {
                    let batch = self.running.take().unwrap();
                    let logits = self.world.driver.run(&batch.arena).unwrap().logits;
                    self.world.conclude(&batch, &logits, &[]);
                }
                Event::AskDriver => {}
            }
            self.take_ready();
            self.begin_batch();
        }
        assert!(self.runs.is_empty());
        assert!(self.steppers.iter().all(|it| it.ended_ns > 0));
    }

    fn step(&mut self, at: usize) {
        let stepper = &mut self.steppers[at];
        let opened = self.world.engine.next_step(stepper.generator).unwrap();
        if opened.is_none() {
            stepper.ended_ns = self.world.now_ns;
            return;
        }
        let submission = Submission::Step(stepper.generator);
        stepper.request = Some(self.world.submit(submission).unwrap());
        let given_ns = self.world.now_ns + stepper.mask_ns;
        self.events.insert((given_ns, Event::Mask(at)));
    }

    /// Programs take what is ready, and come back.
    fn take_ready(&mut self) {
        let (now_ns, world) = (self.world.now_ns, &mut self.world);
        for (at, stepper) in self.steppers.iter_mut().enumerate() {
            let ready = |request: &mut RequestId| world.ready.remove(request).is_some();
            if let Some(request) = stepper.request.take_if(ready) {
                let answer = world.engine.take(request).unwrap().unwrap();
                assert_eq!(output(answer).tokens.len(), 1);
                self.events.insert((now_ns + THINK_NS, Event::Step(at)));
            }
        }
        let n_before = self.runs.len();
        self.runs.retain(|run| world.ready.remove(run).is_none());
        if self.runs.len() < n_before {
            self.runs_ended_ns = now_ns;
        }
    }

    fn begin_batch(&mut self) {
        if self.running.is_some() {
            return;
        }
        let now_ns = self.world.now_ns;
        match self.world.engine.next_batch(now_ns) {
            NextWork::Batch(batch) => {
                self.running = Some(batch);
                self.events.insert((now_ns + BATCH_NS, Event::BatchEnded));
            }
            NextWork::HoldUntil(until_ns) => {
                self.events.insert((until_ns, Event::AskDriver));
            }
            NextWork::Command(command) => panic!("nobody asked for {command:?}"),
            NextWork::Idle => {}
        }
    }

    fn n_batches(&self) -> u64 {
        self.world.engine.stats().n_batches
    }
}

/// Times of masks: some are there before the batch has ended, and some come after it.
fn soon() -> Vec<u64> {
    (0..16)
        .map(|at| BATCH_NS / 2 + at * BATCH_NS / 16)
        .collect()
}

#[test]
fn steps_whose_masks_come_soon_share_their_batches() {
    for run_ahead in [true, false] {
        for n_runs in [0, 16] {
            let mut scene = Scene::new(run_ahead, n_runs, &soon());
            scene.run();
            let n_batches = scene.n_batches();
            assert!(
                n_batches <= u64::from(N_TOKENS) + 5,
                "{run_ahead} {n_runs}: {n_batches}"
            );
        }
    }
}

/// What needs no mask waits for those of others as long as for their programs.
#[test]
fn what_has_no_mask_waits_for_a_bounded_time() {
    let mut scene = Scene::new(true, 16, &soon());
    scene.run();
    let most_ns = u64::from(N_TOKENS) * (BATCH_NS + HOLD_NS / 2);
    assert!(scene.runs_ended_ns < most_ns, "{}", scene.runs_ended_ns);
}

#[test]
fn nothing_waits_for_masks_that_usually_come_late() {
    let mut scene = Scene::new(true, 16, &[4 * BATCH_NS; 4]);
    scene.run();
    let most_ns = u64::from(N_TOKENS + 8) * BATCH_NS;
    assert!(scene.runs_ended_ns < most_ns, "{}", scene.runs_ended_ns);
}

/// A program that changes its mind is not waited for, and neither is one whose constraint says that it has ended.
#[test]
fn what_ran_ahead_in_vain_is_not_waited_for() {
    let scene = || {
        let mut scene = Scene::new(true, 1, &[0]);
        scene.step(0);
        scene.world.plan();
        let request = scene.steppers[0].request.take().unwrap();
        scene.world.give_mask(request, 0, &[]).unwrap();
        scene.world.finish();
        scene.world.plan();
        scene.world.engine.take(request).unwrap().unwrap();
        scene.world.finish();
        // The row of the next step is there, and its mask may come soon.
        let now_ns = scene.world.now_ns;
        let next = scene.world.engine.next_batch(now_ns);
        assert!(matches!(next, NextWork::HoldUntil(_)), "{next:?}");
        scene
    };
    let ends: [fn(&mut World, GeneratorId); 3] = [
        |world, generator| drop(world.engine.accept(generator, &[7]).unwrap()),
        |world, generator| world.engine.end_by_constraint(generator).unwrap(),
        |world, generator| world.engine.drop_generator(generator),
    ];
    for end in ends {
        let mut scene = scene();
        let generator = scene.steppers[0].generator;
        end(&mut scene.world, generator);
        let now_ns = scene.world.now_ns;
        let next = scene.world.engine.next_batch(now_ns);
        assert!(matches!(next, NextWork::Batch(_)), "{next:?}");
    }
}
