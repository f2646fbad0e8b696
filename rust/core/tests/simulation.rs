//! Random programs on random engines: whatever the chunks, the batches, the pages, the cancellations and the failures of the driver,
//! every answer is the one that a naive oracle gives, and everything that a program can read is as the rules say.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use pie_core::sampling::Params;
use pie_core::{
    Answer, ContextId, DriverFailure, EngineConfig, ErrorCode, FinishReason, GeneratorId,
    GeneratorOptions, Method, ProcessId, RequestId, Submission, UserId,
};
use proptest::prelude::*;
use support::world::{MODEL, World, config, options, output};
use support::{derived_seed, fold, next_token};

const V: u32 = 50;
/// User and launch seed of each process.
const PROCESSES: [(u64, u64); 3] = [(1, 7), (1, 8), (2, 7)];
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const MAX_SNAPSHOTS: u32 = 6;
const MAX_USER_SNAPSHOTS: u32 = 4;
const END: u32 = 3;
const DRIVER_TIMEOUT_NS: u64 = 1000;

#[derive(Clone, Debug)]
enum Op {
    NewContext(usize),
    Append(usize, Vec<u32>),
    Fork(usize),
    Release(usize),
    Save(usize, usize),
    Snapshot(usize),
    Open {
        process: usize,
        name: usize,
        take: bool,
    },
    Delete(usize, usize),
    Suspend(usize),
    /// A process ends, and is launched again.
    Relaunch(usize),
    Truncate(usize, u32),
    Flush(usize),
    Generate {
        context: usize,
        method: Method,
        seed: Option<u64>,
        max_tokens: Option<u32>,
        stop: Vec<u32>,
    },
    Step(usize),
    Run(usize),
    Take(usize),
    Cancel(usize),
    Plan,
    Finish(usize),
    /// Runs and takes everything.
    Settle,
    /// The driver fails, before or after it has written into the pages.
    FailBatch {
        which: usize,
        computed: bool,
    },
    SpoilRow(usize),
    FailSequence(usize),
    /// Time goes by; batches that are overdue are abandoned. Whatever answers them later comes too late.
    Hang(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let method = prop_oneof![
        Just(Method::Argmax),
        (0.5f32..2.0, 0.3f32..=1.0).prop_map(|(temperature, p)| Method::TopP { temperature, p }),
        (0.5f32..2.0, 1u32..20).prop_map(|(temperature, k)| Method::TopK { temperature, k }),
        (0.5f32..2.0, 0.0f32..0.5).prop_map(|(temperature, p)| Method::MinP { temperature, p }),
    ];
    let generate = (
        0usize..6,
        method,
        prop::option::of(any::<u64>()),
        prop::option::weighted(0.8, 0u32..12),
        prop::collection::vec(0..V, 0..3),
    );
    prop_oneof![
        1 => (0usize..3).prop_map(Op::NewContext),
        3 => (0usize..6, prop::collection::vec(0..V, 0..14)).prop_map(|(context, tokens)| Op::Append(context, tokens)),
        3 => (0usize..4).prop_map(Op::Fork),
        1 => (0usize..6).prop_map(Op::Release),
        3 => (0usize..6, 0usize..4).prop_map(|(context, name)| Op::Save(context, name)),
        1 => (0usize..6).prop_map(Op::Snapshot),
        4 => (0usize..3, 0usize..8, any::<bool>()).prop_map(|(process, name, take)| Op::Open { process, name, take }),
        1 => (0usize..3, 0usize..8).prop_map(|(process, name)| Op::Delete(process, name)),
        2 => (0usize..6).prop_map(Op::Suspend),
        1 => (0usize..12).prop_map(Op::Relaunch),
        1 => (0usize..6, 0u32..6).prop_map(|(context, n)| Op::Truncate(context, n)),
        2 => (0usize..6).prop_map(Op::Flush),
        3 => generate.prop_map(|(context, method, seed, max_tokens, stop)| Op::Generate { context, method, seed, max_tokens, stop }),
        5 => (0usize..6).prop_map(Op::Step),
        2 => (0usize..6).prop_map(Op::Run),
        5 => (0usize..6).prop_map(Op::Take),
        1 => (0usize..6).prop_map(Op::Cancel),
        6 => Just(Op::Plan),
        4 => (0usize..2).prop_map(Op::Finish),
        5 => Just(Op::Settle),
        1 => (0usize..2, any::<bool>()).prop_map(|(which, computed)| Op::FailBatch { which, computed }),
        1 => (0usize..8).prop_map(Op::SpoilRow),
        1 => (0usize..8).prop_map(Op::FailSequence),
        1 => (DRIVER_TIMEOUT_NS / 3..2 * DRIVER_TIMEOUT_NS).prop_map(Op::Hang),
    ]
}

fn configs() -> impl Strategy<Value = EngineConfig> {
    (
        1u32..6,
        prop_oneof![6u32..20, Just(400u32)],
        1u32..40,
        1u32..20,
        1u32..6,
        prop_oneof![12u32..60, Just(4096u32)],
        prop_oneof![Just(0u32), 1u32..30],
        any::<bool>(),
    )
        .prop_map(
            |(
                page_size,
                n_pages,
                max_batch_tokens,
                prefill_chunk,
                max_batch_seqs,
                max_context,
                host_slots,
                run_ahead,
            )| {
                EngineConfig {
                    host_slots,
                    max_snapshots: MAX_SNAPSHOTS,
                    max_user_snapshots: Some(MAX_USER_SNAPSHOTS),
                    run_ahead,
                    page_size,
                    n_pages,
                    max_batch_tokens,
                    prefill_chunk,
                    max_batch_seqs,
                    max_context,
                    end_tokens: vec![END],
                    driver_timeout_ns: DRIVER_TIMEOUT_NS,
                    ..config()
                }
            },
        )
}

/// What a program may know of a context.
#[derive(Clone, Debug, Default)]
struct Model {
    process: usize,
    tokens: Vec<u32>,
    pending: Option<u32>,
    buffer: Vec<u32>,
    n_committed: usize,
    path: u64,
    n_forks: u64,
    generator: Option<GeneratorId>,
    request: Option<RequestId>,
}

impl Model {
    fn all(&self) -> Vec<u32> {
        self.tokens
            .iter()
            .chain(&self.pending)
            .chain(&self.buffer)
            .copied()
            .collect()
    }

