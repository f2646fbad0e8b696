//! `pie:core/tokenizer`: the tokenizer of a model.

use std::sync::Arc;

use pie_text::Tokenizer;
use wasmtime::component::{HasSelf, Linker, Resource};

use super::bindings::pie::core::tokenizer::{self, HostTokenizer};
use super::{CallResult, counted, text_error, with_text};
use crate::process::state::ProcessState;

/// What stands behind a `tokenizer` handle.
pub struct TokenizerHandle(pub(crate) Arc<Tokenizer>);

/// Ids, and the bytes of each.
type Tokens = (Vec<u32>, Vec<Vec<u8>>);

impl tokenizer::Host for ProcessState {}

impl HostTokenizer for ProcessState {
    fn encode(
        &mut self,
        this: Resource<TokenizerHandle>,
        text: String,
    ) -> wasmtime::Result<Vec<u32>> {
        // The call has no error to give: what the tokenizer refuses (a text beyond its bound) ends the program by name.
        let tokenizer = &self.table.get(&this)?.0;
        Ok(with_text(&text, |text| tokenizer.encode(text)).map_err(text_error)?)
    }

    fn decode(&mut self, this: Resource<TokenizerHandle>, tokens: Vec<u32>) -> CallResult<String> {
        Ok(self
            .table
            .get(&this)?
            .0
            .decode(&tokens)
            .map_err(text_error)?)
    }

    fn vocabs(&mut self, this: Resource<TokenizerHandle>) -> wasmtime::Result<Tokens> {
        Ok(self.table.get(&this)?.0.vocabs())
    }

    fn special_tokens(&mut self, this: Resource<TokenizerHandle>) -> wasmtime::Result<Tokens> {
        Ok(self.table.get(&this)?.0.special_tokens())
    }

    fn split_regex(&mut self, this: Resource<TokenizerHandle>) -> wasmtime::Result<String> {
        Ok(self.table.get(&this)?.0.split_regex().to_owned())
    }

    fn drop(&mut self, this: Resource<TokenizerHandle>) -> wasmtime::Result<()> {
        self.count_drop();
        self.table.delete(this)?;
        Ok(())
    }
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    tokenizer::add_to_linker::<_, HasSelf<_>>(linker, counted)
}
