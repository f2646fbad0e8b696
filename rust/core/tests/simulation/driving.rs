//! Runs what happens on an engine and on the model of it, and compares.

use std::collections::{BTreeMap, HashMap, HashSet};

use pie_core::batch::ArenaView;
use pie_core::batch::layout::Field;
use pie_core::{
    ContextId, DriverFailure, EngineConfig, Error, ErrorCode, GeneratorId, GeneratorOptions,
    ProcessId, RequestId, Submission, UserId,
};
use proptest::prelude::*;

use super::carrying::Carried;
use super::commands::{Again, Commanded, Loaded};
use super::generating::{How, MAX_DRAFTED};
use super::model::{Awaited, Expected, GeneratorModel, Kept, Model, Process, Wanted, What};
use super::ops::{NAMES, Op, PROCESSES, V};
use super::support::fold;
use super::support::world::{World, options};

pub struct Simulation {
    pub world: World,
    pub config: EngineConfig,
    pub contexts: Vec<(ContextId, Model)>,
    pub generators: HashMap<GeneratorId, GeneratorModel>,
    pub expected: Vec<(RequestId, Expected)>,
    pub processes: Vec<Process>,
    n_launched: u64,
    /// By user, then by name.
    pub snapshots: BTreeMap<(u64, String), Kept>,
    pub n_saved: u64,
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
    /// Pages that contexts wait for.
    pub carried: Vec<Carried>,
    pub n_carried: u64,
}

/// What processes begin with, in micro-credits; none: the usual.
const ENDOWMENTS: [Option<u64>; 5] = [Some(7), Some(900_000_000), None, Some(5000), Some(0)];
const USUAL_ENDOWMENT: u64 = 1000;

/// Contexts that live at once.
const MAX_CONTEXTS: usize = 6;

/// Batches that pass over a request that lacks pages before it goes first.
const PATIENCE: u64 = 32;

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
            carried: Vec::new(),
            n_carried: 0,
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
        // The second process is a child of the first, where that lives.
        let parent = (process == 1).then(|| ProcessId(self.processes[0].id));
        let endowment = ENDOWMENTS[self.n_launched as usize % ENDOWMENTS.len()];
        let id = ProcessId(self.n_launched);
        self.world
            .engine
            .open_account(id, parent, endowment, USUAL_ENDOWMENT);
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

    fn check(&self) -> Outcome {
        self.world.engine.verify().map_err(TestCaseError::fail)
    }

    /// A request that was passed over too often goes first, and is passed over again only while others compute that it
    /// may not displace: they run, their prefills are under way, or they repay what they had to compute again. Each of
    /// them computes no more than its tokens, and what it lost again.
    pub fn check_waits(&self) -> Outcome {
        let driver = &self.config.driver;
        let most = driver.max_positions.min(driver.n_pages * driver.page_size);
        let bound = PATIENCE + 2 * (MAX_CONTEXTS as u64 - 1) * u64::from(most);
        let n_refused = self.world.most_refused;
        prop_assert!(
            n_refused <= bound,
            "{n_refused} batches passed over a request, and {bound} may"
        );
        Ok(())
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
            Op::Transplant(which, process) => {
                if let Some(at) = self
                    .pick(which)
                    .filter(|_| self.contexts.len() < MAX_CONTEXTS)
                {
                    self.transplant(at, process)?;
                }
            }
            Op::Carry(which, process) => {
                if let Some(at) = self
                    .pick(which)
                    .filter(|_| self.contexts.len() < MAX_CONTEXTS)
                {
                    self.carry(at, process)?;
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
            Op::Idle(which, begins) => {
                if let Some((context, _)) = self.pick(which).map(|at| &self.contexts[at]) {
                    if begins {
                        self.world.engine.begin_idle(*context).unwrap();
                    } else {
                        self.world.engine.end_idle(*context);
                    }
                }
            }
            Op::Rebid(which, rebids) => {
                let picked = self.pick(which).map(|at| &self.contexts[at].1);
                let generator = picked.and_then(|model| model.generator);
                if let Some(generator) = generator {
                    // It is refused while a step is under way.
                    if let Err(error) = self.world.engine.rebid_each_step(generator, rebids) {
                        let refused = [ErrorCode::ContextBusy, ErrorCode::GeneratorRetired];
                        prop_assert!(refused.contains(&error.code), "{}", error);
                    }
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
                drafting,
            } => {
                let Some(at) = self.pick(context) else {
                    return Ok(());
                };
                let made = GeneratorOptions {
                    seed,
                    max_tokens,
                    stop,
                    adapter,
                    drafting,
                    ..options(method)
                };
                self.generate(at, made)?;
            }
            Op::Step(which) => {
                let Some(at) = self.pick(which) else {
                    return Ok(());
                };
                self.submit_generation(at, How::Step, &Wanted::default())?;
            }
            Op::ClearedStep(which) => {
                if let Some(at) = self.pick(which) {
                    self.submit_generation(at, How::Step, &Wanted::cleared())?;
                }
            }
            Op::ProbedStep(which, is_cleared) => {
                if let Some(at) = self.pick(which) {
                    let wanted = Wanted {
                        is_cleared,
                        n_probes: 1,
                        ..Wanted::default()
                    };
                    self.submit_generation(at, How::Step, &wanted)?;
                }
            }
            Op::DraftedStep(which, n_right, others) => {
                if let Some(at) = self.pick(which) {
                    let wanted = Wanted {
                        drafts: Some((n_right, others)),
                        ..Wanted::default()
                    };
                    self.submit_generation(at, How::Step, &wanted)?;
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
                self.submit_generation(at, How::Run, &Wanted::default())?;
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
            Op::DropCommitted(which, n) => {
                if let Some(at) = self.pick(which) {
                    self.drop_committed(at, n)?;
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
        self.carry_on();
        self.check()?;
        self.check_waits()?;
        self.compare()
    }

    /// Runs until nothing can run.
    fn pump(&mut self) -> Outcome {
        loop {
            self.finish_command();
            self.world.pump_batches();
            self.note_command()?;
            let goes_on = self.carry_on();
            if self.world.command.is_none() && !goes_on {
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
        if under_way.as_ref().is_some_and(What::is_run) {
            prop_assert_eq!(appended.unwrap_err().code, ErrorCode::ContextBusy);
        } else if appended.is_err()
            && under_way.as_ref().is_some_and(What::is_drafted)
            && length as usize + 1 + MAX_DRAFTED + tokens.len()
                > self.config.driver.max_positions as usize
        {
            // There has to be room for what was drafted.
            prop_assert_eq!(appended.unwrap_err().code, ErrorCode::ContextFull);
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
