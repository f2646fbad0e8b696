//! Contexts as programs have them: one of the core, where its conversation stands, and what its tokens are charged
//! with.

use std::sync::{Arc, Mutex};

use pie_core::{ContextId, Engine, GeneratorId, HostData, ProcessId};
use pie_text::{Addition, At, Chat, ChatState};

use super::Model;
use super::tokens::{TOKEN_BYTES, Tokens};
use crate::Error;
use crate::budget::{Account, Charge, Purpose};
use crate::errors::text_error;
use crate::sync::lock;

/// Last tokens of a context that chat calls look at.
const TAIL_TOKENS: u32 = Chat::TAIL_LEN as u32;

/// What a snapshot takes beside its tokens.
const SNAPSHOT_BYTES: u64 = 1 << 10;

/// What is kept beside the context of a snapshot.
#[derive(Debug)]
pub(crate) struct SavedConversation {
    turns: ChatState,
    /// Whose it is; the core knows users by numbers.
    pub(crate) user: String,
    /// Held as long as the snapshot.
    _charge: Charge,
}

/// A context of the core, and where its conversation stands.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) model: Arc<Model>,
    pub(crate) id: ContextId,
    pub(crate) turns: Mutex<ChatState>,
    tokens: Mutex<Tokens>,
}

impl Context {
    fn new(model: Arc<Model>, id: ContextId, turns: ChatState, tokens: Tokens) -> Self {
        Self {
            model,
            id,
            turns: Mutex::new(turns),
            tokens: Mutex::new(tokens),
        }
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

    /// The context that the core made from a snapshot, with the state of the conversation that was kept with it.
    ///
    /// # Errors
    /// `limit-engine-memory`; the context is released then.
    pub(crate) fn open(
        model: Arc<Model>,
        id: ContextId,
        host_data: HostData,
        account: Account,
    ) -> Result<Self, Error> {
        // It always is one: only [`Context::save`] saves.
        let kept = host_data.downcast_ref::<SavedConversation>();
        let turns = kept.map(|kept| kept.turns.clone()).unwrap_or_default();
        // The charge of a snapshot that was taken is given back, so that the context has room for its own.
        drop(host_data);
        let context = Self::new(model, id, turns, Tokens::new(account));
        context.charge_whole().inspect_err(|_| context.release())?;
        Ok(context)
    }

    /// Charges all its tokens.
    fn charge_whole(&self) -> Result<(), Error> {
        let length = self.model.with_engine(|engine| engine.length(self.id))? as usize;
        lock(&self.tokens).add(length, length)
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
        Ok(Self::new(self.model.clone(), id, turns, tokens))
    }

    /// Charges tokens that come in, and adds them at the end.
    fn append_in(&self, engine: &mut Engine, tokens: &[u32]) -> Result<(), Error> {
        let length = engine.length(self.id)? as usize;
        let room = length.saturating_add(tokens.len());
        lock(&self.tokens).add(tokens.len(), room)?;
        engine.append(self.id, tokens)
    }

    /// Charges tokens that were generated.
    ///
    /// # Errors
    /// `limit-engine-memory`.
    pub(crate) fn charge_generated(&self, n_tokens: usize, seq_len: u32) -> Result<(), Error> {
        lock(&self.tokens).add(n_tokens, seq_len as usize)
    }

    /// Puts tokens in place of those that the last step of a generator accepted, in the conversation too. Returns those
    /// that are kept.
    ///
    /// # Errors
    /// Those of the core; `limit-engine-memory`.
    pub(crate) fn accept(&self, generator: GeneratorId, tokens: &[u32]) -> Result<Vec<u32>, Error> {
        let mut turns = lock(&self.turns);
        let (kept, before, after, length) = self.model.with_engine(|engine| {
            let before = engine.seq_len(self.id)?;
            let kept = engine.accept(generator, tokens)?;
            let length = engine.length(self.id)? as usize;
            Ok::<_, Error>((kept, before, engine.seq_len(self.id)?, length))
        })?;
        let n_kept = u32::try_from(kept.len()).unwrap_or(u32::MAX);
        let start = after.saturating_sub(n_kept);
        turns.truncate(before, start);
        turns.on_generated(n_kept, after);
        drop(turns);
        let mut charged = lock(&self.tokens);
        charged.truncate(length.saturating_sub(kept.len()));
        charged.add(kept.len(), length)?;
        drop(charged);
        Ok(kept)
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
        self.model
            .with_engine(|engine| self.append_in(engine, &addition.tokens))?;
        *turns = addition.state;
        Ok(())
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
        self.model.with_engine(|engine| engine.check_tokens(tokens))
    }

    /// Takes the answer of a pass by `take`, with which `n_input` tokens of its own enter the context as they are.
    ///
    /// # Errors
    /// Those of `take`; `limit-engine-memory`.
    pub(crate) fn take_forwarded<T>(
        &self,
        n_input: usize,
        take: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut turns = lock(&self.turns);
        let answer = take()?;
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
        self.charge_generated(n_input, seq_len)?;
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
            lock(&self.tokens).truncate(engine.length(self.id)? as usize);
            Ok::<_, Error>((before, engine.seq_len(self.id)?))
        })?;
        turns.truncate(before, after);
        Ok(())
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
        let n_bytes = SNAPSHOT_BYTES + u64::from(length) * TOKEN_BYTES as u64;
        let kept = SavedConversation {
            turns: turns.clone(),
            user: user.to_owned(),
            _charge: account.charge(Purpose::Snapshot, n_bytes)?,
        };
        self.model
            .with_engine(|engine| keep(engine, self.id, Arc::new(kept)))
    }

    pub(crate) fn release(&self) {
        self.model.with_engine(|engine| engine.release(self.id));
    }
}
