//! Runs what happens on an engine and on the model of it, and compares.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use pie_core::batch::ArenaView;
use pie_core::batch::layout::Field;
use pie_core::sampling::Key;
use pie_core::{
    Adapter, Answer, ContextId, DriverFailure, EngineConfig, Error, ErrorCode, FinishReason,
    GeneratorId, GeneratorOptions, ProcessId, RequestId, Submission, UserId,
};
use proptest::prelude::*;

use super::commands::{Again, Commanded, Loaded};
use super::model::{Awaited, Expected, Generation, GeneratorModel, Kept, Model, Process, What};
use super::ops::{self, END, MAX_SNAPSHOTS, MAX_USER_SNAPSHOTS, NAMES, Op, PROCESSES, V};
use super::support::sampling::drawn;
use super::support::world::{MODEL, World, options, output};
use super::support::{OPENED, SAVED, derived_seed, fold, row_of, write, write_plain};

pub struct Simulation {
    pub world: World,
    pub config: EngineConfig,
    pub contexts: Vec<(ContextId, Model)>,
    generators: HashMap<GeneratorId, GeneratorModel>,
    pub expected: Vec<(RequestId, Expected)>,
    pub processes: Vec<Process>,
    n_launched: u64,
    /// By user, then by name.
    snapshots: BTreeMap<(u64, String), Kept>,
    n_saved: u64,
    /// Requests that a batch served which went wrong, and that may have failed with it.
    pub failed: HashSet<RequestId>,
    /// Rows whose token masks were not given.
    pub awaited: Vec<Awaited>,
    /// Requests whose masks may have come too late.
    pub tired: HashSet<RequestId>,
    /// Commands whose answers were not taken, in the order in which they were entered.
    pub commands: Vec<Commanded>,
    pub loaded: Loaded,
    pub again: Again,
    /// The command that the driver was given last.
    pub n_given: u64,
}

/// How a generator goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Step,
    /// A step that draws nothing.
    Cleared,
    Run,
}

/// Contexts that live at once.
const MAX_CONTEXTS: usize = 6;

pub type Outcome = Result<(), TestCaseError>;

