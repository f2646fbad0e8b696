//! An engine with the dummy driver, and the loop that a host runs.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use pie_core::batch::{ArenaView, NOT_FINITE};
use pie_core::sampling::{Key, Params};
use pie_core::{
    Adapter, AdapterName, Answer, Batch, BatchId, Capabilities, Command, CommandFailure, ContextId,
    Drafting, DriverAnswer, DriverCommand, DriverFailure, Engine, EngineConfig, Error, GeneratorId,
    GeneratorOptions, LateDraw, Method, NextWork, Output, ProcessId, Progress, RequestId, Sampled,
    Sampler, Submission, UserId, dummy,
};

use super::next_token;
use super::sampling::drawn;

pub const MODEL: &str = "toy";

/// An engine that verifies its invariants around every call that may change it: before the call, and when it is asked
/// to, unless nothing has changed since it last did.
pub struct Checked {
    engine: Engine,
    pub checks: bool,
    has_changed: Cell<bool>,
}

impl Checked {
    fn new(engine: Engine) -> Self {
        Self {
            engine,
            checks: true,
            has_changed: Cell::new(true),
        }
    }

    /// Verifies the invariants; a sentence names the first that is broken.
    pub fn verify(&self) -> Result<(), String> {
        if self.checks && self.has_changed.replace(false) {
            return self.engine.check();
        }
        Ok(())
    }
}

impl Deref for Checked {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl DerefMut for Checked {
    fn deref_mut(&mut self) -> &mut Engine {
        self.verify().unwrap();
        self.has_changed.set(true);
        &mut self.engine
    }
}

/// An engine, its driver, and a clock that the test turns.
pub struct World {
    pub engine: Checked,
    pub driver: dummy::Driver,
    pub now_ns: u64,
    /// What a batch takes for each of its tokens, and as much again for itself.
    pub token_ns: u64,
    n_requests: u64,
    /// The most batches in a row that passed over a request, by any plan so far.
    pub most_refused: u64,
    /// Batches that were planned. The driver computes one when it is answered, in whatever order: so a page that two of
    /// them should not share is noticed.
    pub running: Vec<Batch>,
    /// The rows of batches that run and were computed, since one that runs follows them.
    computed: HashMap<BatchId, Vec<f32>>,
    /// The command that the driver was given.
    pub command: Option<DriverCommand>,
    /// Pages that were written, by the path of their file and their place in it.
    pub files: HashMap<String, BTreeMap<u32, Vec<u8>>>,
    /// Requests that were announced as ready.
    pub ready: HashMap<RequestId, ()>,
    /// Draws are left to the test, in place of being made at once.
    pub holds_draws: bool,
    pub draws: Vec<LateDraw>,
    /// Rows that were kept and drawn from.
    pub n_drawn_late: u64,
}

pub fn config() -> EngineConfig {
    EngineConfig {
        hold: Duration::ZERO,
        driver: Capabilities {
            vocab_size: 50,
            page_size: 4,
            n_pages: 256,
            max_positions: 4096,
            page_bytes: 64,
            ..EngineConfig::new(MODEL, 50).driver
        },
        ..EngineConfig::new(MODEL, 50)
    }
}

pub fn options(method: Method) -> GeneratorOptions {
    GeneratorOptions {
        sampler: Sampler { method, seed: None },
        seed: None,
        adapter: Adapter::default(),
        max_tokens: None,
        stop: vec![],
        template_stop: vec![],
        token_mask: vec![],
        drafting: Drafting::None,
    }
}

/// Tokens of a vocabulary of 50; other ones with another salt.
pub fn prompt(n: u32, salt: u32) -> Vec<u32> {
    (0..n).map(|index| (index * 7 + salt * 13) % 50).collect()
}

/// The tokens that a greedy generation draws behind these.
pub fn expected(tokens: &[u32], n: usize) -> Vec<u32> {
    let mut all = tokens.to_vec();
    for _ in 0..n {
        all.push(next_token(MODEL, 50, &all, &Params::ARGMAX, 0));
    }
    all.split_off(tokens.len())
}

/// Asserts that what a launch of a seed draws differs each time, and is the same in every launch of that seed and in no
/// other.
pub fn assert_draws_repeat(launch: impl Fn(u64) -> Vec<Vec<u32>>) {
    let texts = launch(7);
    for (index, text) in texts.iter().enumerate() {
        assert!(!texts[..index].contains(text), "{texts:?}");
    }
    assert_eq!(launch(7), texts);
    assert_ne!(launch(8), texts);
}

/// The dummy driver that fits, with empty pages.
fn driver(config: &EngineConfig) -> dummy::Driver {
    dummy::Driver::new(
        &config.model,
        config.driver.vocab_size,
        config.driver.n_pages,
        config.driver.page_size,
    )
    .with_host_pages(config.driver.host_pages)
    .following(config.driver.follows)
}

/// What a driver that draws by itself answers: the tokens of all rows, and the rows that are wanted themselves.
fn drawn_on_device(batch: &Batch, logits: &[f32]) -> (Vec<u32>, Vec<f32>) {
    let view = ArenaView::parse(&batch.arena).expect("the arena is well-formed");
    let width = logits.len() / view.n_rows().max(1);
    let (mut tokens, mut kept) = (Vec::new(), Vec::new());
    for (row, logits) in view.rows().zip(logits.chunks(width.max(1))) {
        for draw in 0..row.n_draws {
            let key = Key { draw, ..row.key };
            // The runs of a mask say which tokens may be drawn, forbidden first.
            let mut mask = Vec::new();
            for (index, &n) in row.mask.iter().enumerate() {
                mask.extend(vec![index % 2 == 1; n as usize]);
            }
            let is_finite = logits.iter().all(|logit| logit.is_finite());
            let token = is_finite.then(|| drawn(logits, &row.params, &mask, key).expect("a token"));
            tokens.push(token.unwrap_or(NOT_FINITE));
        }
        if row.keep {
            kept.extend_from_slice(logits);
        }
    }
    (tokens, kept)
}

impl World {
    pub fn new(config: EngineConfig) -> Self {
        let driver = driver(&config);
        let engine = Engine::new(config).unwrap();
        Self {
            engine: Checked::new(engine),
            driver,
            now_ns: 0,
            token_ns: 0,
            n_requests: 0,
            most_refused: 0,
            running: Vec::new(),
            computed: HashMap::new(),
            command: None,
            files: HashMap::new(),
            ready: HashMap::new(),
            holds_draws: false,
            draws: Vec::new(),
            n_drawn_late: 0,
        }
    }

