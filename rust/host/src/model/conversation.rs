//! Contexts as programs have them: one of the core, where its conversation stands, and what its tokens are charged
//! with.

use std::sync::{Arc, Mutex};

use pie_core::{
    AdapterName, Answer, ContextId, Engine, Entering, GeneratorId, HostData, ProcessId, RowOutput,
};
use pie_text::{Addition, At, Chat, ChatState, ToolList};

use super::Model;
use super::adapters::Version;
use super::keeping::AwaitedPages;
use super::pass::Pass;
use super::tokens::{Extras, TOKEN_BYTES, Tokens};
use crate::Error;
use crate::budget::{Account, Charge, Purpose};
use crate::errors::text_error;
use crate::sync::lock;

/// Last tokens of a context that chat calls look at.
const TAIL_TOKENS: u32 = Chat::TAIL_LEN as u32;

/// What a snapshot takes beside its tokens.
pub(super) const SNAPSHOT_BYTES: u64 = 1 << 10;

/// What is kept beside the context of a snapshot.
#[derive(Debug)]
pub(crate) struct SavedConversation {
    turns: ChatState,
    extras: Extras,
    adapters: HeldAdapters,
    /// Whose it is; the core knows users by numbers.
    pub(crate) user: String,
    /// For the snapshot. It becomes that of the context that takes it.
    charge: Mutex<Option<Charge>>,
}

/// A context of the core, and where its conversation stands.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) model: Arc<Model>,
    pub(crate) id: ContextId,
    pub(crate) turns: Mutex<ChatState>,
    /// For the tools that the model was given.
    tools: Mutex<Charge>,
    pub(super) tokens: Mutex<Tokens>,
    /// Those that its tokens were computed with, so that they can be computed again.
    adapters: Mutex<HeldAdapters>,
    /// Pages that its first pass waits for, which lie on disk.
    pages: Mutex<Option<Arc<AwaitedPages>>>,
}

/// Adapters that tokens of a context were computed with, each with the place from which on there may be such tokens.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldAdapters(Vec<(u32, Arc<Version>)>);

impl HeldAdapters {
    /// Whether one is held by that name.
    pub(super) fn holds(&self, name: AdapterName) -> bool {
        self.0.iter().any(|(_, held)| held.name == name)
    }

    /// Tokens from `start` on may be computed with it.
    pub(super) fn hold(&mut self, start: u32, version: Arc<Version>) {
        match self
            .0
            .iter_mut()
            .find(|(_, held)| held.name == version.name)
        {
            Some((first, _)) => *first = start.min(*first),
            None => self.0.push((start, version)),
        }
    }

    /// There are no tokens from `end` on; returns what is held no more.
    fn truncate(&mut self, end: u32) -> Self {
        let (kept, left) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|(start, _)| *start < end);
        self.0 = kept;
        Self(left)
    }
}

impl Context {
    pub(super) fn new(model: Arc<Model>, id: ContextId, turns: ChatState, tokens: Tokens) -> Self {
        Self {
            model,
            id,
            turns: Mutex::new(turns),
            tools: Mutex::new(tokens.account().empty(Purpose::Text)),
            tokens: Mutex::new(tokens),
            adapters: Mutex::default(),
            pages: Mutex::default(),
        }
    }

    /// Its first pass waits for these.
    pub(super) fn await_pages(&self, pages: Arc<AwaitedPages>) {
        *lock(&self.pages) = Some(pages);
    }

    /// The same, whose tokens were computed with these.
    pub(super) fn with_adapters(mut self, adapters: HeldAdapters) -> Self {
        self.adapters = Mutex::new(adapters);
        self
    }

    /// Keeps an adapter as long as there may be tokens that a pass which follows computes with it.
    ///
    /// # Errors
    /// `context-released`.
    pub(crate) fn hold(&self, version: Arc<Version>) -> Result<(), Error> {
        // The newest token may have no keys and values: a pass computes it first.
        let start = self.seq_len()?.saturating_sub(1);
        lock(&self.adapters).hold(start, version);
        Ok(())
    }

    /// Charges the tools of a conversation.
    fn charge_tools(&self, turns: &ChatState) -> Result<(), Error> {
        lock(&self.tools).resize(turns.n_bytes() as u64)
    }

    /// An empty context of a process that the model knows.
    ///
    /// # Errors
    /// Those of the core.
    pub(crate) fn create(
        model: Arc<Model>,
        process: ProcessId,
        account: Account,
    ) -> Result<Self, Error> {
        let id = model.with_engine(|engine| engine.new_context(process))?;
        Ok(Self::new(model, id, ChatState::new(), Tokens::new(account)))
    }

