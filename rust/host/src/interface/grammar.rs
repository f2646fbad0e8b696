//! `pie:core/grammar`: grammars, and the matchers that walk them.

use std::sync::Arc;

use pie_core::ErrorCode;
use pie_text::grammar::{Grammar, Matcher};
use tokio::task::yield_now;
use wasmtime::component::{Linker, Resource};

use super::bindings::pie::core::grammar::{self, HostGrammar, HostMatcher, Source};
use super::errors::CallResult;
use super::tokenizer::TokenizerHandle;
use super::view::view;
use crate::Error;
use crate::budget::{Account, Charge, Purpose};
use crate::errors::{stopped, text_error};
use crate::model::grammars::OwnedSource;
use crate::model::held_grammars::{HeldCompiled, HeldGrammar};
use crate::process::handles::HandleTable;
use crate::process::record::ProcessRecord;
use crate::process::state::ProcessState;
use crate::process::surroundings::Surroundings;

/// What stands behind a `grammar` handle.
#[derive(Debug)]
pub struct GrammarHandle(HeldGrammar);

/// What stands behind a `matcher` handle.
#[derive(Debug)]
pub struct MatcherHandle {
    pub(super) matcher: Matcher,
    pub(super) compiled: Arc<HeldCompiled>,
    charge: Charge,
}

impl MatcherHandle {
    /// One that its holder is charged for.
    ///
    /// # Errors
    /// `limit-engine-memory`.
    fn new(account: &Account, compiled: Arc<HeldCompiled>, stop: Vec<u32>) -> Result<Self, Error> {
        let matcher = compiled.matcher(stop);
        let n_bytes = matcher.n_bytes() as u64;
        Ok(Self {
            charge: account.charge(Purpose::Options, n_bytes)?,
            compiled,
            matcher,
        })
    }

    /// A copy at the same place, charged before it is made.
    ///
    /// # Errors
    /// `limit-engine-memory`.
    fn fork(&self, account: &Account) -> Result<Self, Error> {
        let n_bytes = self.matcher.n_bytes() as u64;
        Ok(Self {
            charge: account.charge(Purpose::Options, n_bytes)?,
            compiled: self.compiled.clone(),
            matcher: self.matcher.clone(),
        })
    }

    /// Lets the matcher find what may follow, or go on by one token. It is charged before with the most that this
    /// takes.
    ///
    /// # Errors
    /// `limit-engine-memory`, and the matcher stays as it was; those of `step`.
    fn step<T>(
        &mut self,
        step: impl FnOnce(&mut Matcher) -> pie_text::Result<T>,
    ) -> Result<T, Error> {
        self.charge.grow(Matcher::STEP_BYTES as u64)?;
        let done = step(&mut self.matcher);
        self.charge.resize(self.matcher.n_bytes() as u64)?;
        done.map_err(text_error)
    }
}

/// What checking or compiling a grammar takes at most beside what is kept of it.
const WORK_BYTES: u64 = 64 << 20;
/// The most tokens that a matcher accepts at once.
const MAX_ACCEPTED: usize = 1 << 16;
/// How many of them it takes before other programs have their turn.
const TOKENS_A_TURN: usize = 32;

view! {
    /// Grammars and matchers, who pays for them, and where they are checked and compiled.
    Grammars { table: HandleTable, record: Arc<ProcessRecord>, surroundings: Arc<Surroundings> }
}

impl Grammars<'_> {
    fn charge(&self, n_bytes: usize) -> Result<Charge, Error> {
        self.record.account.charge(Purpose::Options, n_bytes as u64)
    }
}

impl GrammarHandle {
    /// One that its holder is charged for.
    ///
    /// # Errors
    /// `limit-engine-memory`.
    pub(super) fn new(record: &ProcessRecord, grammar: Arc<Grammar>) -> Result<Self, Error> {
        Ok(Self(HeldGrammar::new(&record.account, grammar)?))
    }
}

/// Runs long work on threads of low priority, where users take turns. What has begun is done to its end, also where the
/// process ends, and has its turn and its charge until then.
///
/// # Errors
/// `limit-engine-memory`, `limit-queue`, `engine-stopped`.
pub(super) async fn apart<T: Send + 'static>(
    record: Arc<ProcessRecord>,
    surroundings: Arc<Surroundings>,
    work: impl FnOnce(&Surroundings) -> T + Send + 'static,
) -> Result<T, Error> {
    let turn = surroundings.encoding.take(&record.username).await?;
    let charge = record.account.charge(Purpose::Text, WORK_BYTES)?;
    let background = surroundings.background.clone();
    let done = background.spawn_blocking(move || {
        let done = work(&surroundings);
        drop((charge, turn));
        done
    });
    done.await.map_err(|error| {
        if error.is_panic() {
            Error::internal("the engine met a fault of its own while it compiled a grammar; what it printed on stderr says more")
        } else {
            stopped()
        }
    })
}

