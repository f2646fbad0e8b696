//! `pie:core/context`: sequences of tokens with their keys and values.

use std::sync::Arc;

use pie_core::market::micro_credits;
use pie_core::{ContextId, Engine, ErrorCode, HostData, ProcessId, Submission};
use wasmtime::component::{Linker, Resource};

use super::bindings::pie::core::context::{self, HostContext};
use super::errors::{CallError, CallResult};
use super::futures::FutureUnit;
use super::model::ModelHandle;
use super::view::view;
use crate::Error;
use crate::errors::text_error;
use crate::model::Model;
use crate::model::conversation::Context;
use crate::model::kept_contexts::Opening;
use crate::model::listing::no_snapshot;
use crate::model::pass::Flush;
use crate::process::handles::HandleTable;
use crate::process::joined::Joined;
use crate::process::record::ProcessRecord;
use crate::process::state::ProcessState;
use crate::process::texts::Texts;

/// What stands behind a `context` handle. Dropping it frees the pages.
#[derive(Debug)]
pub struct ContextHandle(pub(crate) Arc<Context>);

impl Drop for ContextHandle {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl HandleTable {
    /// The context behind a handle.
    ///
    /// # Errors
    /// For a handle that the program does not hold.
    pub(crate) fn context(&self, handle: &Resource<ContextHandle>) -> CallResult<Arc<Context>> {
        Ok(self.get(handle)?.0.clone())
    }
}

view! {
    /// Contexts, the models in which the process has some, and what works on long texts.
    Contexts { table: HandleTable, joined: Joined, texts: Texts, record: Arc<ProcessRecord> }
}

impl Contexts<'_> {
    fn push(&mut self, context: Context) -> CallResult<Resource<ContextHandle>> {
        // Should the table be full, dropping the handle releases the context.
        Ok(self.table.push(ContextHandle(Arc::new(context)))?)
    }

    /// A handle of a context that `open` makes from a snapshot, which is there no more where it is taken.
    fn open_by(
        &mut self,
        model: &Resource<ModelHandle>,
        open: impl FnOnce(&mut Engine, ProcessId) -> Result<(ContextId, HostData), Error>,
        is_taken: bool,
    ) -> CallResult<Resource<ContextHandle>> {
        let (model, process) = self.joined(model)?;
        // A snapshot that is taken must not be lost because the table is full.
        self.table.make_room()?;
        let (id, host_data) = model.with_engine(|engine| open(engine, process))?;
        let account = self.record.account.clone();
        let context = if is_taken {
            Context::take_over(model, id, &host_data, account)
        } else {
            Context::open(model, id, &host_data, account)?
        };
        self.push(context)
    }

    /// The same of a snapshot that may lie on disk, where there is none in memory.
    async fn open_anywhere(
        &mut self,
        model: &Resource<ModelHandle>,
        name: String,
        open: impl FnOnce(&mut Engine, ProcessId, &str) -> Result<(ContextId, HostData), Error>,
        is_taken: bool,
    ) -> CallResult<Resource<ContextHandle>> {
        let in_memory = |engine: &mut Engine, process| open(engine, process, &name);
        let absent = match self.open_by(model, in_memory, is_taken) {
            Err(CallError::Guest(error)) if error.code == ErrorCode::SnapshotMissing => error,
            opened => return opened,
        };
        let (model, process) = self.joined(model)?;
        let Some(keeping) = model.keeping() else {
            return Err(absent.into());
        };
        let opening = Opening {
            process,
            user: self.record.username.clone(),
            name,
            account: self.record.account.clone(),
            is_taken,
            absent,
        };
        let context = Context::open_kept(model, keeping, opening).await?;
        self.push(context)
    }

    /// Runs `work` on the core and a context of it.
    fn on_context<T>(
        &mut self,
        handle: &Resource<ContextHandle>,
        work: impl FnOnce(&mut Engine, ContextId) -> Result<T, Error>,
    ) -> CallResult<T> {
        let context = self.table.context(handle)?;
        Ok(context
            .model
            .with_engine(|engine| work(engine, context.id))?)
    }

    /// The same with work that drops tokens.
    fn drop_tokens(
        &mut self,
        handle: &Resource<ContextHandle>,
        work: impl FnOnce(&mut Engine, ContextId) -> Result<(), Error>,
    ) -> CallResult<()> {
        Ok(self.table.context(handle)?.drop_tokens(work)?)
    }

