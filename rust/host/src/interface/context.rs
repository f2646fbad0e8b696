//! `pie:core/context`: sequences of tokens with their keys and values.

use std::sync::{Arc, Mutex};

use pie_core::{Beside, ContextId, Engine, ProcessId, Submission};
use pie_text::{Addition, At, Chat, ChatState};
use wasmtime::component::{HasSelf, Linker, Resource};

use super::bindings::pie::core::context::{self, HostContext};
use super::futures::FutureUnit;
use super::model::ModelHandle;
use super::tokens::{TOKEN_BYTES, Tokens};
use super::{CallResult, counted, text_error};
use crate::Error;
use crate::budget::{Charge, Purpose};
use crate::model::Model;
use crate::model::pass::Flush;
use crate::process::state::{ProcessState, Record};
use crate::sync::lock;

/// Last tokens of a context that chat calls look at.
const TAIL_TOKENS: u32 = Chat::TAIL_LEN as u32;

/// What a snapshot takes beside its tokens.
const SNAPSHOT_BYTES: u64 = 1 << 10;

/// What is kept beside the context of a snapshot.
#[derive(Debug)]
pub(crate) struct Kept {
    turns: ChatState,
    /// Whose it is; the core knows users by numbers.
    pub(crate) user: String,
    /// Held as long as the snapshot.
    _charge: Charge,
}

/// What stands behind a `context` handle. Dropping it frees the pages.
#[derive(Debug)]
pub struct ContextHandle(pub(crate) Arc<Context>);

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
    fn append(&self, tokens: &[u32]) -> Result<(), Error> {
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
        Ok(())
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

    fn truncate(&self, n_tokens: u32) -> Result<(), Error> {
        let mut turns = lock(&self.turns);
        let (before, after) = self.model.with_engine(|engine| {
            let before = engine.seq_len(self.id)?;
            engine.truncate(self.id, n_tokens)?;
            lock(&self.tokens).truncate(engine.length(self.id)? as usize);
            Ok::<_, Error>((before, engine.seq_len(self.id)?))
        })?;
        turns.truncate(before, after);
        Ok(())
    }

    /// Keeps the context, with the state of its conversation, by `keep`, charged to the user of `by` until the snapshot is gone.
    ///
    /// # Errors
    /// `limit-engine-memory`, and those of `keep`.
    fn save<T>(
        &self,
        by: &Record,
        keep: impl FnOnce(&mut Engine, ContextId, Beside) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let turns = lock(&self.turns);
        let length = self.model.with_engine(|engine| engine.length(self.id))?;
        let n_bytes = SNAPSHOT_BYTES + u64::from(length) * TOKEN_BYTES as u64;
        let kept = Kept {
            turns: turns.clone(),
            user: by.username.clone(),
            _charge: by.account.charge(Purpose::Snapshot, n_bytes)?,
        };
        self.model
            .with_engine(|engine| keep(engine, self.id, Arc::new(kept)))
    }

    fn release(&self) {
        self.model.with_engine(|engine| engine.release(self.id));
    }
}

impl Drop for ContextHandle {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl ProcessState {
    /// The context behind a handle.
    pub(crate) fn context(&self, handle: &Resource<ContextHandle>) -> CallResult<Arc<Context>> {
        Ok(self.table.get(handle)?.0.clone())
    }

    fn push_context(&mut self, context: Context) -> CallResult<Resource<ContextHandle>> {
        // Should the table be full, dropping the handle releases the context.
        Ok(self.table.push(ContextHandle(Arc::new(context)))?)
    }

    /// A handle of a context that `open` makes of a snapshot.
    fn open_context(
        &mut self,
        model: &Resource<ModelHandle>,
        open: impl FnOnce(&mut Engine, ProcessId) -> Result<(ContextId, Beside), Error>,
    ) -> CallResult<Resource<ContextHandle>> {
        let model = self.joined(model)?;
        // A snapshot that is taken must not be lost because the table is full.
        let room = self.table.push(())?;
        self.table.delete(room)?;
        let process = self.process_id();
        let (id, beside) = model.with_engine(|engine| open(engine, process))?;
        let mut tokens = Tokens::new(self.record.account.clone());
        // It is there: `Context::save` is all that saves.
        let kept = beside.downcast_ref::<Kept>();
        let turns = kept.map(|kept| kept.turns.clone()).unwrap_or_default();
        // What one that was taken was charged with is free for the context.
        drop(beside);
        let length = model.with_engine(|engine| engine.length(id))? as usize;
        let charged = tokens.add(length, length);
        let context = self.push_context(Context::new(model, id, turns, tokens))?;
        if let Err(error) = charged {
            self.table.delete(context)?;
            return Err(error.into());
        }
        Ok(context)
    }