    /// A world with one process of that launch seed.
    pub fn with_process(config: EngineConfig, launch_seed: u64) -> Self {
        let mut world = Self::new(config);
        world
            .engine
            .new_process(ProcessId(1), UserId(1), launch_seed)
            .unwrap();
        world
    }

    pub fn context(&mut self, tokens: &[u32]) -> ContextId {
        self.context_of(ProcessId(1), tokens)
    }

    pub fn context_of(&mut self, process: ProcessId, tokens: &[u32]) -> ContextId {
        let context = self.engine.new_context(process).unwrap();
        self.engine.append(context, tokens).unwrap();
        context
    }

    pub fn generator(&mut self, context: ContextId, max_tokens: u32) -> GeneratorId {
        let options = GeneratorOptions {
            max_tokens: Some(max_tokens),
            ..options(Method::Argmax)
        };
        self.engine.new_generator(context, options).unwrap()
    }

    /// The next tokens of a context, drawn at random without a seed.
    pub fn draw(&mut self, context: ContextId) -> Vec<u32> {
        let made = GeneratorOptions {
            max_tokens: Some(8),
            ..options(Method::Multinomial {
                temperature: 1.0,
                draws: 1,
            })
        };
        let generator = self.engine.new_generator(context, made).unwrap();
        self.run(generator).unwrap().tokens
    }

    pub fn submit(&mut self, submission: Submission) -> Result<RequestId, Error> {
        self.n_requests += 1;
        let request = RequestId(self.n_requests);
        if self.engine.submit(request, submission, self.now_ns)? == Progress::Ready {
            self.ready.insert(request, ());
        }
        self.check();
        Ok(request)
    }

