//! Contexts: sequences of tokens that the model reads and continues.

use std::fmt;
use std::rc::Rc;

use elsa::FrozenVec;

use crate::bindings::pie::core::context as raw;
use crate::bindings::pie::core::types::Error;
use crate::bindings::pie::instruct::chat::{self, Role};
use crate::bindings::pie::instruct::tools;
use crate::forward::Forward;
use crate::generation::Generator;
use crate::pages::RawContext;
use crate::sample::{Sampler, Seeded};
use crate::shared::Shared;
use crate::tools::Tool;
use crate::{Model, Result, task};

/// While it lives, its context bids nothing for pages.
#[derive(Debug)]
#[must_use = "the context bids again as soon as this is dropped"]
pub struct Idle<'a> {
    shared: &'a Shared,
    /// The scope began.
    is_open: bool,
}

impl Drop for Idle<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.shared.raw.end_idle();
        }
    }
}

/// A sequence of tokens with its keys and values in the engine: what was computed, a pending token, and a buffer of
/// what was added since. Dropping it frees its pages at once.
///
/// A generator shares its context, so that everything here can be called while one lives.
pub struct Context {
    raw: RawContext,
    model: Model,
    /// What `buffer` has lent out since the last exclusive call.
    shown: FrozenVec<Vec<u32>>,
}

impl Context {
    /// A fresh, empty context.
    ///
    /// # Errors
    /// `limit-resources`: the program holds as many contexts as it may.
    pub fn new(model: &Model) -> Result<Self> {
        Ok(Self::bind(
            raw::Context::create(model.raw())?,
            model.clone(),
        ))
    }

    /// A copy of everything: tokens, pending token, buffer and turn state. Pages are shared until written.
    ///
    /// # Errors
    /// `context-busy` while a pass is under way, `context-released`, `limit-resources`.
    pub fn fork(&self) -> Result<Self> {
        self.check()?;
        Ok(Self::bind(self.shared().raw.fork()?, self.model.clone()))
    }

    /// A context with everything that the snapshot of that name holds, which stays: tokens, buffer and turn state. It
    /// belongs to the user, whichever of his programs saved it.
    ///
    /// # Errors
    /// `snapshot-missing` naming it; `token-budget`, `limit-resources`; `invalid-argument` for a name that is empty or
    /// longer than 256 bytes.
    pub fn open(model: &Model, name: &str) -> Result<Self> {
        Ok(Self::bind(
            raw::Context::open(model.raw(), name)?,
            model.clone(),
        ))
    }

    /// As [`Context::open`], and the snapshot is removed: of two programs that take it one gets it.
    ///
    /// # Errors
    /// As [`Context::open`]; the snapshot stays then.
    pub fn take(model: &Model, name: &str) -> Result<Self> {
        Ok(Self::bind(
            raw::Context::take(model.raw(), name)?,
            model.clone(),
        ))
    }

    /// Forgets the snapshot of that name.
    ///
    /// # Errors
    /// `snapshot-missing` naming it; `invalid-argument` as of [`Context::open`].
    pub fn delete(model: &Model, name: &str) -> Result<()> {
        Ok(raw::Context::delete(model.raw(), name)?)
    }

    /// The names of all snapshots of the user, sorted.
    ///
    /// # Errors
    /// None that a program could cause.
    pub fn snapshots(model: &Model) -> Result<Vec<String>> {
        Ok(raw::Context::snapshots(model.raw())?)
    }

    /// Keeps a copy of everything under a name, in place of an older one, until it is deleted. It uses no page.
    ///
    /// # Errors
    /// A kept error; `limit-snapshots` when too many are kept; `invalid-argument` as of [`Context::open`];
    /// `context-busy` while a pass is under way.
    pub fn save(&self, name: &str) -> Result<()> {
        self.check()?;
        Ok(self.shared().raw.save(name)?)
    }

    /// Keeps a copy under a name that is made up, and returns that name. It lasts as long as the engine runs.
    ///
    /// # Errors
    /// A kept error; `limit-snapshots` when too many are kept; `context-busy` while a pass is under way.
    pub fn snapshot(&self) -> Result<String> {
        self.check()?;
        Ok(self.shared().raw.snapshot()?)
    }