    /// The model behind a handle, of which the process is one of those served.
    fn joined(&mut self, model: &Resource<ModelHandle>) -> CallResult<Arc<Model>> {
        let model = self.table.get(model)?.0.clone();
        self.join(&model)?;
        Ok(model)
    }
}

impl context::Host for ProcessState {}

impl HostContext for ProcessState {
    fn create(&mut self, model: Resource<ModelHandle>) -> CallResult<Resource<ContextHandle>> {
        let model = self.joined(&model)?;
        let id = model.with_engine(|engine| engine.new_context(self.process_id()))?;
        let tokens = Tokens::new(self.record.account.clone());
        self.push_context(Context::new(model, id, ChatState::new(), tokens))
    }

    fn fork(&mut self, this: Resource<ContextHandle>) -> CallResult<Resource<ContextHandle>> {
        let parent = self.context(&this)?;
        let turns = lock(&parent.turns).clone();
        let (id, tokens) = parent.model.with_engine(|engine| {
            let length = engine.length(parent.id)? as usize;
            let tokens = lock(&parent.tokens).fork(length)?;
            Ok::<_, Error>((engine.fork(parent.id)?, tokens))
        })?;
        self.push_context(Context::new(parent.model.clone(), id, turns, tokens))
    }

    fn save(&mut self, this: Resource<ContextHandle>, name: String) -> CallResult<()> {
        let context = self.context(&this)?;
        let save = |engine: &mut Engine, id, beside| engine.save(id, &name, beside);
        Ok(context.save(&self.record, save)?)
    }

    fn snapshot(&mut self, this: Resource<ContextHandle>) -> CallResult<String> {
        let context = self.context(&this)?;
        Ok(context.save(&self.record, Engine::snapshot)?)
    }

    fn open(
        &mut self,
        model: Resource<ModelHandle>,
        name: String,
    ) -> CallResult<Resource<ContextHandle>> {
        self.open_context(&model, |engine, process| {
            engine.open_snapshot(process, &name)
        })
    }

    fn take(
        &mut self,
        model: Resource<ModelHandle>,
        name: String,
    ) -> CallResult<Resource<ContextHandle>> {
        self.open_context(&model, |engine, process| {
            engine.take_snapshot(process, &name)
        })
    }

    fn delete(&mut self, model: Resource<ModelHandle>, name: String) -> CallResult<()> {
        let (model, process) = (self.joined(&model)?, self.process_id());
        Ok(model.with_engine(|engine| engine.delete_snapshot(process, &name))?)
    }

    fn snapshots(&mut self, model: Resource<ModelHandle>) -> CallResult<Vec<String>> {
        let (model, process) = (self.joined(&model)?, self.process_id());
        Ok(model.with_engine(|engine| engine.snapshots(process))?)
    }

    fn suspend(&mut self, this: Resource<ContextHandle>) -> CallResult<()> {
        let context = self.context(&this)?;
        Ok(context
            .model
            .with_engine(|engine| engine.suspend(context.id))?)
    }

    fn release(&mut self, this: Resource<ContextHandle>) -> wasmtime::Result<()> {
        self.table.get(&this)?.0.release();
        Ok(())
    }

    fn append(&mut self, this: Resource<ContextHandle>, tokens: Vec<u32>) -> CallResult<()> {
        Ok(self.context(&this)?.append(&tokens)?)
    }

    async fn append_text(&mut self, this: Resource<ContextHandle>, text: String) -> CallResult<()> {
        let context = self.context(&this)?;
        context.model.check_text(text.len())?;
        let tokenizer = context.model.chat().tokenizer().clone();
        let tokens = self.with_text(text, move |text| tokenizer.encode(text));
        let tokens = tokens.await?.map_err(text_error)?;
        Ok(context.append(&tokens)?)
    }

    fn flush(&mut self, this: Resource<ContextHandle>) -> wasmtime::Result<Resource<FutureUnit>> {
        let context = self.table.get(&this)?.0.clone();
        let future = Flush::submit(&context.model, Submission::Flush(context.id));
        self.push_future(future)
    }

    fn truncate(&mut self, this: Resource<ContextHandle>, n_tokens: u32) -> CallResult<()> {
        Ok(self.context(&this)?.truncate(n_tokens)?)
    }

    fn seq_len(&mut self, this: Resource<ContextHandle>) -> CallResult<u32> {
        Ok(self.context(&this)?.seq_len()?)
    }

    fn cached_tokens(&mut self, this: Resource<ContextHandle>) -> CallResult<u32> {
        let context = self.context(&this)?;
        Ok(context
            .model
            .with_engine(|engine| engine.cached_tokens(context.id))?)
    }

    fn page_size(&mut self, this: Resource<ContextHandle>) -> wasmtime::Result<u32> {
        Ok(self.table.get(&this)?.0.model.page_size())
    }

    fn buffer(&mut self, this: Resource<ContextHandle>) -> CallResult<Vec<u32>> {
        let context = self.context(&this)?;
        Ok(context
            .model
            .with_engine(|engine| engine.buffer(context.id))?)
    }

    fn drop(&mut self, this: Resource<ContextHandle>) -> wasmtime::Result<()> {
        self.count_drop();
        self.table.delete(this)?;
        Ok(())
    }
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    context::add_to_linker::<_, HasSelf<_>>(linker, counted)
}
