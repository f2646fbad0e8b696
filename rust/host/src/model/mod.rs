//! A loaded model: the core behind its lock, the text side, and whoever waits for an answer.

pub(crate) mod adapter_folders;
mod adapter_making;
pub(crate) mod adapters;
pub(crate) mod bringing;
mod commands;
pub(crate) mod constraints;
pub(crate) mod conversation;
pub(crate) mod draft_model;
mod drafters;
pub(crate) mod driver;
pub(crate) mod dummy;
pub(crate) mod generator;
pub(crate) mod grammars;
pub(crate) mod held_grammars;
pub(crate) mod inbox;
pub(crate) mod keeping;
pub(crate) mod kept_contexts;
#[cfg(test)]
mod kept_contexts_tests;
mod kept_pages;
pub(crate) mod listing;
mod named_adapters;
pub(crate) mod overdue;
mod overdue_signal;
pub(crate) mod pass;
mod readiness;
pub(crate) mod registry;
mod snapshots;
pub(crate) mod state;
pub(crate) mod stopping;
#[cfg(test)]
mod stopping_tests;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod tokens;
#[cfg(test)]
mod walking_tests;

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use pie_core::{
    Capabilities, ContextId, DraftsWanted, Engine, EngineConfig, ErrorCode, LateDraw, LateDrawn,
    Progress, RequestId, Stats, Submission, UserId, UserStats,
};
use pie_text::Chat;
use pie_text::limits::MAX_TEXT_BYTES;
use tokio::sync::oneshot;

pub use self::adapters::AdapterInfo;
use self::adapters::Adapters;
use self::drafters::Drafters;
use self::inbox::Inbox;
use self::keeping::Keeping;
use self::overdue_signal::OverdueSignal;
pub use self::snapshots::SnapshotInfo;
use self::state::ModelState;
use crate::Error;
use crate::errors::text_error;
use crate::snapshots::store::SnapshotStore;
use crate::sync::lock;

/// What a model is made with.
#[derive(Clone, Debug)]
pub struct ModelConfig {
    /// The folder of the checkpoint; its tokenizer, chat template and generation configuration are read.
    pub folder: PathBuf,
    /// The core's configuration; its end tokens are replaced by those of the folder.
    pub engine: EngineConfig,
    /// The driver has a process of its own. Whoever waits for it ends that process where a batch is overdue, and the
    /// engine waits on.
    pub is_isolated: bool,
}

/// Normalizing a text makes it at most so many times shorter (Unicode's composition, three times).
const NORMALIZED_PART: usize = 4;
/// A text of so many bytes is always encoded.
const LEAST_TEXT_BYTES: usize = 64 << 10;

/// The longest text that is encoded for a context of `max_context` tokens. A longer one has more tokens, or consists
/// for the most part of what the tokenizer leaves out.
fn text_bytes(longest_token_bytes: usize, max_context: u32) -> usize {
    let context = usize::try_from(max_context).unwrap_or(usize::MAX);
    let most = longest_token_bytes
        .saturating_mul(context)
        .saturating_mul(NORMALIZED_PART);
    most.clamp(LEAST_TEXT_BYTES, MAX_TEXT_BYTES)
}

/// Tells a waiter that its request is ready to be taken, or that it was refused.
type Waker = oneshot::Sender<Result<(), Error>>;

/// A loaded model.
pub struct Model {
    name: String,
    /// What its driver serves.
    driver: Capabilities,
    /// The longest text that is encoded for a context.
    text_bytes: usize,
    chat: Arc<Chat>,
    /// The state of the model. It is locked for microseconds and never while a driver runs.
    engine: Mutex<Engine>,
    inbox: Inbox,
    /// Woken where a batch or a command begins while neither ran.
    watch: Arc<OverdueSignal>,
    waiters: Mutex<HashMap<RequestId, Waker>>,
    /// Those that users have given names.
    pub(crate) adapters: Arc<Adapters>,
    /// Of the generators for which models draft.
    drafters: Drafters,
    /// Its snapshots on disk; none where they are kept in memory.
    keeping: Option<Arc<Keeping>>,
    /// A digest of all tokens, once it was asked for.
    vocabulary: OnceLock<u64>,
    /// Those of them that wait for a command, and that the end of the model wakes.
    commanded: Mutex<HashSet<RequestId>>,
    state: Mutex<ModelState>,
    /// Set while nothing may be asked of it.
    refuses: AtomicBool,
    next_request: AtomicU64,
    /// The zero of the times that the core gets.
    started: Instant,
    /// Names users to the core, by a key of this engine's own, so that nobody can choose a name that collides with
    /// another's.
    users: RandomState,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Model")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Model {
    /// Reads the text side of the folder and makes the core. Files of adapters lie in `data_dir`.
    ///
    /// # Errors
    /// `invalid-model` when a file is missing or damaged, `invalid-config` for a setting out of its range.
    pub(crate) fn new(config: ModelConfig, data_dir: Option<&Path>) -> Result<Self, Error> {
        let ModelConfig {
            folder, mut engine, ..
        } = config;
        let driver = engine.driver.clone();
        let chat = Arc::new(Chat::from_dir(&folder, driver.vocab_size).map_err(text_error)?);
        engine.end_tokens = chat.end_tokens().to_vec();
        let above = data_dir.map(|data_dir| data_dir.join("adapters"));
        Ok(Self {
            name: engine.model.clone(),
            text_bytes: text_bytes(chat.tokenizer().longest_token_bytes(), driver.max_positions),
            driver,
            chat,
            inbox: Inbox::new(usize::try_from(engine.max_waiting).unwrap_or(usize::MAX)),
            watch: Arc::default(),
            adapters: Arc::new(Adapters::new(&engine, above.as_deref())),
            engine: Mutex::new(Engine::new(engine)?),
            waiters: Mutex::default(),
            drafters: Drafters::default(),
            keeping: None,
            vocabulary: OnceLock::new(),
            commanded: Mutex::default(),
            state: Mutex::default(),
            refuses: AtomicBool::new(false),
            next_request: AtomicU64::new(1),
            started: Instant::now(),
            users: RandomState::new(),
        })
    }