    /// Gives up all pages, so that others have room. Nothing else changes, and the next pass takes pages again.
    ///
    /// # Errors
    /// A kept error; `context-busy` while a pass is under way, `context-released`.
    pub fn suspend(&self) -> Result<()> {
        self.check()?;
        Ok(self.shared().raw.suspend()?)
    }

    /// Bids for each page of the next pass, in credits, in place of the bid by default. Where pages are short, contexts
    /// that bid less give way to those that bid more; nobody bids more than the program can pay. In a generation it
    /// holds for one step, unless [`Generator::rebid_each_step`] says otherwise. Its errors are kept:
    /// `invalid-argument` for what is not a number from 0 on, `context-busy`.
    pub fn set_bid(&self, value: f64) {
        let shared = self.shared();
        shared.keeper.value_of(shared.raw.set_bid(value));
    }

    /// Bids nothing until what it returns is dropped, and then what it did before. Its error is kept.
    pub fn idle(&self) -> Idle<'_> {
        let shared = self.shared();
        let begun = shared.raw.begin_idle();
        let is_open = begun.is_ok();
        shared.keeper.value_of(begun);
        Idle { shared, is_open }
    }

    /// Frees the pages now. A second release does nothing; every other call is then the error `context-released`.
    pub fn release(&self) {
        self.shared().raw.release();
    }

    /// Adds a system message. Its text never becomes a control token, here and in the other messages. While a collector
    /// runs an addition is the error `context-busy`, which is kept.
    pub fn system(&mut self, text: &str) -> &mut Self {
        self.fill(Role::System, text)
    }

    /// Adds a user message, closing an open assistant turn first.
    pub fn user(&mut self, text: &str) -> &mut Self {
        self.fill(Role::User, text)
    }

    /// Adds a whole assistant message.
    pub fn assistant(&mut self, text: &str) -> &mut Self {
        self.fill(Role::Assistant, text)
    }

    /// Gives the model tools: the message that comes next is written with them, as the template does it. Its errors are
    /// kept: `invalid-argument`, and `template-error` where the template has no place for tools.
    pub fn equip(&mut self, tools: &[&dyn Tool]) -> &mut Self {
        let schemas: Vec<String> = tools.iter().map(|tool| tool.schema()).collect();
        self.change(|raw| tools::equip(raw, &schemas))
    }

    /// Adds the answer of a tool, closing the turn that called it. It never becomes a control token.
    pub fn answer(&mut self, name: &str, value: &str) -> &mut Self {
        self.change(|raw| tools::answer(raw, name, value, None))
    }

    /// As [`Context::answer`], for the call of this id, where the model gave one.
    pub fn answer_call(&mut self, name: &str, value: &str, id: &str) -> &mut Self {
        self.change(|raw| tools::answer(raw, name, value, Some(id)))
    }

    /// Opens the assistant's turn, where the model starts speaking. Idempotent; `generate` does it by itself where a
    /// turn stands last.
    pub fn cue(&mut self) -> &mut Self {
        self.change(chat::cue)
    }

    /// Closes the assistant's turn. Idempotent; what the model itself wrote of the closing tokens is not written again.
    pub fn seal(&mut self) -> &mut Self {
        self.change(chat::seal)
    }

    /// Adds token ids as they are. One outside the vocabulary is the error `invalid-token`, which is kept.
    pub fn append(&mut self, tokens: &[u32]) -> &mut Self {
        self.change(|raw| raw.append(tokens))
    }

    /// Adds the tokens of a text, control tokens in it included.
    pub fn append_text(&mut self, text: &str) -> &mut Self {
        self.change(|raw| raw.append_text(text))
    }

    /// Computes what is pending and buffered, and commits the full pages. With nothing to compute, no pass runs.
    /// It does not borrow the context. What is added while it runs stays in the buffer.
    ///
    /// # Errors
    /// A kept error; `context-busy` while another pass is under way; `context-full`, `out-of-pages`, `driver-failed`.
    pub fn flush(&self) -> impl Future<Output = Result<()>> + use<> {
        let shared = Rc::clone(self.shared());
        async move {
            shared.keeper.meet()?;
            let pass = shared.raw.flush();
            task::answer(pass).await
        }
    }

    /// Drops the last `n` tokens: the pending one first, then those in pages that are not committed. The buffer stays.
    ///
    /// # Errors
    /// A kept error; `truncate-range` where `n` reaches into committed pages; `context-busy` while a pass is under way.
    pub fn truncate(&mut self, n: u32) -> Result<()> {
        self.check()?;
        Ok(self.shared().raw.truncate(n)?)
    }

    /// The model that it is bound to.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// How many tokens a page holds.
    pub fn page_size(&self) -> u32 {
        self.shared().raw.page_size()
    }

    /// Tokens in pages, and the pending one; the buffer is not counted. 0 where the call fails: its error is kept.
    pub fn seq_len(&self) -> u32 {
        self.shared().keeper.value_of(self.shared().raw.seq_len())
    }

    /// How many of the tokens in pages were not computed for this context, because a program of the same user had
    /// computed the same before; a fork has the count of its original. It depends on what other programs did: do not
    /// let tokens follow from it. 0 where the call fails: its error is kept.
    pub fn cached_tokens(&self) -> u32 {
        let shared = self.shared();
        shared.keeper.value_of(shared.raw.cached_tokens())
    }

    /// The tokens that the program added and that no pass has taken. Empty where the call fails: its error is kept.
    pub fn buffer(&self) -> &[u32] {
        let tokens = self.shared().keeper.value_of(self.shared().raw.buffer());
        match self.shown.last() {
            _ if tokens.is_empty() => &[],
            Some(last) if last == tokens => last,
            _ => self.shown.push_get(tokens),
        }
    }

    /// Returns the error that an earlier call kept, once.
    ///
    /// # Errors
    /// That error.
    pub fn check(&self) -> Result<()> {
        self.shared().keeper.meet()
    }

    /// A generator that continues this context: where a chat turn stands last, by the assistant's next one. It runs
    /// nothing yet, and retires an older generator of this context.
    pub fn generate(&self, sampler: impl Into<Seeded>) -> Generator {
        Generator::new(Rc::clone(self.shared()), self.model.clone(), sampler.into())
    }

    /// Adds a user message, for the whole answer: `let answer = ctx.ask("Hello!").await?;`. It takes the likeliest
    /// tokens, and stays in the context, so that the next question follows it.
    ///
    /// # Errors
    /// Those of [`Generator::collect_text`].
    pub fn ask(&mut self, text: &str) -> impl Future<Output = Result<String>> + use<> {
        self.user(text);
        self.generate(Sampler::argmax()).collect_text()
    }

    /// A pass over this context that the program puts together by itself. Nothing runs before it is executed.
    pub fn forward(&self) -> Forward<'_> {
        Forward::new(Rc::clone(self.shared()))
    }

    /// The resource behind it, for operations on its pages.
    pub fn inner(&self) -> &RawContext {
        &self.raw
    }

    fn bind(raw: raw::Context, model: Model) -> Self {
        Self {
            raw: RawContext::new(raw),
            model,
            shown: FrozenVec::new(),
        }
    }

    fn shared(&self) -> &Rc<Shared> {
        self.raw.shared()
    }

    fn fill(&mut self, role: Role, text: &str) -> &mut Self {
        self.change(|raw| chat::fill(raw, role, text))
    }

    /// Changes the buffer, and keeps the error.
    fn change(
        &mut self,
        change: impl FnOnce(&raw::Context) -> std::result::Result<(), Error>,
    ) -> &mut Self {
        self.shown.as_mut().clear();
        let shared = self.shared();
        let changed = shared
            .check_filling()
            .and_then(|()| Ok(change(&shared.raw)?));
        shared.keeper.value_of(changed);
        self
    }
}

impl AsRef<RawContext> for Context {
    fn as_ref(&self) -> &RawContext {
        self.inner()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Context")
            .field("raw", &self.raw)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if Rc::strong_count(self.shared()) > 1 {
            self.shared().raw.release();
        }
    }
}
