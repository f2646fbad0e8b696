//! `pie:core/tokenizer`: the tokenizer of a model.

use std::sync::Arc;

use pie_core::ErrorCode;
use pie_text::Chat;
use pie_text::limits::MAX_TEXT_BYTES;
use wasmtime::component::{Linker, Resource};

use super::bindings::pie::core::tokenizer::{self, HostTokenizer};
use super::errors::{CallError, CallResult};
use super::view::view;
use crate::Error;
use crate::errors::text_error;
use crate::process::handles::HandleTable;
use crate::process::state::ProcessState;
use crate::process::texts::Texts;

/// What stands behind a `tokenizer` handle: with the chat side of its model, which knows the stop tokens.
pub struct TokenizerHandle(pub(crate) Arc<Chat>);

/// Ids, and the bytes of each.
type Tokens = (Vec<u32>, Vec<Vec<u8>>);

view! {
    /// Tokenizers, and what works on long texts.
    Tokenizers { table: HandleTable, texts: Texts }
}

impl tokenizer::Host for Tokenizers<'_> {}

impl HostTokenizer for Tokenizers<'_> {
    async fn encode(
        &mut self,
        this: Resource<TokenizerHandle>,
        text: String,
    ) -> wasmtime::Result<Vec<u32>> {
        // The call has no error to give: a text beyond the bound of the tokenizer ends the program by name.
        self.try_encode(this, text)
            .await
            .map_err(|error| match error {
                CallError::Guest(error) => error.into(),
                CallError::Trap(error) => error,
            })
    }

    async fn try_encode(
        &mut self,
        this: Resource<TokenizerHandle>,
        text: String,
    ) -> CallResult<Vec<u32>> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(too_long(text.len()).into());
        }
        let tokenizer = self.table.get(&this)?.0.tokenizer().clone();
        let tokens = self.texts.with(text, move |text| tokenizer.encode(text));
        Ok(tokens.await?.map_err(text_error)?)
    }

    fn decode(&mut self, this: Resource<TokenizerHandle>, tokens: Vec<u32>) -> CallResult<String> {
        let tokenizer = self.table.get(&this)?.0.tokenizer();
        // The bytes of the tokens, and the text that they make.
        let n_bytes = 2 * tokenizer.text_bytes(&tokens).min(4 * MAX_TEXT_BYTES);
        let charge = self.texts.charge(n_bytes)?;
        let text = tokenizer.decode(&tokens).map_err(text_error)?;
        drop(charge);
        Ok(text)
    }

    fn vocab_size(&mut self, this: Resource<TokenizerHandle>) -> wasmtime::Result<u32> {
        Ok(self.table.get(&this)?.0.tokenizer().vocab_size())
    }

    fn vocabs(&mut self, this: Resource<TokenizerHandle>) -> wasmtime::Result<Tokens> {
        Ok(self.table.get(&this)?.0.tokenizer().vocabs())
    }

    fn special_tokens(&mut self, this: Resource<TokenizerHandle>) -> wasmtime::Result<Tokens> {
        Ok(self.table.get(&this)?.0.tokenizer().special_tokens())
    }

    fn split_regex(&mut self, this: Resource<TokenizerHandle>) -> wasmtime::Result<String> {
        Ok(self
            .table
            .get(&this)?
            .0
            .tokenizer()
            .split_regex()
            .to_owned())
    }

    fn drop(&mut self, this: Resource<TokenizerHandle>) -> wasmtime::Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

fn too_long(n_bytes: usize) -> Error {
    Error::new(
        ErrorCode::LimitMessage,
        format!(
            "a text of {n_bytes} bytes is longer than the {MAX_TEXT_BYTES} that one encode takes; encode it in parts"
        ),
    )
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    tokenizer::add_to_linker::<_, Tokenizers<'static>>(linker, Tokenizers::of)
}