    fn settle(&mut self, page_size: u32) {
        self.n_committed = self
            .n_committed
            .max(self.tokens.len() / page_size as usize * page_size as usize);
    }
}

#[derive(Clone, Debug)]
struct GeneratorModel {
    params: Params,
    seed: Option<u64>,
    max_tokens: Option<u32>,
    stop: Vec<u32>,
    n_accepted: u32,
    finish: Option<FinishReason>,
    counted: bool,
    n_steps: u32,
    process: usize,
}

/// What a request must answer.
#[derive(Clone, Debug)]
struct Expected {
    context: ContextId,
    /// None: a flush.
    generation: Option<Generation>,
    n_buffered: usize,
}

#[derive(Clone, Debug)]
struct Generation {
    generator: GeneratorId,
    tokens: Vec<u32>,
    finish: Option<FinishReason>,
    seed: u64,
    origin: (u64, Vec<u32>),
    run: bool,
    void: bool,
}

struct Simulation {
    world: World,
    config: EngineConfig,
    contexts: Vec<(ContextId, Model)>,
    generators: HashMap<GeneratorId, GeneratorModel>,
    expected: Vec<(RequestId, Expected)>,
    processes: Vec<Process>,
    n_launched: u64,
    /// By user, then by name.
    snapshots: BTreeMap<(u64, String), Kept>,
    n_saved: u64,
    injected: bool,
}

/// A snapshot, with what was put beside it.
#[derive(Clone, Debug)]
struct Kept {
    model: Model,
    beside: u64,
}

/// What the seeds of a process depend on.
#[derive(Clone, Debug, Default)]
struct Process {
    id: u64,
    user: u64,
    launch_seed: u64,
    counts: HashMap<(u64, Vec<u32>), u64>,
    opened: HashMap<u64, u64>,
}

type Outcome = Result<(), TestCaseError>;

impl Simulation {
    fn new(config: EngineConfig) -> Self {
        let mut simulation = Self {
            world: World::new(config.clone()),
            config,
            contexts: Vec::new(),
            generators: HashMap::new(),
            expected: Vec::new(),
            processes: vec![Process::default(); PROCESSES.len()],
            n_launched: 0,
            snapshots: BTreeMap::new(),
            n_saved: 0,
            injected: false,
        };
        for process in 0..PROCESSES.len() {
            simulation.launch(process);
        }
        simulation
    }