    /// An empty context that follows one of another model, for which it drafts.
    ///
    /// # Errors
    /// Those of the core.
    pub(crate) fn create_draft(
        model: Arc<Model>,
        process: ProcessId,
        account: Account,
    ) -> Result<Self, Error> {
        let id = model.with_engine(|engine| engine.new_draft_context(process))?;
        Ok(Self::new(model, id, ChatState::new(), Tokens::new(account)))
    }

    /// Has it say `tokens` behind its first `n_known` and no more, charged with `n_drafts` that are to follow.
    ///
    /// # Errors
    /// Those of the core; `limit-engine-memory`.
    pub(crate) fn follow(&self, n_known: u32, tokens: &[u32], n_drafts: u32) -> Result<(), Error> {
        let length = n_known as usize + tokens.len() + n_drafts as usize;
        lock(&self.tokens).replace(length)?;
        self.model
            .with_engine(|engine| engine.follow(self.id, n_known, tokens))
    }

    /// The context that the core made from a snapshot, with the state of the conversation that was kept with it.
    ///
    /// # Errors
    /// `limit-engine-memory`; the context is released then.
    pub(crate) fn open(
        model: Arc<Model>,
        id: ContextId,
        host_data: &HostData,
        account: Account,
    ) -> Result<Self, Error> {
        let (turns, extras, adapters) = kept_in(host_data);
        let tokens = Tokens::new(account).with_extras(extras);
        let context = Self::new(model, id, turns, tokens).with_adapters(adapters);
        context.charge_whole().inspect_err(|_| context.release())?;
        Ok(context)
    }

    /// The same of a snapshot that was taken, which is there no more. It is charged by what the snapshot was charged
    /// with, so that nothing can refuse it.
    pub(crate) fn take_over(
        model: Arc<Model>,
        id: ContextId,
        host_data: &HostData,
        account: Account,
    ) -> Self {
        let (turns, extras, adapters) = kept_in(host_data);
        let kept = host_data.downcast_ref::<SavedConversation>();
        let mut charge = kept.and_then(|kept| lock(&kept.charge).take());
        let of_tools = charge
            .as_mut()
            .map(|charge| charge.split(turns.n_bytes() as u64));
        let length = model.with_engine(|engine| engine.length(id)).unwrap_or(0);
        let tokens = Tokens::taken_over(account, charge, length as usize, extras);
        let context = Self::new(model, id, turns, tokens).with_adapters(adapters);
        if let Some(of_tools) = of_tools {
            lock(&context.tools).absorb(of_tools.repurposed(Purpose::Text));
        }
        context
    }

    /// Charges all its tokens.
    pub(super) fn charge_whole(&self) -> Result<(), Error> {
        let length = self.model.with_engine(|engine| engine.length(self.id))? as usize;
        lock(&self.tokens).add(length, length)?;
        self.charge_tools(&lock(&self.turns))
    }

    /// A fork, whose conversation stands where this one does.
    ///
    /// # Errors
    /// `limit-engine-memory`, and those of the core.
    pub(crate) fn fork(&self) -> Result<Self, Error> {
        let turns = lock(&self.turns).clone();
        let (id, tokens) = self.model.with_engine(|engine| {
            let length = engine.length(self.id)? as usize;
            let tokens = lock(&self.tokens).fork(length)?;
            Ok::<_, Error>((engine.fork(self.id)?, tokens))
        })?;
        let adapters = lock(&self.adapters).clone();
        let fork = Self::new(self.model.clone(), id, turns, tokens).with_adapters(adapters);
        *lock(&fork.pages) = lock(&self.pages).clone();
        let charged = fork.charge_tools(&lock(&fork.turns));
        charged.inspect_err(|_| fork.release())?;
        Ok(fork)
    }

    /// Charges tokens that come in, and adds them at the end.
    fn append_in(&self, engine: &mut Engine, tokens: &[u32]) -> Result<(), Error> {
        let length = engine.length(self.id)? as usize;
        let room = length.saturating_add(tokens.len());
        let mut charged = lock(&self.tokens);
        charged.add(tokens.len(), room)?;
        let appended = engine.append(self.id, tokens);
        if appended.is_err() {
            charged.truncate(length);
        }
        appended
    }

    /// Takes the answer of a pass whose tokens have these besides: what enters is charged before.
    ///
    /// # Errors
    /// Those of the pass; `limit-engine-memory`, and the context is as it was before the pass.
    fn take(&self, pass: &Pass, extras: &Extras) -> Result<Answer, Error> {
        pass.take_paid(|Entering { n_tokens, length }| {
            lock(&self.tokens).add_with(n_tokens, length, extras)
        })
    }

    /// Takes the answer of a generation.
    ///
    /// # Errors
    /// As [`Self::take_forwarded`].
    pub(crate) fn take_generated(&self, pass: &Pass) -> Result<pie_core::Output, Error> {
        self.take_with_room(pass, 0)
    }