    /// What programs save under names is kept on disk from now on, in that store.
    pub(crate) fn keep_in(&mut self, store: SnapshotStore) {
        self.keeping = Some(Keeping::new(store, &self.driver));
    }

    /// The name by which programs load it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Entries of its vocabulary: the length of a row of logits.
    pub fn vocab_size(&self) -> u32 {
        self.driver.vocab_size
    }

    /// Whether the ids of another model mean the same tokens.
    pub(crate) fn shares_vocabulary(&self, other: &Self) -> bool {
        self.vocab_size() == other.vocab_size() && self.vocabulary() == other.vocabulary()
    }

    /// A digest of all tokens.
    fn vocabulary(&self) -> u64 {
        *self.vocabulary.get_or_init(|| {
            let tokenizer = self.chat.tokenizer();
            let mut hasher = DefaultHasher::new();
            for id in 0..tokenizer.vocab_size() {
                tokenizer.token_bytes(id).hash(&mut hasher);
            }
            hasher.finish()
        })
    }

    /// Whether its driver serves adapters.
    pub(crate) const fn serves_adapters(&self) -> bool {
        self.driver.adapters
    }

    /// Tokens that a page holds.
    pub fn page_size(&self) -> u32 {
        self.driver.page_size
    }

    /// Counters of the core.
    pub fn stats(&self) -> Stats {
        self.with_engine(|engine| engine.stats())
    }

    /// What the processes of a user have.
    pub fn user_stats(&self, user: &str) -> UserStats {
        let user = self.user(user);
        self.with_engine(|engine| engine.user_stats(user))
    }

    /// Verifies the invariants of the core.
    ///
    /// # Errors
    /// `internal`, naming the invariant that does not hold.
    pub fn check(&self) -> Result<(), Error> {
        self.with_engine(|engine| engine.check())
            .map_err(Error::internal)
    }

    /// Ends the driving of the model: drivers that wait are woken and get no more batches, and whoever waits for a
    /// command is told so.
    pub fn stop(&self) {
        self.inbox.stop();
        self.wake_commanded();
    }

    /// True after [`Model::stop`].
    pub fn is_stopped(&self) -> bool {
        self.inbox.is_stopped()
    }

    /// The user of that name, as the core knows it.
    pub(crate) fn user(&self, name: &str) -> UserId {
        UserId(self.users.hash_one(name))
    }

    /// Bytes of a list of so many stop tokens, each of which is held once.
    pub(crate) fn stop_bytes(&self, n_tokens: usize) -> u64 {
        let most = usize::try_from(self.driver.vocab_size).unwrap_or(usize::MAX);
        (n_tokens.min(most) * size_of::<u32>()) as u64
    }

    /// The tokens of a list of stop tokens, each once. A program may give any number of them, so this is done apart
    /// from the core and its lock.
    ///
    /// # Errors
    /// `invalid-token`.
    pub(crate) fn stop_list(&self, mut tokens: Vec<u32>) -> Result<Vec<u32>, Error> {
        pie_core::check_tokens(&tokens, self.vocab_size())?;
        tokens.sort_unstable();
        tokens.dedup();
        Ok(tokens)
    }

    /// Refuses a text that no context can hold.
    ///
    /// # Errors
    /// `context-full`.
    pub(crate) fn check_text(&self, n_bytes: usize) -> Result<(), Error> {
        check_fits(n_bytes, self.text_bytes, self.driver.max_positions)
    }

    pub(crate) fn chat(&self) -> &Arc<Chat> {
        &self.chat
    }