    fn launch(&mut self, process: usize) {
        self.n_launched += 1;
        let (user, launch_seed) = PROCESSES[process];
        self.processes[process] = Process {
            id: self.n_launched,
            user,
            launch_seed,
            ..Process::default()
        };
        self.world
            .engine
            .new_process(ProcessId(self.n_launched), UserId(user), launch_seed)
            .unwrap();
    }

    fn end_process(&mut self, process: usize) {
        let ended = |model: &Model| model.process == process;
        for (_, model) in self.contexts.iter().filter(|(_, model)| ended(model)) {
            self.expected.retain(|(id, _)| Some(*id) != model.request);
            if let Some(generator) = model.generator {
                self.generators.remove(&generator);
            }
        }
        self.contexts.retain(|(_, model)| !ended(model));
        self.generators
            .retain(|_, generator| generator.process != process);
        self.world
            .engine
            .end_process(ProcessId(self.processes[process].id));
    }

    /// The user and a name that he may have given, or that may have been made up for him.
    fn name(&self, process: usize, name: usize) -> (u64, String) {
        let user = self.processes[process].user;
        let made = || self.snapshots.keys().filter(|(owner, _)| *owner == user);
        let name = NAMES.get(name).copied().map(str::to_owned);
        let made = || made().next_back().map(|(_, name)| name.clone());
        (
            user,
            name.or_else(made).unwrap_or_else(|| "absent".to_owned()),
        )
    }

    /// Saves a context under a name, or under one that is made up.
    fn save(&mut self, at: usize, name: Option<&str>) -> Outcome {
        let page_size = self.config.page_size;
        let user = self.processes[self.contexts[at].1.process].user;
        let of_user = |(owner, _): &&(u64, String)| *owner == user;
        let is_new = name.is_none_or(|name| !self.snapshots.contains_key(&(user, name.to_owned())));
        let is_full = is_new
            && (self.snapshots.len() >= MAX_SNAPSHOTS as usize
                || self.snapshots.keys().filter(of_user).count() >= MAX_USER_SNAPSHOTS as usize);
        self.n_saved += 1;
        let (context, model) = &mut self.contexts[at];
        let beside = Arc::new(self.n_saved);
        let saved = match name {
            Some(name) => self
                .world
                .engine
                .save(*context, name, beside)
                .map(|()| name.to_owned()),
            None => self.world.engine.snapshot(*context, beside),
        };
        if model.request.is_some() || is_full {
            let busy = model.request.is_some();
            let code = saved.unwrap_err().code;
            prop_assert!(
                code == ErrorCode::ContextBusy && busy
                    || code == ErrorCode::LimitSnapshots && is_full
            );
            return Ok(());
        }
        model.settle(page_size);
        model.n_forks += 1;
        let kept = Kept {
            model: Model {
                path: fold(model.path, model.n_forks),
                n_forks: 0,
                generator: None,
                ..model.clone()
            },
            beside: self.n_saved,
        };
        let older = self.snapshots.insert((user, saved.unwrap()), kept);
        prop_assert_eq!(older.is_none(), is_new);
        Ok(())
    }