impl grammar::Host for Grammars<'_> {}

impl HostGrammar for Grammars<'_> {
    async fn create(&mut self, source: Source) -> CallResult<Resource<GrammarHandle>> {
        let source = match source {
            Source::JsonSchema(text) => OwnedSource::JsonSchema(text),
            Source::AnyJson => OwnedSource::AnyJson,
            Source::Regex(text) => OwnedSource::Regex(text),
            Source::Ebnf(text) => OwnedSource::Ebnf(text),
        };
        let held = self.charge(2 * source.n_bytes())?;
        let record = self.record.clone();
        let known = self.surroundings.grammars.known(&record.username, &source);
        let grammar = match known {
            Some(known) => known?,
            None => {
                apart(self.record.clone(), self.surroundings.clone(), move |it| {
                    it.grammars.check(&record.username, &source)
                })
                .await??
            }
        };
        drop(held);
        Ok(self.table.push(GrammarHandle::new(self.record, grammar)?)?)
    }

    async fn matcher(
        &mut self,
        this: Resource<GrammarHandle>,
        tokenizer: Resource<TokenizerHandle>,
    ) -> CallResult<Resource<MatcherHandle>> {
        let grammar = self.table.get(&this)?.0.grammar.clone();
        let chat = self.table.get(&tokenizer)?.0.clone();
        let record = self.record.clone();
        let grammars = &self.surroundings.grammars;
        let known = grammars.known_compiled(&record.username, &chat, &grammar);
        let compiled = match known {
            Some(known) => known?,
            None => {
                let chat = chat.clone();
                apart(self.record.clone(), self.surroundings.clone(), move |it| {
                    it.grammars.compile(&record.username, &chat, &grammar)
                })
                .await??
            }
        };
        let mut stop = chat.end_tokens().to_vec();
        stop.extend(chat.stop_tokens().unwrap_or_default());
        let account = &self.record.account;
        let compiled = self.table.get_mut(&this)?.0.hold(account, compiled)?;
        let handle = MatcherHandle::new(account, compiled, stop)?;
        Ok(self.table.push(handle)?)
    }

    fn drop(&mut self, this: Resource<GrammarHandle>) -> wasmtime::Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

impl HostMatcher for Grammars<'_> {
    fn mask(&mut self, this: Resource<MatcherHandle>) -> CallResult<Vec<u32>> {
        let mask = self.table.get_mut(&this)?.step(Matcher::mask)?;
        Ok(mask.runs())
    }

    async fn accept(&mut self, this: Resource<MatcherHandle>, tokens: Vec<u32>) -> CallResult<()> {
        let matcher = self.table.get_mut(&this)?;
        match tokens.as_slice() {
            [] => {}
            [token] => matcher.step(|it| it.accept(&[*token]))?,
            tokens => {
                if tokens.len() > MAX_ACCEPTED {
                    return Err(Error::new(
                        ErrorCode::InvalidArgument,
                        format!(
                            "{} tokens are more than a matcher accepts at once, and the limit is {MAX_ACCEPTED}; give \
                             them in parts",
                            tokens.len()
                        ),
                    )
                    .into());
                }
                // A copy goes on, so that none is taken where one does not fit.
                let mut next = matcher.fork(&self.record.account)?;
                for part in tokens.chunks(TOKENS_A_TURN) {
                    for token in part {
                        next.step(|it| it.accept(&[*token]))?;
                    }
                    yield_now().await;
                }
                *matcher = next;
            }
        }
        Ok(())
    }

    fn forced(&mut self, this: Resource<MatcherHandle>) -> CallResult<Vec<u32>> {
        let matcher = self.table.get_mut(&this)?;
        let forced = matcher.step(|it| Ok(it.forced()?.iter().copied().collect()))?;
        Ok(forced)
    }

    fn is_terminated(&mut self, this: Resource<MatcherHandle>) -> wasmtime::Result<bool> {
        Ok(self.table.get(&this)?.matcher.is_terminated())
    }

    fn reset(&mut self, this: Resource<MatcherHandle>) -> CallResult<()> {
        let reset = |matcher: &mut Matcher| {
            matcher.reset();
            Ok(())
        };
        Ok(self.table.get_mut(&this)?.step(reset)?)
    }

    fn fork(&mut self, this: Resource<MatcherHandle>) -> CallResult<Resource<MatcherHandle>> {
        let copy = self.table.get(&this)?.fork(&self.record.account)?;
        Ok(self.table.push(copy)?)
    }

    fn drop(&mut self, this: Resource<MatcherHandle>) -> wasmtime::Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    grammar::add_to_linker::<_, Grammars<'static>>(linker, Grammars::of)
}