    /// The same, charged with `n_more` tokens that are accepted with those of the generation.
    ///
    /// # Errors
    /// As [`Self::take_forwarded`].
    pub(crate) fn take_with_room(
        &self,
        pass: &Pass,
        n_more: usize,
    ) -> Result<pie_core::Output, Error> {
        let mut turns = lock(&self.turns);
        let pay = |Entering { n_tokens, length }| {
            lock(&self.tokens).add(n_tokens + n_more, length + n_more)
        };
        let (answer, seq_len) = self.model.with_engine(|engine| {
            let answer = pass.take_in(engine, pay)?;
            Ok::<_, Error>((answer, engine.seq_len_within(self.id)?))
        })?;
        let Answer::Generated(output) = answer else {
            return Err(Error::internal("a generation was answered as another pass"));
        };
        // What the program appended meanwhile lies behind the kept tokens.
        let n_tokens = u32::try_from(output.tokens.len()).unwrap_or(u32::MAX);
        turns.on_generated(n_tokens, seq_len);
        Ok(output)
    }

    /// Puts tokens in place of those that the last step of a generator accepted, in the conversation too. Returns those
    /// that are kept.
    ///
    /// # Errors
    /// Those of the core; `limit-engine-memory`. Nothing changes then.
    pub(crate) fn accept(&self, generator: GeneratorId, tokens: &[u32]) -> Result<Vec<u32>, Error> {
        let mut turns = lock(&self.turns);
        let (kept, before, after) = self.model.with_engine(|engine| {
            let before = engine.seq_len_within(self.id)?;
            let kept = engine.accept_paid(generator, tokens, |entering| {
                lock(&self.tokens).replace(entering.length)
            })?;
            Ok::<_, Error>((kept, before, engine.seq_len_within(self.id)?))
        })?;
        let n_kept = u32::try_from(kept.len()).unwrap_or(u32::MAX);
        let start = after.saturating_sub(n_kept);
        turns.truncate(before, start);
        turns.on_generated(n_kept, after);
        Ok(kept)
    }

    /// Begins a collection of a generator: the state of the conversation before it.
    ///
    /// # Errors
    /// Those of the core.
    pub(crate) fn begin_collection(&self, generator: GeneratorId) -> Result<ChatState, Error> {
        let turns = lock(&self.turns);
        self.model
            .with_engine(|engine| engine.begin_collection(generator))?;
        Ok(turns.clone())
    }

    /// Gives a collection of a generator up: the conversation is again what it was before.
    pub(crate) fn drop_collection(&self, generator: GeneratorId, before: ChatState) {
        let mut turns = lock(&self.turns);
        self.model.with_engine(|engine| {
            engine.drop_collection(generator);
            // One that was released has none.
            if let Ok(length) = engine.length(self.id) {
                lock(&self.tokens).truncate(length as usize);
            }
        });
        *turns = before;
        // A generation gives a conversation no tools: this is not refused.
        drop(self.charge_tools(&turns));
    }