    /// Makes a context of a snapshot.
    fn open(&mut self, process: usize, name: usize, take: bool) -> Outcome {
        let key = self.name(process, name);
        let id = ProcessId(self.processes[process].id);
        let engine = &mut self.world.engine;
        let opened = if take {
            engine.take_snapshot(id, &key.1)
        } else {
            engine.open_snapshot(id, &key.1)
        };
        let Some(Kept {
            model: kept,
            beside: written,
        }) = self.snapshots.get(&key).cloned()
        else {
            prop_assert_eq!(opened.unwrap_err().code, ErrorCode::SnapshotMissing);
            return Ok(());
        };
        let (context, beside) = opened.unwrap();
        prop_assert_eq!(beside.downcast_ref::<u64>(), Some(&written));
        if take {
            self.snapshots.remove(&key);
        }
        let n_opened = self.processes[process].opened.entry(kept.path).or_insert(0);
        *n_opened += 1;
        let model = Model {
            process,
            path: fold(kept.path, *n_opened),
            ..kept
        };
        self.contexts.push((context, model));
        Ok(())
    }

    fn pick(&self, which: usize) -> Option<usize> {
        (!self.contexts.is_empty()).then(|| which % self.contexts.len())
    }

    fn apply(&mut self, op: Op) -> Outcome {
        let page_size = self.config.page_size;
        match op {
            Op::NewContext(process) => {
                let id = ProcessId(self.processes[process].id);
                let context = self.world.engine.new_context(id).unwrap();
                let model = Model {
                    process,
                    ..Model::default()
                };
                self.contexts.push((context, model));
            }
            Op::Save(which, name) => {
                if let Some(at) = self.pick(which) {
                    self.save(at, Some(NAMES[name]))?;
                }
            }
            Op::Snapshot(which) => {
                if let Some(at) = self.pick(which) {
                    self.save(at, None)?;
                }
            }
            Op::Open {
                process,
                name,
                take,
            } => {
                if self.contexts.len() < 6 {
                    self.open(process, name, take)?;
                }
            }
            Op::Delete(process, name) => {
                let key = self.name(process, name);
                let id = ProcessId(self.processes[process].id);
                let deleted = self.world.engine.delete_snapshot(id, &key.1);
                if self.snapshots.remove(&key).is_some() {
                    deleted.unwrap();
                } else {
                    prop_assert_eq!(deleted.unwrap_err().code, ErrorCode::SnapshotMissing);
                }
            }
            Op::Suspend(which) => {
                let Some(at) = self.pick(which) else {
                    return Ok(());
                };
                let (context, model) = &self.contexts[at];
                let suspended = self.world.engine.suspend(*context);
                if model.request.is_some() {
                    prop_assert_eq!(suspended.unwrap_err().code, ErrorCode::ContextBusy);
                } else {
                    suspended.unwrap();
                }
            }
            Op::Relaunch(process) => {
                if process < PROCESSES.len() {
                    self.end_process(process);
                    self.launch(process);
                }
            }
            Op::Append(which, tokens) => {
                let Some(at) = self.pick(which) else {
                    return Ok(());
                };
                self.append(at, &tokens)?;
            }
            Op::Fork(which) => {
                let Some(at) = self.pick(which).filter(|_| self.contexts.len() < 6) else {
                    return Ok(());
                };
                let (context, model) = &mut self.contexts[at];
                let forked = self.world.engine.fork(*context);
                if model.request.is_some() {
                    prop_assert_eq!(forked.unwrap_err().code, ErrorCode::ContextBusy);
                    return Ok(());
                }
                model.settle(page_size);
                model.n_forks += 1;
                let child = Model {
                    path: fold(model.path, model.n_forks),
                    n_forks: 0,
                    generator: None,
                    ..model.clone()
                };
                self.contexts.push((forked.unwrap(), child));
            }
            Op::Release(which) => {
                let Some(at) = self.pick(which) else {
                    return Ok(());
                };
                let (context, model) = self.contexts.remove(at);
                self.world.engine.release(context);
                self.world.engine.release(context);
                if let Some(request) = model.request {
                    self.expected.retain(|(id, _)| *id != request);
                    let answer = self
                        .world
                        .engine
                        .take(request)
                        .expect("a released context answers at once");
                    prop_assert_eq!(answer.unwrap_err().code, ErrorCode::ContextReleased);
                }
                prop_assert_eq!(
                    self.world.engine.seq_len(context).unwrap_err().code,
                    ErrorCode::ContextReleased
                );
            }
            Op::Truncate(which, n) => {
                let Some(at) = self.pick(which) else {
                    return Ok(());
                };
                self.truncate(at, n)?;
            }
            Op::Flush(which) => {
                let Some(at) = self.pick(which) else {
                    return Ok(());
                };
                self.flush(at)?;
            }
            Op::Generate {
                context,
                method,
                seed,
                max_tokens,
                stop,
            } => {
                let Some(at) = self.pick(context) else {
                    return Ok(());
                };
                let made = GeneratorOptions {
                    seed,
                    max_tokens,
                    stop,
                    ..options(method)
                };
                self.generate(at, made)?;
            }
            Op::Step(which) => {
                let Some(at) = self.pick(which) else {
                    return Ok(());
                };
                self.submit_generation(at, false)?;
            }
            Op::Run(which) => {
                let Some(at) = self.pick(which) else {
                    return Ok(());
                };
                self.submit_generation(at, true)?;
            }
            Op::Take(which) => {
                if !self.expected.is_empty() {
                    self.take(which % self.expected.len())?;
                }
            }
            Op::Cancel(which) => {
                if !self.expected.is_empty() {
                    let (request, expected) = self.expected.remove(which % self.expected.len());
                    self.world.engine.cancel(request);
                    self.model(expected.context).request = None;
                }
            }
            Op::Plan if self.world.running.len() < 2 => {
                let stuck = self.world.engine.stats().n_stuck > 0;
                prop_assert!(
                    !(self.world.plan() && stuck),
                    "a driver that hangs got a batch"
                );
            }
            Op::Hang(ns) => {
                let n_abandoned = self.world.hang(ns);
                self.injected |= n_abandoned > 0;
            }
            Op::Finish(which) if !self.world.running.is_empty() => {
                let (batch, logits) = self.world.compute(which % self.world.running.len());
                self.world
                    .answer(batch.id, Ok(batch.jobs.sample(&logits, &[])));
            }
            Op::Settle => {
                self.world.pump();
                self.take_all()?;
            }
            Op::FailBatch { which, computed } if !self.world.running.is_empty() => {
                self.injected = true;
                let which = which % self.world.running.len();
                let batch = if computed {
                    self.world.compute(which).0
                } else {
                    self.world.running.remove(which)
                };
                self.world.answer(
                    batch.id,
                    Err(DriverFailure {
                        message: "injected".to_owned(),
                    }),
                );
            }
            Op::SpoilRow(row) if !self.world.running.is_empty() => {
                self.injected = true;
                let (batch, mut logits) = self.world.compute(0);
                if let Some(logit) = logits.get_mut(row * V as usize + 1) {
                    *logit = f32::NAN;
                }
                self.world
                    .answer(batch.id, Ok(batch.jobs.sample(&logits, &[])));
            }
            Op::FailSequence(sequence) if !self.world.running.is_empty() => {
                self.injected = true;
                let (batch, logits) = self.world.compute(0);
                let failures = [(sequence as u32, "injected".to_owned())];
                self.world
                    .answer(batch.id, Ok(batch.jobs.sample(&logits, &failures)));
            }
            Op::Plan
            | Op::Finish(_)
            | Op::FailBatch { .. }
            | Op::SpoilRow(_)
            | Op::FailSequence(_) => {}
        }
        self.world.engine.check().map_err(TestCaseError::fail)?;
        self.compare()
    }

