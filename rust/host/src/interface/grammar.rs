//! `pie:core/grammar`: grammars, and the matchers that walk them.

use std::sync::Arc;

use pie_text::grammar::{Grammar, Matcher};
use wasmtime::component::{Linker, Resource};

use super::bindings::pie::core::grammar::{self, HostGrammar, HostMatcher, Source};
use super::errors::CallResult;
use super::tokenizer::TokenizerHandle;
use super::view::view;
use crate::Error;
use crate::budget::{Charge, Purpose};
use crate::errors::{stopped, text_error};
use crate::model::grammars::OwnedSource;
use crate::process::handles::HandleTable;
use crate::process::record::ProcessRecord;
use crate::process::state::ProcessState;
use crate::process::surroundings::Surroundings;

/// What stands behind a `grammar` handle.
#[derive(Debug)]
pub struct GrammarHandle {
    grammar: Arc<Grammar>,
    _charge: Charge,
}

/// What stands behind a `matcher` handle.
#[derive(Debug)]
pub struct MatcherHandle {
    pub(super) matcher: Matcher,
    charge: Charge,
}

/// What checking or compiling a grammar takes at most beside what is kept of it.
const WORK_BYTES: u64 = 64 << 20;

view! {
    /// Grammars and matchers, who pays for them, and where they are checked and compiled.
    Grammars { table: HandleTable, record: Arc<ProcessRecord>, surroundings: Arc<Surroundings> }
}

impl Grammars<'_> {
    fn charge(&self, n_bytes: usize) -> Result<Charge, Error> {
        self.record.account.charge(Purpose::Options, n_bytes as u64)
    }

    fn push(&mut self, matcher: Matcher) -> CallResult<Resource<MatcherHandle>> {
        let charge = self.charge(matcher.n_bytes())?;
        Ok(self.table.push(MatcherHandle { matcher, charge })?)
    }
}

/// Runs long work on threads of low priority, where users take turns.
///
/// # Errors
/// `limit-engine-memory`, `limit-queue`, `engine-stopped`.
async fn apart<T: Send + 'static>(
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
        let grammar = match self.surroundings.grammars.known(&source) {
            Some(known) => known?,
            None => {
                apart(self.record.clone(), self.surroundings.clone(), move |it| {
                    it.grammars.check(&source)
                })
                .await??
            }
        };
        drop(held);
        let charge = self.charge(grammar.n_bytes())?;
        let handle = GrammarHandle {
            grammar,
            _charge: charge,
        };
        Ok(self.table.push(handle)?)
    }

    async fn matcher(
        &mut self,
        this: Resource<GrammarHandle>,
        tokenizer: Resource<TokenizerHandle>,
    ) -> CallResult<Resource<MatcherHandle>> {
        let grammar = self.table.get(&this)?.grammar.clone();
        let chat = self.table.get(&tokenizer)?.0.clone();
        let compiled = match self.surroundings.grammars.known_compiled(&chat, &grammar) {
            Some(known) => known?,
            None => {
                let chat = chat.clone();
                apart(self.record.clone(), self.surroundings.clone(), move |it| {
                    it.grammars.compile(&chat, &grammar)
                })
                .await??
            }
        };
        let mut stop = chat.end_tokens().to_vec();
        stop.extend(chat.stop_tokens().unwrap_or_default());
        self.push(Matcher::new(&compiled, stop))
    }

    fn drop(&mut self, this: Resource<GrammarHandle>) -> wasmtime::Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

impl HostMatcher for Grammars<'_> {
    fn mask(&mut self, this: Resource<MatcherHandle>) -> CallResult<Vec<u32>> {
        let mask = self.table.get_mut(&this)?.matcher.mask();
        Ok(mask.map_err(text_error)?.runs())
    }

    fn accept(&mut self, this: Resource<MatcherHandle>, tokens: Vec<u32>) -> CallResult<()> {
        let handle = self.table.get_mut(&this)?;
        handle.matcher.accept(&tokens).map_err(text_error)?;
        handle.charge.resize(handle.matcher.n_bytes() as u64)?;
        Ok(())
    }

    fn forced(&mut self, this: Resource<MatcherHandle>) -> CallResult<Vec<u32>> {
        let forced = self.table.get_mut(&this)?.matcher.forced();
        Ok(forced.map_err(text_error)?.iter().copied().collect())
    }

    fn is_terminated(&mut self, this: Resource<MatcherHandle>) -> wasmtime::Result<bool> {
        Ok(self.table.get(&this)?.matcher.is_terminated())
    }

    fn reset(&mut self, this: Resource<MatcherHandle>) -> CallResult<()> {
        self.table.get_mut(&this)?.matcher.reset();
        Ok(())
    }

    fn fork(&mut self, this: Resource<MatcherHandle>) -> CallResult<Resource<MatcherHandle>> {
        let copy = self.table.get(&this)?.matcher.clone();
        self.push(copy)
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
