//! Decoders of programs: what they hold counts as memory of the program.

use pie_text::{ChatDecoder, ChatEvent, ReasoningDecoder, ReasoningEvent, ToolDecoder, ToolEvent};
use wasmtime::component::Resource;

use super::advancing::shown_tokens;
use super::bindings::pie::core::generation::FinishReason;
use super::errors::{CallError, CallResult};
use crate::errors::text_error;
use crate::process::handles::HandleTable;
use crate::process::record::ProcessRecord;
use crate::sandbox::memory::MemoryLimiter;

/// A decoder of `pie-text`.
pub(crate) trait Decode: Send + 'static {
    /// What tokens mean.
    type Event;

    /// Takes tokens.
    fn feed(&mut self, tokens: &[u32]) -> pie_text::Result<Self::Event>;

    /// Takes the last tokens of a turn, which a stop token ended or something else.
    fn feed_last(&mut self, tokens: &[u32], is_stopped: bool) -> pie_text::Result<Self::Event>;

    /// Whether the last of these tokens completes a stop text, and is no stop token.
    fn ends_by_text(&self, tokens: &[u32]) -> bool;

    /// Ends a turn that was begun.
    fn finish(&mut self) -> Self::Event;

    /// Forgets what was fed.
    fn reset(&mut self);

    /// Bytes of memory that it takes.
    fn held_bytes(&self) -> usize;

    /// The most that it takes once it was fed these tokens.
    fn most_bytes(&self, tokens: &[u32]) -> usize;
}

macro_rules! decode {
    ($($decoder:ty => $event:ty, $feed_stopped:ident, $ends_by_text:path;)+) => {
        $(impl Decode for $decoder {
            type Event = $event;

            fn feed(&mut self, tokens: &[u32]) -> pie_text::Result<Self::Event> {
                Self::feed(self, tokens)
            }

            fn feed_last(&mut self, tokens: &[u32], is_stopped: bool) -> pie_text::Result<Self::Event> {
                if is_stopped {
                    Self::$feed_stopped(self, tokens)
                } else {
                    Self::feed_last(self, tokens)
                }
            }

            fn ends_by_text(&self, tokens: &[u32]) -> bool {
                $ends_by_text(self, tokens)
            }

            fn finish(&mut self) -> Self::Event {
                Self::finish(self)
            }

            fn reset(&mut self) {
                Self::reset(self);
            }

            fn held_bytes(&self) -> usize {
                Self::held_bytes(self)
            }

            fn most_bytes(&self, tokens: &[u32]) -> usize {
                Self::most_bytes(self, tokens)
            }
        })+
    };
}

decode! {
    ChatDecoder => ChatEvent, feed_stopped, ChatDecoder::ends_by_text;
    ReasoningDecoder => ReasoningEvent, feed_last, knows_no_texts;
    ToolDecoder => ToolEvent, feed_last, knows_no_texts;
}

/// These decoders know no stop texts: for them the last token of a generation that stopped is a stop token.
const fn knows_no_texts<D>(_decoder: &D, _tokens: &[u32]) -> bool {
    false
}

/// What stands behind the handle of a decoder.
pub struct DecoderHandle<D> {
    decoder: D,
    /// What it is charged with in the memory of the program.
    charged_bytes: usize,
}

/// The decoders of a program.
pub(crate) struct Decoders<'a> {
    pub(crate) table: &'a mut HandleTable,
    pub(crate) memory: &'a mut MemoryLimiter,
    pub(crate) record: &'a ProcessRecord,
}

impl Decoders<'_> {
    /// Charges a new decoder, and gives it a handle.
    pub(crate) fn add<D: Decode>(
        &mut self,
        decoder: D,
    ) -> wasmtime::Result<Resource<DecoderHandle<D>>> {
        let charged_bytes = decoder.held_bytes();
        if !self.memory.recharge(0, charged_bytes) {
            return Err(self.memory.refusal(&self.record.limits));
        }
        Ok(self.table.push(DecoderHandle {
            decoder,
            charged_bytes,
        })?)
    }

    /// Has a decoder take tokens.
    ///
    /// # Errors
    /// Those of the decoder. Where the program may not hold what the tokens become, it is ended.
    pub(crate) fn feed<D: Decode>(
        &mut self,
        this: &Resource<DecoderHandle<D>>,
        tokens: &[u32],
    ) -> CallResult<D::Event> {
        let event = self.charged(this, tokens, |decoder| decoder.feed(tokens));
        Ok(event.map_err(CallError::Trap)?.map_err(text_error)?)
    }

    /// Has a decoder take what a step accepted: a stop token is not shown, nor a stop text, and a last step ends the
    /// turn.
    ///
    /// # Errors
    /// As [`Decoders::feed`].
    pub(crate) fn feed_output<D: Decode>(
        &mut self,
        this: &Resource<DecoderHandle<D>>,
        tokens: &[u32],
        finish: Option<FinishReason>,
    ) -> CallResult<D::Event> {
        let stops = matches!(finish, Some(FinishReason::Stop));
        let tokens = if stops && self.table.get(this)?.decoder.ends_by_text(tokens) {
            tokens
        } else {
            shown_tokens(tokens, finish)
        };
        let event = self.charged(this, tokens, |decoder| match finish {
            Some(_) => decoder.feed_last(tokens, stops),
            None => decoder.feed(tokens),
        });
        Ok(event.map_err(CallError::Trap)?.map_err(text_error)?)
    }

    /// Has a decoder end a turn that was begun.
    pub(crate) fn finish<D: Decode>(
        &mut self,
        this: &Resource<DecoderHandle<D>>,
    ) -> wasmtime::Result<D::Event> {
        self.charged(this, &[], D::finish)
    }

    /// Has a decoder forget.
    pub(crate) fn reset<D: Decode>(
        &mut self,
        this: &Resource<DecoderHandle<D>>,
    ) -> wasmtime::Result<()> {
        self.table.get_mut(this)?.decoder.reset();
        self.recharge(this, D::held_bytes)
    }

    /// Has a decoder take tokens, charged before and after.
    fn charged<D: Decode, T>(
        &mut self,
        this: &Resource<DecoderHandle<D>>,
        tokens: &[u32],
        call: impl FnOnce(&mut D) -> T,
    ) -> wasmtime::Result<T> {
        self.recharge(this, |decoder| decoder.most_bytes(tokens))?;
        let event = call(&mut self.table.get_mut(this)?.decoder);
        self.recharge(this, D::held_bytes)?;
        Ok(event)
    }

    /// Drops a decoder.
    pub(crate) fn drop<D: Decode>(
        &mut self,
        this: Resource<DecoderHandle<D>>,
    ) -> wasmtime::Result<()> {
        let handle = self.table.delete(this)?;
        self.memory.recharge(handle.charged_bytes, 0);
        Ok(())
    }

    /// Charges a decoder with so many bytes.
    fn recharge<D: Decode>(
        &mut self,
        this: &Resource<DecoderHandle<D>>,
        n_bytes: impl FnOnce(&D) -> usize,
    ) -> wasmtime::Result<()> {
        let handle = self.table.get_mut(this)?;
        let n_bytes = n_bytes(&handle.decoder);
        let before = std::mem::replace(&mut handle.charged_bytes, n_bytes);
        if self.memory.recharge(before, n_bytes) {
            return Ok(());
        }
        Err(self.memory.refusal(&self.record.limits))
    }
}