    fn model(&mut self, context: ContextId) -> &mut Model {
        &mut self
            .contexts
            .iter_mut()
            .find(|(id, _)| *id == context)
            .expect("the context lives")
            .1
    }

    fn append(&mut self, at: usize, tokens: &[u32]) -> Outcome {
        let (context, model) = &self.contexts[at];
        let (context, length) = (*context, model.all().len() as u32);
        let generation = model.request.and_then(|request| {
            self.expected
                .iter()
                .find(|(id, _)| *id == request)
                .and_then(|(_, expected)| expected.generation.clone())
        });
        let appended = self.world.engine.append(context, tokens);
        let reserved = u32::from(generation.is_some());
        if generation.is_some_and(|generation| generation.run) {
            prop_assert_eq!(appended.unwrap_err().code, ErrorCode::ContextBusy);
        } else if length + reserved + tokens.len() as u32 > self.config.max_context {
            prop_assert!(tokens.is_empty() || appended.unwrap_err().code == ErrorCode::ContextFull);
        } else {
            appended.unwrap();
            let page_size = self.config.page_size;
            let model = self.model(context);
            model.settle(page_size);
            model.buffer.extend_from_slice(tokens);
        }
        Ok(())
    }

    fn truncate(&mut self, at: usize, n: u32) -> Outcome {
        let page_size = self.config.page_size;
        let (context, model) = &mut self.contexts[at];
        let truncated = self.world.engine.truncate(*context, n);
        if model.request.is_some() {
            prop_assert_eq!(truncated.unwrap_err().code, ErrorCode::ContextBusy);
            return Ok(());
        }
        model.settle(page_size);
        let most = model.tokens.len() + usize::from(model.pending.is_some()) - model.n_committed;
        if n as usize > most {
            prop_assert_eq!(truncated.unwrap_err().code, ErrorCode::TruncateRange);
            return Ok(());
        }
        truncated.unwrap();
        let mut left = n as usize;
        if left > 0 && model.pending.take().is_some() {
            left -= 1;
        }
        model.tokens.truncate(model.tokens.len() - left);
        model.generator = None;
        Ok(())
    }