    /// Runs `work` on the core, which has seen everything that was submitted before, and wakes whoever it made ready.
    pub(crate) fn with_engine<T>(&self, work: impl FnOnce(&mut Engine) -> T) -> T {
        let mut engine = lock(&self.engine);
        // Before commands that name them anew.
        for adapter in self.adapters.take_dropped() {
            engine.forget_adapter(adapter);
        }
        let mut answered = self.drain_inbox(&mut engine);
        let result = work(&mut engine);
        self.adapters.drop_abandoned(&engine);
        answered.extend(
            engine
                .drain_ready()
                .into_iter()
                .map(|request| (request, Ok(()))),
        );
        let draws = engine.drain_draws();
        let due_ns = engine.take_late_due_ns();
        let wishes = engine.drain_page_wishes();
        let drafts = engine.drain_draft_events();
        // Numbered under the lock: who tells them may be overtaken by who has later ones.
        let drafts = (!drafts.is_empty()).then(|| (self.drafters.number(), drafts));
        drop(engine);
        self.watch_late(due_ns);
        if let Some((number, drafts)) = drafts {
            self.drafters.tell(number, drafts);
        }
        if !draws.is_empty() {
            self.draw_late(draws, &mut answered);
        }
        if !wishes.is_empty() {
            self.want_pages(&wishes);
        }
        self.wake(answered);
        result
    }

    /// Passes wait for the pages of contexts, which lie on disk.
    fn want_pages(&self, contexts: &[ContextId]) {
        let keeping = self.keeping.as_ref();
        if keeping.is_some_and(|keeping| keeping.want(contexts)) {
            return;
        }
        // Nobody brings them: they are computed.
        for context in contexts {
            self.end_wish(*context);
        }
    }

    /// Draws from rows that were kept and whose token masks have come, outside the lock.
    fn draw_late(
        &self,
        mut draws: Vec<LateDraw>,
        answered: &mut Vec<(RequestId, Result<(), Error>)>,
    ) {
        while !draws.is_empty() {
            let drawn: Vec<LateDrawn> = draws.iter().map(LateDraw::draw).collect();
            let now_ns = self.now_ns();
            let mut engine = lock(&self.engine);
            for drawn in drawn {
                engine.complete_draw(drawn, now_ns);
            }
            let ready = engine.drain_ready();
            answered.extend(ready.into_iter().map(|request| (request, Ok(()))));
            draws = engine.drain_draws();
        }
        // What was drawn may be computed on.
        self.inbox.ring();
    }

    /// A pass began to wait for nothing but token masks, and is overdue then.
    fn watch_late(&self, due_ns: Option<u64>) {
        if let Some(due_ns) = due_ns {
            self.watch
                .hasten(self.started + Duration::from_nanos(due_ns));
        }
    }

    /// Submits a pass. The receiver learns when it can be taken, or why it was refused.
    pub(crate) fn submit(
        &self,
        submission: Submission,
    ) -> (RequestId, oneshot::Receiver<Result<(), Error>>) {
        let request = RequestId(self.next_request.fetch_add(1, Ordering::Relaxed));
        let (waker, receiver) = oneshot::channel();
        lock(&self.waiters).insert(request, waker);
        // Where no driver reads the inbox, a refusal is told at once all the same.
        if !self.inbox.push(request, submission) || self.refuses.load(Ordering::SeqCst) {
            self.with_engine(|_| ());
        }
        (request, receiver)
    }

    /// Cancels a pass: its context is as it was before it.
    pub(crate) fn cancel(&self, request: RequestId) {
        lock(&self.waiters).remove(&request);
        self.with_engine(|engine| engine.cancel(request));
        self.inbox.ring();
    }

    /// Gives a generation the drafts that it wanted, or why there are none.
    fn give_drafts(&self, wanted: &DraftsWanted, drafts: Result<&[u32], Error>) {
        self.with_engine(|engine| engine.give_drafts(wanted.request, wanted.length(), drafts));
        self.inbox.ring();
    }

    /// Wakes those who wait. It is never called under the lock of the core.
    fn wake(&self, answered: Vec<(RequestId, Result<(), Error>)>) {
        for (request, answer) in answered {
            if let Some(waker) = lock(&self.waiters).remove(&request) {
                // A waiter that was dropped has cancelled its pass, or is about to.
                drop(waker.send(answer));
            }
        }
    }

    fn drain_inbox(&self, engine: &mut Engine) -> Vec<(RequestId, Result<(), Error>)> {
        let submitted = self.inbox.take();
        if submitted.is_empty() {
            return Vec::new();
        }
        let now_ns = self.now_ns();
        let answer = |(request, submission)| match engine.submit(request, submission, now_ns) {
            Ok(Progress::Waiting) => None,
            Ok(Progress::Ready) => Some((request, Ok(()))),
            Err(error) => Some((request, Err(error))),
        };
        submitted.into_iter().filter_map(answer).collect()
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Refuses a text that no context of a model can hold, before anything is computed.
///
/// # Errors
/// `context-full`.
fn check_fits(n_bytes: usize, most_bytes: usize, max_context: u32) -> Result<(), Error> {
    if n_bytes <= most_bytes {
        return Ok(());
    }
    Err(Error::with_values(
        ErrorCode::ContextFull,
        format!(
            "a text of {n_bytes} bytes does not fit: contexts of the model hold {max_context} tokens, and no text of \
             more than {most_bytes} bytes is looked at; give a shorter one"
        ),
        &[("bytes", n_bytes as u64), ("limit", most_bytes as u64)],
    ))
}