    /// Asks for a batch. Returns whether there was one.
    pub fn plan(&mut self) -> bool {
        let planned = loop {
            match self.engine.next_batch(self.now_ns) {
                NextWork::Batch(batch) => {
                    self.running.push(batch);
                    break true;
                }
                NextWork::Command(command) => {
                    assert!(self.running.is_empty() && self.command.is_none());
                    self.command = Some(command);
                    break true;
                }
                NextWork::Idle => break false,
                NextWork::HoldUntil(until_ns) => {
                    assert!(until_ns > self.now_ns);
                    self.now_ns = until_ns;
                }
            }
        };
        self.most_refused = self.most_refused.max(self.engine.stats().n_refused_max);
        self.announce();
        planned
    }

    /// Has the driver compute a batch, which is then no longer among those that run. One that feeds what it draws into
    /// the next batch computes them in their order, in whatever order they are answered.
    pub fn compute(&mut self, index: usize) -> (Batch, Vec<f32>) {
        let follows = self.driver.capabilities().follows;
        let first = if follows { 0 } else { index };
        for batch in &self.running[first..=index] {
            if self.computed.contains_key(&batch.id) {
                continue;
            }
            let computed = self
                .driver
                .run(&batch.arena)
                .expect("the driver takes every batch");
            let view = ArenaView::parse(&batch.arena).expect("the arena is well-formed");
            // What follows a batch that failed before it was computed sees nothing; its passes have failed.
            let lost = |index: u32| {
                view.sequences()
                    .nth(index as usize)
                    .is_some_and(|it| it.follows.is_some())
            };
            assert!(
                computed.failures.iter().all(|(index, _)| lost(*index)),
                "every slot that is seen was written: {:?}",
                computed.failures
            );
            let most = self.engine.config().driver.max_batch_tokens as usize;
            assert!(
                view.n_tokens().max(view.n_rows()) <= most,
                "{} tokens and {} rows, and the driver takes {most}",
                view.n_tokens(),
                view.n_rows()
            );
            self.now_ns += self.token_ns * (1 + view.n_tokens() as u64);
            self.computed.insert(batch.id, computed.logits);
        }
        let batch = self.running.remove(index);
        let logits = self.computed.remove(&batch.id).expect("it was computed");
        (batch, logits)
    }

    /// Computes and answers the oldest batch.
    pub fn finish(&mut self) {
        let (batch, logits) = self.compute(0);
        self.conclude(&batch, &logits, &[]);
    }

    /// Answers a batch, of which some sequences may have failed, as a host does: it fetches the masks that have come,
    /// and draws by them. A driver that feeds what it draws into its next batch says what it drew.
    pub fn conclude(&mut self, batch: &Batch, logits: &[f32], failures: &[(u32, String)]) {
        let masks = self.engine.late_masks(&batch.late);
        let sampled = if self.driver.capabilities().follows {
            let (tokens, kept) = drawn_on_device(batch, logits);
            let (tokens, logits) = (&tokens[..], &kept[..]);
            let answer = DriverAnswer::Drawn { tokens, logits };
            batch.jobs.conclude(answer, &masks, failures)
        } else {
            let answer = DriverAnswer::Logits(logits);
            batch.jobs.conclude(answer, &masks, failures)
        };
        self.answer(batch.id, Ok(sampled));
    }

    /// Has the driver carry out its command, and answers it.
    pub fn finish_command(&mut self) {
        let command = self.command.take().expect("the driver has a command");
        let outcome = self.driver.command(&command.command);
        let outcome = outcome.and_then(|()| self.move_pages(&command.command));
        self.engine
            .complete_command(command.id, outcome, self.now_ns)
            .unwrap();
        self.announce();
    }