    fn flush(&mut self, at: usize) -> Outcome {
        let page_size = self.config.page_size;
        let (context, model) = &mut self.contexts[at];
        let submitted = self.world.submit(Submission::Flush(*context));
        if model.request.is_some() {
            prop_assert_eq!(submitted.unwrap_err().code, ErrorCode::ContextBusy);
            return Ok(());
        }
        if model.all().len().div_ceil(page_size as usize) > self.config.n_pages as usize {
            prop_assert_eq!(submitted.unwrap_err().code, ErrorCode::OutOfPages);
            return Ok(());
        }
        let request = submitted.unwrap();
        model.settle(page_size);
        model.request = Some(request);
        self.expected.push((
            request,
            Expected {
                context: *context,
                generation: None,
                n_buffered: model.buffer.len(),
            },
        ));
        Ok(())
    }

    fn generate(&mut self, at: usize, made: GeneratorOptions) -> Outcome {
        let page_size = self.config.page_size;
        let (context, model) = &mut self.contexts[at];
        let generator = self.world.engine.new_generator(*context, made.clone());
        if model.request.is_some() {
            prop_assert_eq!(generator.unwrap_err().code, ErrorCode::ContextBusy);
            return Ok(());
        }
        if model.all().is_empty() {
            prop_assert_eq!(generator.unwrap_err().code, ErrorCode::EmptyContext);
            return Ok(());
        }
        let generator = generator.unwrap();
        model.settle(page_size);
        if let Some(older) = model.generator.replace(generator)
            && self.generators[&older].finish.is_none()
            && self.generators[&older].max_tokens != Some(0)
        {
            prop_assert_eq!(
                self.world.engine.next_step(older).unwrap_err().code,
                ErrorCode::GeneratorRetired
            );
            prop_assert_eq!(
                self.world.engine.finish_reason(older).unwrap(),
                Some(FinishReason::Closed)
            );
        }
        let state = GeneratorModel {
            params: made.sampler.method.params().unwrap(),
            seed: made.seed,
            max_tokens: made.max_tokens,
            stop: made.stop,
            n_accepted: 0,
            finish: None,
            counted: false,
            n_steps: 0,
            process: model.process,
        };
        self.generators.insert(generator, state);
        Ok(())
    }

