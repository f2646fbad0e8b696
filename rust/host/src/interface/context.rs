//! `pie:core/context`: sequences of tokens with their keys and values.

use std::sync::{Arc, Mutex};

use pie_core::{Beside, ContextId, Engine, ProcessId, Submission};
use pie_text::{Addition, At, Chat, ChatState};
use wasmtime::component::{HasSelf, Linker, Resource};

use super::bindings::pie::core::context::{self, HostContext};
use super::futures::FutureUnit;
use super::model::ModelHandle;
use super::{CallResult, counted, text_error, with_text};
use crate::Error;
use crate::model::Model;
use crate::model::pass::Flush;
use crate::process::state::ProcessState;
use crate::sync::lock;

/// Last tokens of a context that chat calls look at.
const TAIL_TOKENS: u32 = Chat::TAIL_LEN as u32;

/// What stands behind a `context` handle. Dropping it frees the pages.
#[derive(Debug)]
pub struct ContextHandle(pub(crate) Arc<Context>);

/// A context of the core, and where its conversation stands.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) model: Arc<Model>,
    pub(crate) id: ContextId,
    pub(crate) turns: Mutex<ChatState>,
}

impl Context {
    fn new(model: Arc<Model>, id: ContextId, turns: ChatState) -> Self {
        Self {
            model,
            id,
            turns: Mutex::new(turns),
        }
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
            .with_engine(|engine| engine.append(self.id, &addition.tokens))?;
        *turns = addition.state;
        Ok(())
    }

    /// Appends tokens as they are.
    fn append(&self, tokens: &[u32]) -> Result<(), Error> {
        let mut turns = lock(&self.turns);
        let n_tokens = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
        let (length, tail) = self.model.with_engine(|engine| {
            engine.append(self.id, tokens)?;
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
            Ok::<_, Error>((before, engine.seq_len(self.id)?))
        })?;
        turns.truncate(before, after);
        Ok(())
    }

    /// Keeps the context, with the state of its conversation, by `keep`.
    fn save<T>(
        &self,
        keep: impl FnOnce(&mut Engine, ContextId, Beside) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let turns = lock(&self.turns);
        self.model
            .with_engine(|engine| keep(engine, self.id, Arc::new(turns.clone())))
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
        // It is there: `Context::save` is all that saves.
        let turns = beside.downcast_ref::<ChatState>().cloned();
        let turns = turns.unwrap_or_default();
        self.push_context(Context::new(model, id, turns))
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
        self.push_context(Context::new(model, id, ChatState::new()))
    }

    fn fork(&mut self, this: Resource<ContextHandle>) -> CallResult<Resource<ContextHandle>> {
        let parent = self.context(&this)?;
        let turns = lock(&parent.turns).clone();
        let id = parent.model.with_engine(|engine| engine.fork(parent.id))?;
        self.push_context(Context::new(parent.model.clone(), id, turns))
    }

    fn save(&mut self, this: Resource<ContextHandle>, name: String) -> CallResult<()> {
        let context = self.context(&this)?;
        Ok(context.save(|engine, id, turns| engine.save(id, &name, turns))?)
    }

    fn snapshot(&mut self, this: Resource<ContextHandle>) -> CallResult<String> {
        Ok(self.context(&this)?.save(Engine::snapshot)?)
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

    fn append_text(&mut self, this: Resource<ContextHandle>, text: String) -> CallResult<()> {
        let context = self.context(&this)?;
        let tokenizer = context.model.chat().tokenizer();
        let tokens = with_text(&text, |text| tokenizer.encode(text)).map_err(text_error)?;
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