    /// Appends what a chat call adds at the end of the context, and keeps the state of the conversation with it.
    ///
    /// # Errors
    /// Those of the chat call, and of an append.
    pub(crate) fn add(
        &self,
        call: impl FnOnce(&ChatState, At<'_>) -> pie_text::Result<Addition>,
    ) -> Result<(), Error> {
        let mut turns = lock(&self.turns);
        let (length, tail) = self.end()?;
        // The template is evaluated outside the lock of the core: it takes longer than a driver should wait.
        let addition = call(
            &turns,
            At {
                length,
                tail: &tail,
            },
        )
        .map_err(text_error)?;
        let n_bytes = addition.state.n_bytes().max(turns.n_bytes());
        lock(&self.tools).resize(n_bytes as u64)?;
        let added = self
            .model
            .with_engine(|engine| self.append_in(engine, &addition.tokens));
        if added.is_ok() {
            *turns = addition.state;
        }
        // It is no more than that, so this is not refused.
        self.charge_tools(&turns)?;
        added
    }

    /// The tools that the model was given last; none where it was given none.
    pub(crate) fn given_tools(&self) -> Option<ToolList> {
        let turns = lock(&self.turns).clone();
        self.model.chat().given_tools(&turns)
    }

    /// Appends tokens as they are.
    pub(crate) fn append(&self, tokens: &[u32]) -> Result<(), Error> {
        let mut turns = lock(&self.turns);
        let n_tokens = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
        let (length, tail) = self.model.with_engine(|engine| {
            self.append_in(engine, tokens)?;
            self.end_in(engine)
        })?;
        self.model.chat().on_append(
            &mut turns,
            n_tokens,
            At {
                length,
                tail: &tail,
            },
        );
        self.model.chat().on_answer(&mut turns, tokens, length);
        Ok(())
    }

    /// Checks that tokens are some of the model.
    ///
    /// # Errors
    /// `invalid-token`.
    pub(crate) fn check_tokens(&self, tokens: &[u32]) -> Result<(), Error> {
        pie_core::check_tokens(tokens, self.model.vocab_size())
    }

    /// Takes the answer of a forward pass, with which `n_input` tokens of its own enter the context as they are.
    ///
    /// # Errors
    /// Those of the pass; `limit-engine-memory`, and the context is as it was before the pass.
    pub(crate) fn take_forwarded(
        &self,
        pass: &Pass,
        n_input: usize,
        extras: &Extras,
    ) -> Result<Vec<RowOutput>, Error> {
        let mut turns = lock(&self.turns);
        let Answer::Forwarded(answer) = self.take(pass, extras)? else {
            return Err(Error::internal(
                "a forward pass was answered as another pass",
            ));
        };
        let (seq_len, length, tail) = self.model.with_engine(|engine| {
            let (length, tail) = self.end_in(engine)?;
            Ok::<_, Error>((engine.seq_len(self.id)?, length, tail))
        })?;
        let n_tokens = u32::try_from(n_input).unwrap_or(u32::MAX);
        let at = At {
            length,
            tail: &tail,
        };
        if length > seq_len {
            // What the program appended meanwhile lies behind them.
            turns.on_generated(n_tokens, seq_len);
        } else if n_input > 0 {
            self.model.chat().on_append(&mut turns, n_tokens, at);
        }
        drop(turns);
        Ok(answer)
    }

    /// Tokens that the context keeps: those in pages and the pending one.
    pub(crate) fn seq_len(&self) -> Result<u32, Error> {
        self.model.with_engine(|engine| engine.seq_len(self.id))
    }

    /// Length and last tokens.
    fn end(&self) -> Result<(u32, Vec<u32>), Error> {
        self.model.with_engine(|engine| self.end_in(engine))
    }

    fn end_in(&self, engine: &Engine) -> Result<(u32, Vec<u32>), Error> {
        Ok((engine.length(self.id)?, engine.tail(self.id, TAIL_TOKENS)?))
    }

    /// Drops tokens at the end by `work`.
    ///
    /// # Errors
    /// Those of `work`.
    pub(crate) fn drop_tokens(
        &self,
        work: impl FnOnce(&mut Engine, ContextId) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut turns = lock(&self.turns);
        let (before, after) = self.model.with_engine(|engine| {
            let before = engine.seq_len(self.id)?;
            work(engine, self.id)?;
            let after = engine.seq_len(self.id)?;
            let length = engine.length(self.id)? as usize;
            lock(&self.tokens).cut(after as usize..before as usize, length);
            Ok::<_, Error>((before, after))
        })?;
        let left = lock(&self.adapters).truncate(after);
        drop(left);
        turns.truncate(before, after);
        self.charge_tools(&turns)
    }

    /// Keeps the context, with the state of its conversation, by `keep`. It is charged to `user` until the snapshot is
    /// dropped.
    ///
    /// # Errors
    /// `limit-engine-memory`, and those of `keep`.
    pub(crate) fn save<T>(
        &self,
        user: &str,
        account: &Account,
        keep: impl FnOnce(&mut Engine, ContextId, HostData) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let turns = lock(&self.turns);
        let length = self.model.with_engine(|engine| engine.length(self.id))?;
        let extras = lock(&self.tokens).extras().clone();
        let n_bytes = u64::from(length) * TOKEN_BYTES as u64 + extras.n_bytes() as u64;
        let n_bytes = SNAPSHOT_BYTES + n_bytes + turns.n_bytes() as u64;
        let kept = SavedConversation {
            turns: turns.clone(),
            extras,
            adapters: lock(&self.adapters).clone(),
            user: user.to_owned(),
            charge: Mutex::new(Some(account.charge(Purpose::Snapshot, n_bytes)?)),
        };
        self.model
            .with_engine(|engine| keep(engine, self.id, Arc::new(kept)))
    }

    pub(crate) fn release(&self) {
        self.model.with_engine(|engine| engine.release(self.id));
        lock(&self.tokens).release();
        let left = lock(&self.adapters).truncate(0);
        drop(left);
        let awaited = lock(&self.pages).take();
        drop(awaited);
        // Less is never refused.
        drop(lock(&self.tools).resize(0));
    }
}

/// The state of the conversation that was kept with a snapshot, and what its tokens take besides. They are always
/// there: only [`Context::save`] saves.
fn kept_in(host_data: &HostData) -> (ChatState, Extras, HeldAdapters) {
    let kept = host_data.downcast_ref::<SavedConversation>();
    let kept = kept.map(|kept| {
        let (turns, extras) = (kept.turns.clone(), kept.extras.clone());
        (turns, extras, kept.adapters.clone())
    });
    kept.unwrap_or_default()
}