    /// What a generation must draw from here.
    fn predict(&self, id: GeneratorId, model: &Model, run: bool) -> Generation {
        let generator = &self.generators[&id];
        let mut sequence = model.all();
        let origin = (model.path, sequence.clone());
        let process = &self.processes[model.process];
        let before = process.counts.get(&origin).copied().unwrap_or(0);
        let seed = generator
            .seed
            .unwrap_or_else(|| derived_seed(process.launch_seed, model.path, &sequence, before));
        let (cap, limit) = (
            generator.max_tokens.unwrap_or(u32::MAX),
            self.config.max_context as usize,
        );
        let mut tokens = Vec::new();
        let full = |n_drawn: usize, length: usize| {
            generator.n_accepted as usize + n_drawn >= cap as usize || length >= limit
        };
        let mut finish = generator
            .finish
            .or(full(0, sequence.len()).then_some(FinishReason::Length));
        let void = finish.is_some();
        while finish.is_none() {
            let token = next_token(MODEL, V, &sequence, &generator.params, seed);
            sequence.push(token);
            tokens.push(token);
            if token == END || generator.stop.contains(&token) {
                finish = Some(FinishReason::Stop);
            } else if full(tokens.len(), sequence.len()) {
                finish = Some(FinishReason::Length);
            } else if !run || tokens.len() > 200 {
                break;
            }
        }
        Generation {
            generator: id,
            tokens,
            finish,
            seed,
            origin,
            run,
            void,
        }
    }

    fn submit_generation(&mut self, at: usize, run: bool) -> Outcome {
        let (context, model) = self.contexts[at].clone();
        let Some(id) = model.generator else {
            return Ok(());
        };
        let mut generation = if model.request.is_none() {
            Some(self.predict(id, &model, run))
        } else {
            None
        };
        // Runs without an end would go on until the context is full.
        if generation
            .as_ref()
            .is_some_and(|generation| run && generation.finish.is_none())
        {
            return Ok(());
        }
        if !run {
            match self.world.engine.next_step(id) {
                // At its end nothing is opened; a step that failed is opened again even there.
                Ok(None) => {
                    prop_assert!(generation.is_none_or(|generation| generation.void));
                    // The program saw the end, and it stays.
                    let seen = self.generators.entry(id);
                    seen.and_modify(|it| it.finish = it.finish.or(Some(FinishReason::Length)));
                    return Ok(());
                }
                Ok(number) => prop_assert_eq!(number, Some(self.generators[&id].n_steps)),
                Err(error) => {
                    prop_assert_eq!(error.code, ErrorCode::ContextBusy);
                    prop_assert!(model.request.is_some());
                    return Ok(());
                }
            }
        }
        let submission = if run {
            Submission::Run(id)
        } else {
            Submission::Step(id)
        };
        let submitted = self.world.submit(submission);
        if model.request.is_some() {
            prop_assert_eq!(submitted.unwrap_err().code, ErrorCode::ContextBusy);
            return Ok(());
        }
        let generation = generation.take().unwrap();
        let n_pages = model.all().len().div_ceil(self.config.page_size as usize);
        if !generation.void && n_pages > self.config.n_pages as usize {
            prop_assert_eq!(submitted.unwrap_err().code, ErrorCode::OutOfPages);
            return Ok(());
        }
        let request = submitted.unwrap();
        let page_size = self.config.page_size;
        let model = self.model(context);
        model.settle(page_size);
        model.request = Some(request);
        let n_buffered = model.buffer.len();
        self.expected.push((
            request,
            Expected {
                context,
                generation: Some(generation),
                n_buffered,
            },
        ));
        Ok(())
    }