impl Simulation {
    pub fn new(config: EngineConfig) -> Self {
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
            failed: HashSet::new(),
            awaited: Vec::new(),
            tired: HashSet::new(),
            commands: Vec::new(),
            loaded: Loaded::new(),
            again: Again::default(),
            n_given: 0,
        };
        simulation.world.holds_draws = true;
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
        self.end_commands(process);
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
        let page_size = self.config.driver.page_size;
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
                path: fold(fold(model.path, SAVED), model.n_forks),
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
            path: fold(fold(kept.path, OPENED), *n_opened),
            ..kept
        };
        self.contexts.push((context, model));
        Ok(())
    }

    fn check(&self) -> Outcome {
        self.world.engine.verify().map_err(TestCaseError::fail)
    }

    fn pick(&self, which: usize) -> Option<usize> {
        (!self.contexts.is_empty()).then(|| which % self.contexts.len())
    }

    pub fn apply(&mut self, op: Op) -> Outcome {
        let page_size = self.config.driver.page_size;
        match op {
            Op::NewContext(process) if self.contexts.len() < MAX_CONTEXTS => {
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
                if self.contexts.len() < MAX_CONTEXTS {
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
            Op::Bid(which, bid) => {
                if let Some((context, model)) = self.pick(which).map(|at| &self.contexts[at]) {
                    let offered = self.world.engine.set_bid(*context, bid);
                    prop_assert_eq!(offered.is_ok(), model.request.is_none());
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
                let Some(at) = self
                    .pick(which)
                    .filter(|_| self.contexts.len() < MAX_CONTEXTS)
                else {
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
                adapter,
            } => {
                let Some(at) = self.pick(context) else {
                    return Ok(());
                };
                let made = GeneratorOptions {
                    seed,
                    max_tokens,
                    stop,
                    adapter,
                    ..options(method)
                };
                self.generate(at, made)?;
            }
            Op::Step(which) => {
                let Some(at) = self.pick(which) else {
                    return Ok(());
                };
                self.submit_generation(at, How::Step)?;
            }
            Op::ClearedStep(which) => {
                if let Some(at) = self.pick(which) {
                    self.submit_generation(at, How::Cleared)?;
                }
            }
            Op::Accept(which, n_kept, tokens) => {
                if let Some(at) = self.pick(which) {
                    self.accept(at, n_kept, &tokens)?;
                }
            }
            Op::Run(which) => {
                let Some(at) = self.pick(which) else {
                    return Ok(());
                };
                self.submit_generation(at, How::Run)?;
            }
            Op::Forward(which, op) => {
                if let Some(at) = self.pick(which) {
                    self.forward(at, &op)?;
                }
            }
            Op::Reserve(which, n) => {
                if let Some(at) = self.pick(which) {
                    self.reserve(at, n)?;
                }
            }
            Op::Commit(which, n) => {
                if let Some(at) = self.pick(which) {
                    self.commit(at, n)?;
                }
            }
            Op::ReleasePages(which, n) => {
                if let Some(at) = self.pick(which) {
                    self.release_pages(at, n)?;
                }
            }
            Op::TruncateWorking(which, n) => {
                if let Some(at) = self.pick(which) {
                    self.truncate_working(at, n)?;
                }
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
            Op::Overtake(which) => {
                self.apply(Op::NextWork)?;
                self.apply(Op::Cancel(which))?;
                self.apply(Op::NextWork)?;
                self.apply(Op::Finish(1))?;
            }
            Op::NextWork if self.world.running.len() < 2 => {
                let stuck = self.world.engine.stats().n_stuck > 0;
                prop_assert!(
                    !(self.world.plan() && stuck),
                    "a driver that hangs got a batch"
                );
                self.note_command()?;
            }
            Op::LateMasks(which, late) => {
                let generator = self
                    .pick(which)
                    .and_then(|at| self.contexts[at].1.generator);
                if let Some(id) = generator {
                    let set = self.world.engine.set_late_masks(id, late);
                    let busy = self
                        .contexts
                        .iter()
                        .any(|(_, model)| model.generator == Some(id) && model.request.is_some());
                    // A forward pass or a flush does not keep the generator from being changed.
                    prop_assert!(set.is_ok() || busy);
                    if set.is_ok() {
                        self.generators.entry(id).and_modify(|it| it.late = late);
                    }
                }
            }
            Op::GiveMask(which, refused) => self.give_mask(which, refused)?,
            Op::Command(process, command) => self.command(process, command)?,
            Op::FinishCommand => self.finish_command(),
            Op::CancelCommand(which) => self.cancel_command(which),
            Op::DrawKept => self.world.draw_held(),
            Op::Tire => self.tire()?,
            Op::Hang(ns) => {
                let running: Vec<_> = self
                    .world
                    .running
                    .iter()
                    .map(|it| it.arena.clone())
                    .collect();
                self.tires();
                self.commands_may_fail();
                if self.world.hang(ns) > 0 {
                    running.iter().for_each(|arena| self.may_fail(arena));
                }
            }
            Op::Lose { refuses } => self.lose(refuses)?,
            Op::Finish(which) if !self.world.running.is_empty() => {
                let (batch, logits) = self.world.compute(which % self.world.running.len());
                self.world.conclude(&batch, &logits, &[]);
            }
            Op::Settle => self.take_all()?,
            Op::FailBatch { which, computed } if !self.world.running.is_empty() => {
                let which = which % self.world.running.len();
                let arena = self.world.running[which].arena.clone();
                self.may_fail(&arena);
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
                let arena = self.world.running[0].arena.clone();
                self.may_fail(&arena);
                let (batch, mut logits) = self.world.compute(0);
                if let Some(logit) = logits.get_mut(row * V as usize + 1) {
                    *logit = f32::NAN;
                }
                self.world.conclude(&batch, &logits, &[]);
            }
            Op::FailSequence(sequence) if !self.world.running.is_empty() => {
                let arena = self.world.running[0].arena.clone();
                self.may_fail(&arena);
                let (batch, logits) = self.world.compute(0);
                let failures = [(sequence as u32, "injected".to_owned())];
                self.world.conclude(&batch, &logits, &failures);
            }
            Op::NewContext(_)
            | Op::NextWork
            | Op::Finish(_)
            | Op::FailBatch { .. }
            | Op::SpoilRow(_)
            | Op::FailSequence(_) => {}
        }
        self.check()?;
        self.compare()
    }

    /// Runs until nothing can run.
    fn pump(&mut self) -> Outcome {
        loop {
            self.finish_command();
            self.world.pump_batches();
            self.note_command()?;
            if self.world.command.is_none() {
                return Ok(());
            }
        }
    }

    /// Runs and draws until nothing can go on without masks.
    pub fn rest(&mut self) -> Outcome {
        loop {
            self.pump()?;
            if self.world.draws.is_empty() {
                return Ok(());
            }
            self.world.draw_held();
        }
    }

    /// The device goes: what runs fails, what waits goes on, unless it is refused, and so nothing else.
    fn lose(&mut self, refuses: bool) -> Outcome {
        let mut running = std::mem::take(&mut self.world.running);
        for batch in running.drain(..) {
            self.may_fail(&batch.arena);
        }
        let given = self.world.command.clone();
        self.lose_adapters(given.as_ref());
        self.world.lose();
        self.lose_commands(refuses);
        let stats = self.world.engine.stats();
        let held = stats.n_pages_used + stats.n_pages_cached + stats.n_pages_host;
        prop_assert_eq!((held, stats.n_in_flight, stats.n_stuck), (0, 0, 0));
        if refuses {
            let all = self.expected.iter().map(|(request, _)| *request);
            self.failed.extend(all);
            let reason = Error::new(ErrorCode::ModelUnavailable, "it ends too often");
            self.world.engine.refuse(Some(reason));
            self.take_all()?;
            self.world.engine.refuse(None);
        }
        Ok(())
    }

    /// A batch goes wrong: whatever it serves may fail.
    fn may_fail(&mut self, arena: &[u32]) {
        let view = ArenaView::parse(arena).unwrap();
        for words in view.field(Field::SeqContext).chunks(2) {
            let context = ContextId(u64::from(words[0]) | u64::from(words[1]) << 32);
            let model = self.contexts.iter().find(|(id, _)| *id == context);
            self.failed
                .extend(model.and_then(|(_, model)| model.request));
        }
    }

    pub fn model(&mut self, context: ContextId) -> &mut Model {
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
        let under_way = model.request.and_then(|request| {
            let mut expected = self.expected.iter();
            expected
                .find(|(id, _)| *id == request)
                .map(|(_, it)| it.what.clone())
        });
        let appended = self.world.engine.append(context, tokens);
        let reserved = under_way.as_ref().map_or(0, What::n_to_come);
        if under_way.is_some_and(|what| what.is_run()) {
            prop_assert_eq!(appended.unwrap_err().code, ErrorCode::ContextBusy);
        } else if length + reserved + tokens.len() as u32 > self.config.driver.max_positions {
            prop_assert!(tokens.is_empty() || appended.unwrap_err().code == ErrorCode::ContextFull);
        } else {
            appended.unwrap();
            let page_size = self.config.driver.page_size;
            let model = self.model(context);
            model.settle(page_size);
            model.buffer.extend_from_slice(tokens);
        }
        Ok(())
    }

    fn truncate(&mut self, at: usize, n: u32) -> Outcome {
        let page_size = self.config.driver.page_size;
        let (context, model) = &mut self.contexts[at];
        let truncated = self.world.engine.truncate(*context, n);
        if model.request.is_some() {
            prop_assert_eq!(truncated.unwrap_err().code, ErrorCode::ContextBusy);
            return Ok(());
        }
        model.settle(page_size);
        let most = model.seq_len() - model.n_committed;
        if n as usize > most {
            prop_assert_eq!(truncated.unwrap_err().code, ErrorCode::TruncateRange);
            return Ok(());
        }
        truncated.unwrap();
        model.drop_tokens(n as usize);
        Ok(())
    }

    fn flush(&mut self, at: usize) -> Outcome {
        let page_size = self.config.driver.page_size;
        let (context, model) = &mut self.contexts[at];
        let submitted = self.world.submit(Submission::Flush(*context));
        if model.request.is_some() {
            prop_assert_eq!(submitted.unwrap_err().code, ErrorCode::ContextBusy);
            return Ok(());
        }
        if model.all().len().div_ceil(page_size as usize) > self.config.driver.n_pages as usize {
            prop_assert_eq!(submitted.unwrap_err().code, ErrorCode::OutOfPages);
            return Ok(());
        }
        let context = *context;
        self.entered(context, submitted.unwrap(), What::Flush);
        Ok(())
    }

    fn generate(&mut self, at: usize, made: GeneratorOptions) -> Outcome {
        let page_size = self.config.driver.page_size;
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
            adapter: made.adapter,
            n_accepted: 0,
            finish: None,
            counted: false,
            n_steps: 0,
            lacks_tokens: false,
            process: model.process,
            late: false,
        };
        self.generators.insert(generator, state);
        Ok(())
    }

    /// What a generation must draw from here.
    fn predict(&self, id: GeneratorId, model: &Model, how: How) -> Generation {
        let (run, is_cleared) = (how == How::Run, how == How::Cleared);
        let generator = &self.generators[&id];
        let mut sequence = model.all();
        let adapter = generator.adapter;
        let mut slots = model.written(&model.taken(), adapter);
        let mut read = slots.last().unwrap().clone();
        if model.taken().is_empty() {
            // It is read again, as it was written but for the adapter, and stays what it was.
            let before = &slots[..slots.len() - 1];
            read = write(before, read.token, read.position, read.seen, adapter);
        }
        let origin = (model.path, sequence.clone());
        let process = &self.processes[model.process];
        let before = process.counts.get(&origin).copied().unwrap_or(0);
        let seed = generator
            .seed
            .unwrap_or_else(|| derived_seed(process.launch_seed, model.path, &sequence, before));
        let (cap, limit) = (
            generator.max_tokens.unwrap_or(u32::MAX),
            self.config.driver.max_positions as usize,
        );
        let mut tokens = Vec::new();
        let full = |n_drawn: usize, length: usize| {
            generator.n_accepted as usize + n_drawn >= cap as usize || length >= limit
        };
        let mut finish = generator
            .finish
            .or(full(0, sequence.len()).then_some(FinishReason::Length));
        let void = finish.is_some();
        let mask = (generator.late && how == How::Step)
            .then(|| ops::late_mask(fold(seed, slots.len() as u64)));
        while finish.is_none() && !is_cleared {
            let key = Key {
                seed,
                position: slots.len() as u32,
                slot: 0,
                draw: 0,
            };
            let logits = row_of(MODEL, V, &read);
            let allowed = mask.as_deref().unwrap_or_default();
            let token = drawn(&logits, &generator.params, allowed, key).unwrap();
            read = write_plain(&slots, token, adapter);
            slots.push(read.clone());
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
            is_cleared: is_cleared && !void,
            mask: mask.filter(|_| !void),
        }
    }

    fn submit_generation(&mut self, at: usize, how: How) -> Outcome {
        let run = how == How::Run;
        let (context, model) = self.contexts[at].clone();
        let Some(id) = model.generator else {
            return Ok(());
        };
        let mut generation = if model.request.is_none() {
            Some(self.predict(id, &model, how))
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
                    self.contexts[at].1.provisional = None;
                    return Ok(());
                }
                Ok(number) => {
                    prop_assert_eq!(number, Some(self.generators[&id].n_steps));
                    self.contexts[at].1.provisional = None;
                }
                Err(error) if self.generators[&id].lacks_tokens => {
                    prop_assert_eq!(error.code, ErrorCode::StepPending);
                    return Ok(());
                }
                Err(error) => {
                    prop_assert_eq!(error.code, ErrorCode::ContextBusy);
                    prop_assert!(model.request.is_some());
                    return Ok(());
                }
            }
        }
        if how == How::Cleared {
            self.world.engine.clear_sampler(id).unwrap();
        }
        let submission = if run {
            Submission::Run(id)
        } else {
            Submission::Step(id)
        };
        let submitted = self.world.submit(submission);
        if run && self.generators[&id].lacks_tokens {
            prop_assert_eq!(submitted.unwrap_err().code, ErrorCode::StepPending);
            return Ok(());
        }
        if model.request.is_some() {
            prop_assert_eq!(submitted.unwrap_err().code, ErrorCode::ContextBusy);
            return Ok(());
        }
        let generation = generation.take().unwrap();
        if run && self.generators[&id].late {
            prop_assert_eq!(submitted.unwrap_err().code, ErrorCode::InvalidArgument);
            return Ok(());
        }
        let n_pages = model
            .all()
            .len()
            .div_ceil(self.config.driver.page_size as usize);
        if !generation.void && n_pages > self.config.driver.n_pages as usize {
            prop_assert_eq!(submitted.unwrap_err().code, ErrorCode::OutOfPages);
            return Ok(());
        }
        let request = submitted.unwrap();
        self.await_mask(request, 0, generation.mask.as_ref());
        self.entered(context, request, What::Generation(generation));
        Ok(())
    }

    /// Replaces what the last step accepted: the first `n_kept` tokens of it stay, and others follow.
    fn accept(&mut self, at: usize, n_kept: usize, tokens: &[u32]) -> Outcome {
        let (context, model) = self.contexts[at].clone();
        let Some(id) = model.generator else {
            return Ok(());
        };
        let seq_len = model.seq_len();
        let n_before = model.provisional.unwrap_or(0);
        let before = model.all()[seq_len - n_before..seq_len].to_vec();
        let mut said = before[..n_kept.min(n_before)].to_vec();
        said.extend(tokens);
        let accepted = self.world.engine.accept(id, &said);
        let Some(n_before) = model.provisional.filter(|_| model.request.is_none()) else {
            let code = accepted.unwrap_err().code;
            prop_assert!(
                code == ErrorCode::StepPending
                    || code == ErrorCode::ContextBusy && model.request.is_some()
            );
            return Ok(());
        };
        let generator = self.generators.get_mut(&id).unwrap();
        let n_others = generator.n_accepted as usize - n_before;
        let (mut kept, mut finish) = (Vec::new(), None);
        let (length, limit) = (
            model.all().len() - n_before,
            self.config.driver.max_positions,
        );
        for &token in &said {
            kept.push(token);
            let n = n_others + kept.len();
            if token == END || generator.stop.contains(&token) {
                finish = Some(FinishReason::Stop);
            } else if generator.max_tokens.is_some_and(|cap| n >= cap as usize)
                || length + kept.len() >= limit as usize
            {
                finish = Some(FinishReason::Length);
            }
            if finish.is_some() {
                break;
            }
        }
        prop_assert_eq!(&accepted.unwrap(), &kept);
        generator.n_accepted = (n_others + kept.len()) as u32;
        (generator.finish, generator.lacks_tokens) = (finish, false);
        // The newest token has no keys and values, whatever was computed.
        let n_computed = n_before - model.pending.len().min(n_before);
        let alike = before[..n_computed]
            .iter()
            .zip(&kept)
            .take_while(|(old, new)| old == new);
        let n_left = alike.count().min(kept.len().saturating_sub(1));
        let model = self.model(context);
        model
            .slots
            .truncate(model.slots.len() - (n_computed - n_left));
        model.n_final = model.n_final.min(model.slots.len());
        model.pending = kept.split_off(n_left);
        model.provisional = Some(n_left + model.pending.len());
        Ok(())
    }

    /// A request was entered, and takes what is buffered.
    pub fn entered(&mut self, context: ContextId, request: RequestId, what: What) {
        let page_size = self.config.driver.page_size;
        let model = self.model(context);
        model.settle(page_size);
        model.request = Some(request);
        let n_buffered = model.buffer.len();
        let expected = Expected {
            context,
            n_buffered,
            what,
        };
        self.expected.push((request, expected));
    }

    /// Takes an answer, if it is there, and compares it with what was predicted.
    pub fn take(&mut self, which: usize) -> Outcome {
        let (request, expected) = self.expected[which].clone();
        let Some(answer) = self.world.engine.take(request) else {
            return Ok(());
        };
        self.expected.remove(which);
        let (n_pages, page_size) = (
            self.config.driver.n_pages as usize,
            self.config.driver.page_size as usize,
        );
        let injected = self.failed.remove(&request);
        let tired = self.tired.remove(&request);
        let model = self.model(expected.context);
        model.request = None;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                let possible = match error.code {
                    // Only who goes on by itself can outgrow the pool; others are refused at once.
                    ErrorCode::OutOfPages => {
                        matches!(&expected.what, What::Generation(it) if it.run && (model.all().len() + it.tokens.len() - 1).div_ceil(page_size) > n_pages)
                    }
                    ErrorCode::DriverFailed
                    | ErrorCode::DriverLost
                    | ErrorCode::ModelUnavailable
                    | ErrorCode::BadLogits => injected,
                    ErrorCode::LateMask => tired,
                    _ => false,
                };
                prop_assert!(possible, "{error}");
                return Ok(());
            }
        };
        let generation = match expected.what.clone() {
            What::Generation(generation) => generation,
            What::Forward(forwarded) => return self.forwarded(&expected, *forwarded, answer),
            What::Flush => {
                prop_assert_eq!(answer, Answer::Flushed);
                // With nothing to compute there is no pass, and working pages stay what they are.
                let is_pending = !self.model(expected.context).pending.is_empty();
                if is_pending || expected.n_buffered > 0 {
                    self.compute(&expected, &[], Adapter::default());
                }
                let page_size = self.config.driver.page_size;
                self.model(expected.context).settle(page_size);
                return Ok(());
            }
        };
        let output = output(answer);
        prop_assert_eq!(&output.tokens, &generation.tokens);
        prop_assert_eq!(output.finish, generation.finish);
        if let Some((last, computed)) = generation.tokens.split_last().filter(|_| !generation.void)
        {
            let adapter = self.generators[&generation.generator].adapter;
            self.compute(&expected, computed, adapter);
            self.model(expected.context).pending = vec![*last];
        }
        if generation.is_cleared {
            let is_pending = !self.model(expected.context).pending.is_empty();
            if is_pending || expected.n_buffered > 0 {
                let adapter = self.generators[&generation.generator].adapter;
                self.compute(&expected, &[], adapter);
            }
        }
        if !generation.run && !generation.void {
            self.model(expected.context).provisional = Some(generation.tokens.len());
        }
        let generator = self.generators.get_mut(&generation.generator).unwrap();
        generator.n_accepted += generation.tokens.len() as u32;
        generator.n_steps += u32::from(!generation.void);
        generator.lacks_tokens = generation.is_cleared;
        generator.finish = generator.finish.or(generation.finish);
        if !generator.counted && !generation.void && !generation.is_cleared {
            generator.counted = true;
            generator.seed = Some(generation.seed);
            let counts = &mut self.processes[generator.process].counts;
            *counts.entry(generation.origin).or_insert(0) += 1;
        }
        Ok(())
    }

    /// What a pass took and drew was computed.
    fn compute(&mut self, expected: &Expected, drawn: &[u32], adapter: Adapter) {
        let model = self.model(expected.context);
        let mut tokens = model.pending.clone();
        tokens.extend(&model.buffer[..expected.n_buffered]);
        tokens.extend(drawn);
        let slots = model.written(&tokens, adapter);
        // Where nothing was pending or buffered, the last token was only read.
        model.take(slots, expected.n_buffered);
        model.n_final = model.slots.len();
    }

    /// Runs everything and takes every answer; all must be there as soon as their masks are, and no mask that is
    /// awaited keeps another request.
    fn take_all(&mut self) -> Outcome {
        self.rest()?;
        self.take_commands()?;
        prop_assert!(self.has_no_commands(), "a command was never given");
        self.forget_masks();
        let awaiting: HashSet<RequestId> = self.awaited.iter().map(|it| it.request).collect();
        let others = |(id, _): &(RequestId, Expected)| !awaiting.contains(id);
        while let Some(which) = self.expected.iter().position(others) {
            let n = self.expected.len();
            self.take(which)?;
            prop_assert_eq!(self.expected.len(), n - 1, "a request was never answered");
        }
        while !self.awaited.is_empty() {
            self.give_mask(0, false)?;
        }
        self.rest()?;
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
            prop_assert_eq!(
                engine.page_counts(*context).unwrap(),
                self.page_counts(model)
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
    pub fn end(&mut self) -> Outcome {
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
        self.check()
    }
}