    /// The model behind a handle, and the process by the id that the model knows it by. If the process is new to the
    /// model, it is registered there.
    fn joined(&mut self, model: &Resource<ModelHandle>) -> CallResult<(Arc<Model>, ProcessId)> {
        let model = self.table.get(model)?.0.clone();
        self.joined.join(&model)?;
        Ok((model, self.joined.process_id()))
    }
}

impl context::Host for Contexts<'_> {}

impl HostContext for Contexts<'_> {
    fn create(&mut self, model: Resource<ModelHandle>) -> CallResult<Resource<ContextHandle>> {
        let (model, process) = self.joined(&model)?;
        let context = Context::create(model, process, self.record.account.clone())?;
        self.push(context)
    }

    fn fork(&mut self, this: Resource<ContextHandle>) -> CallResult<Resource<ContextHandle>> {
        let fork = self.table.context(&this)?.fork()?;
        self.push(fork)
    }

    async fn save(&mut self, this: Resource<ContextHandle>, name: String) -> CallResult<()> {
        let context = self.table.context(&this)?;
        if let Some(keeping) = context.model.keeping() {
            let saved = context.save_on_disk(keeping, name, &self.record.account);
            return Ok(saved.await?);
        }
        let save = |engine: &mut Engine, id, host_data| engine.save(id, &name, host_data);
        Ok(context.save(&self.record.username, &self.record.account, save)?)
    }

    async fn snapshot(&mut self, this: Resource<ContextHandle>) -> CallResult<String> {
        let context = self.table.context(&this)?;
        let user = &self.record.username;
        // It is kept in memory, and must not have the name of one on disk.
        let taken = context.model.made_up_names(user).await?;
        let save = |engine: &mut Engine, id, host_data| {
            engine.snapshot_beside(id, host_data, |name| taken.contains(name))
        };
        Ok(context.save(user, &self.record.account, save)?)
    }

    async fn open(
        &mut self,
        model: Resource<ModelHandle>,
        name: String,
    ) -> CallResult<Resource<ContextHandle>> {
        self.open_anywhere(&model, name, Engine::open_snapshot, false)
            .await
    }

    async fn take(
        &mut self,
        model: Resource<ModelHandle>,
        name: String,
    ) -> CallResult<Resource<ContextHandle>> {
        self.open_anywhere(&model, name, Engine::take_snapshot, true)
            .await
    }

    async fn delete(&mut self, model: Resource<ModelHandle>, name: String) -> CallResult<()> {
        let (model, process) = self.joined(&model)?;
        let deleted = model.with_engine(|engine| engine.delete_snapshot(process, &name));
        let user = &self.record.username;
        let deleted = match deleted {
            Err(absent) if absent.code == ErrorCode::SnapshotMissing => {
                model.delete_kept(user, name.clone(), absent).await
            }
            deleted => deleted,
        };
        match deleted {
            Err(absent) if absent.code == ErrorCode::SnapshotMissing => {
                let in_memory = model.with_engine(|engine| engine.snapshots(process))?;
                let names = model.all_names(user, in_memory).await?;
                Err(no_snapshot(&name, &names).into())
            }
            deleted => Ok(deleted?),
        }
    }

    async fn snapshots(&mut self, model: Resource<ModelHandle>) -> CallResult<Vec<String>> {
        let (model, process) = self.joined(&model)?;
        let in_memory = model.with_engine(|engine| engine.snapshots(process))?;
        let user = &self.record.username;
        Ok(model.all_names(user, in_memory).await?)
    }

    fn suspend(&mut self, this: Resource<ContextHandle>) -> CallResult<()> {
        self.on_context(&this, |engine, id| engine.suspend(id))
    }

    fn set_bid(&mut self, this: Resource<ContextHandle>, bid: f64) -> CallResult<()> {
        let bid = micro_credits("the bid", bid)?;
        self.on_context(&this, |engine, id| engine.set_bid(id, bid))
    }

    fn begin_idle(&mut self, this: Resource<ContextHandle>) -> CallResult<()> {
        self.on_context(&this, |engine, id| engine.begin_idle(id))
    }

    fn end_idle(&mut self, this: Resource<ContextHandle>) -> wasmtime::Result<()> {
        let context = self.table.get(&this)?.0.clone();
        context
            .model
            .with_engine(|engine| engine.end_idle(context.id));
        Ok(())
    }

    fn release(&mut self, this: Resource<ContextHandle>) -> wasmtime::Result<()> {
        self.table.get(&this)?.0.release();
        Ok(())
    }

    fn append(&mut self, this: Resource<ContextHandle>, tokens: Vec<u32>) -> CallResult<()> {
        Ok(self.table.context(&this)?.append(&tokens)?)
    }

    async fn append_text(&mut self, this: Resource<ContextHandle>, text: String) -> CallResult<()> {
        let context = self.table.context(&this)?;
        context.model.check_text(text.len())?;
        let tokenizer = context.model.chat().tokenizer().clone();
        let tokens = self.texts.with(text, move |text| tokenizer.encode(text));
        let tokens = tokens.await?.map_err(text_error)?;
        Ok(context.append(&tokens)?)
    }

    fn flush(&mut self, this: Resource<ContextHandle>) -> wasmtime::Result<Resource<FutureUnit>> {
        let context = self.table.get(&this)?.0.clone();
        let future = Flush::submit(&context.model, Submission::Flush(context.id));
        self.table.push_future(future)
    }

    fn truncate(&mut self, this: Resource<ContextHandle>, n_tokens: u32) -> CallResult<()> {
        self.drop_tokens(&this, |engine, id| engine.truncate(id, n_tokens))
    }

    fn seq_len(&mut self, this: Resource<ContextHandle>) -> CallResult<u32> {
        Ok(self.table.context(&this)?.seq_len()?)
    }

    fn cached_tokens(&mut self, this: Resource<ContextHandle>) -> CallResult<u32> {
        self.on_context(&this, |engine, id| engine.cached_tokens(id))
    }

    fn page_size(&mut self, this: Resource<ContextHandle>) -> wasmtime::Result<u32> {
        Ok(self.table.get(&this)?.0.model.page_size())
    }

    fn buffer(&mut self, this: Resource<ContextHandle>) -> CallResult<Vec<u32>> {
        self.on_context(&this, |engine, id| engine.buffer(id))
    }

    fn reserve_working_pages(&mut self, this: Resource<ContextHandle>, n: u32) -> CallResult<()> {
        self.on_context(&this, |engine, id| engine.reserve_working_pages(id, n))
    }

    fn commit_working_pages(&mut self, this: Resource<ContextHandle>, n: u32) -> CallResult<()> {
        self.on_context(&this, |engine, id| engine.commit_working_pages(id, n))
    }

    fn release_working_pages(&mut self, this: Resource<ContextHandle>, n: u32) -> CallResult<()> {
        self.drop_tokens(&this, |engine, id| engine.release_working_pages(id, n))
    }

    fn truncate_working_page_tokens(
        &mut self,
        this: Resource<ContextHandle>,
        n: u32,
    ) -> CallResult<()> {
        self.drop_tokens(&this, |engine, id| {
            engine.truncate_working_page_tokens(id, n)
        })
    }

    fn drop_committed_pages(&mut self, this: Resource<ContextHandle>, n: u32) -> CallResult<()> {
        self.drop_tokens(&this, |engine, id| engine.drop_committed_pages(id, n))
    }

    fn committed_page_count(&mut self, this: Resource<ContextHandle>) -> CallResult<u32> {
        let counts = self.on_context(&this, |engine, id| engine.page_counts(id))?;
        Ok(counts.n_committed)
    }

    fn working_page_count(&mut self, this: Resource<ContextHandle>) -> CallResult<u32> {
        let counts = self.on_context(&this, |engine, id| engine.page_counts(id))?;
        Ok(counts.n_working)
    }

    fn working_page_token_count(&mut self, this: Resource<ContextHandle>) -> CallResult<u32> {
        let counts = self.on_context(&this, |engine, id| engine.page_counts(id))?;
        Ok(counts.n_last)
    }

    fn drop(&mut self, this: Resource<ContextHandle>) -> wasmtime::Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    context::add_to_linker::<_, Contexts<'static>>(linker, Contexts::of)
}