    /// Takes an answer, if it is there, and compares it with what was predicted.
    fn take(&mut self, which: usize) -> Outcome {
        let (request, expected) = self.expected[which].clone();
        let Some(answer) = self.world.engine.take(request) else {
            return Ok(());
        };
        self.expected.remove(which);
        let page_size = self.config.page_size;
        let tiny = self.config.n_pages < 400;
        let injected = self.injected;
        let model = self.model(expected.context);
        model.request = None;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                let possible = match error.code {
                    ErrorCode::OutOfPages => tiny,
                    ErrorCode::DriverFailed | ErrorCode::BadLogits => injected,
                    _ => false,
                };
                prop_assert!(possible, "{error}");
                return Ok(());
            }
        };
        let Some(generation) = expected.generation else {
            prop_assert_eq!(answer, Answer::Flushed);
            model.tokens.extend(model.pending.take());
            model
                .tokens
                .extend(model.buffer.drain(..expected.n_buffered));
            model.settle(page_size);
            return Ok(());
        };
        let output = output(answer);
        prop_assert_eq!(&output.tokens, &generation.tokens);
        prop_assert_eq!(output.finish, generation.finish);
        if !generation.void {
            model.tokens.extend(model.pending.take());
            model
                .tokens
                .extend(model.buffer.drain(..expected.n_buffered));
            model.tokens.extend(&generation.tokens);
            model.pending = model.tokens.pop();
        }
        let generator = self.generators.get_mut(&generation.generator).unwrap();
        generator.n_accepted += generation.tokens.len() as u32;
        generator.n_steps += generation.tokens.len() as u32;
        generator.finish = generator.finish.or(generation.finish);
        if !generator.counted && !generation.void {
            generator.counted = true;
            generator.seed = Some(generation.seed);
            let counts = &mut self.processes[generator.process].counts;
            *counts.entry(generation.origin).or_insert(0) += 1;
        }
        Ok(())
    }

    /// Takes every answer; all must be there.
    fn take_all(&mut self) -> Outcome {
        while !self.expected.is_empty() {
            let n = self.expected.len();
            self.take(0)?;
            prop_assert_eq!(self.expected.len(), n - 1, "a request was never answered");
        }
        Ok(())
    }

    /// Everything that a program can read.
    fn compare(&self) -> Outcome {
        for (context, model) in &self.contexts {
            let engine = &self.world.engine;
            let all = model.all();
            prop_assert_eq!(engine.buffer(*context).unwrap(), model.buffer.clone());
            prop_assert_eq!(engine.length(*context).unwrap() as usize, all.len());
            prop_assert_eq!(
                engine.seq_len(*context).unwrap() as usize,
                all.len() - model.buffer.len()
            );
            prop_assert_eq!(engine.tail(*context, 5000).unwrap(), all.clone());
            prop_assert_eq!(
                engine.tail(*context, 2).unwrap(),
                all[all.len().saturating_sub(2)..].to_vec()
            );
        }
        for process in &self.processes {
            let names = self.world.engine.snapshots(ProcessId(process.id)).unwrap();
            let kept = self.snapshots.keys();
            let kept: Vec<&String> = kept
                .filter(|(user, _)| *user == process.user)
                .map(|(_, name)| name)
                .collect();
            prop_assert_eq!(names.iter().collect::<Vec<_>>(), kept);
        }
        for (id, generator) in &self.generators {
            prop_assert_eq!(
                self.world.engine.tokens_generated(*id).unwrap(),
                generator.n_accepted
            );
        }
        Ok(())
    }

    /// Everything comes to rest, is answered and released, and leaves nothing behind.
    fn end(mut self) -> Outcome {
        self.world.pump();
        self.take_all()?;
        self.compare()?;
        for (context, _) in std::mem::take(&mut self.contexts) {
            self.world.engine.release(context);
        }
        let stats = self.world.engine.stats();
        prop_assert_eq!(stats.n_snapshots as usize, self.snapshots.len());
        prop_assert_eq!(
            (
                stats.n_pages_used,
                stats.n_contexts,
                stats.n_requests,
                stats.n_in_flight
            ),
            (0, 0, 0, 0)
        );
        for ((user, name), _) in std::mem::take(&mut self.snapshots) {
            let process = self.processes.iter().find(|process| process.user == user);
            let process = ProcessId(process.unwrap().id);
            self.world.engine.delete_snapshot(process, &name).unwrap();
        }
        for process in &self.processes {
            self.world.engine.end_process(ProcessId(process.id));
        }
        prop_assert_eq!(self.world.engine.stats().n_generators, 0);
        self.world.engine.check().map_err(TestCaseError::fail)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 4000, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn programs_get_what_the_oracle_says(config in configs(), ops in prop::collection::vec(op(), 1..200)) {
        let mut simulation = Simulation::new(config);
        for op in ops {
            simulation.apply(op)?;
        }
        simulation.end()?;
    }
}