    /// Moves pages between the driver and the files of this world.
    fn move_pages(&mut self, command: &Command) -> Result<(), CommandFailure> {
        match command {
            Command::ExportPages { pages, path } => {
                let file = self.files.entry(path.clone()).or_default();
                for (place, page) in pages.iter() {
                    file.insert(*place, self.driver.export_page(*page)?);
                }
            }
            Command::ImportPages { pages, path } => {
                let file = self.files.get(path);
                let file =
                    file.ok_or_else(|| CommandFailure::Failed("there is no file".to_owned()))?;
                for (place, page) in pages.iter() {
                    self.driver.import_page(*page, &file[place])?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Gives the mask of a row.
    pub fn give_mask(&mut self, request: RequestId, row: u32, mask: &[u32]) -> Result<(), Error> {
        let given = self.engine.give_mask(request, row, mask);
        self.announce();
        given
    }

    /// Makes the draws that were held.
    pub fn draw_held(&mut self) {
        for draw in std::mem::take(&mut self.draws) {
            self.draw_one(&draw);
        }
        self.announce();
    }

    fn draw_one(&mut self, draw: &LateDraw) {
        self.n_drawn_late += 1;
        self.engine.complete_draw(draw.draw(), self.now_ns);
        self.check();
    }

    pub fn answer(&mut self, batch: BatchId, outcome: Result<Sampled, DriverFailure>) {
        self.engine.complete(batch, outcome, self.now_ns).unwrap();
        self.announce();
    }

    /// Time goes by without an answer. Returns how many batches are waited for no more.
    pub fn hang(&mut self, ns: u64) -> usize {
        self.now_ns += ns;
        let n_abandoned = self.engine.abandon_overdue(self.now_ns);
        self.engine.fail_overdue_masks(self.now_ns);
        self.announce();
        n_abandoned
    }

    /// The device goes with all that it holds, and an empty one comes.
    /// Returns an adapter that is not loaded again.
    pub fn lose(&mut self) -> Option<AdapterName> {
        self.running.clear();
        self.command = None;
        self.computed.clear();
        self.driver = driver(self.engine.config());
        let given_up = self.engine.lose_device("it was killed", self.now_ns);
        self.announce();
        given_up
    }

    pub fn check(&self) {
        self.engine.verify().unwrap();
    }

    fn announce(&mut self) {
        self.check();
        self.draws.extend(self.engine.drain_draws());
        if !self.holds_draws {
            for draw in std::mem::take(&mut self.draws) {
                self.draw_one(&draw);
            }
        }
        for request in self.engine.drain_ready() {
            self.ready.insert(request, ());
        }
    }

    /// Runs batches and commands until nothing can run.
    pub fn pump(&mut self) {
        self.pump_batches();
        while self.command.is_some() {
            self.finish_command();
            self.pump_batches();
        }
    }

    /// Runs batches until nothing can run, or the driver has a command: one, or where the driver feeds what it draws
    /// into its next batch, that one too.
    pub fn pump_batches(&mut self) {
        let depth = 1 + usize::from(self.driver.capabilities().follows);
        for _ in 0..10_000 {
            if self.command.is_some() {
                return;
            }
            if self.running.len() < depth && self.plan() {
                continue;
            }
            if self.running.is_empty() {
                return;
            }
            self.finish();
        }
        panic!("the engine does not come to rest");
    }

    /// Runs until the request is ready, and takes its answer.
    pub fn wait(&mut self, request: RequestId) -> Result<Answer, Error> {
        self.pump();
        let answer = self.engine.take(request).expect("the request is ready");
        self.check();
        answer
    }

    pub fn flush(&mut self, context: ContextId) -> Result<(), Error> {
        let request = self.submit(Submission::Flush(context))?;
        assert_eq!(self.wait(request)?, Answer::Flushed);
        Ok(())
    }

    pub fn run(&mut self, generator: GeneratorId) -> Result<Output, Error> {
        let request = self.submit(Submission::Run(generator))?;
        self.wait(request).map(output)
    }

    pub fn step(&mut self, generator: GeneratorId) -> Result<Option<Output>, Error> {
        if self.engine.next_step(generator)?.is_none() {
            return Ok(None);
        }
        let request = self.submit(Submission::Step(generator))?;
        self.wait(request).map(|answer| Some(output(answer)))
    }
}

pub fn output(answer: Answer) -> Output {
    match answer {
        Answer::Generated(output) => output,
        other => panic!("a generation was answered with {other:?}"),
    }
}
