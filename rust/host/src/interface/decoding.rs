//! Decoders of programs: what they hold counts as memory of the program.

use wasmtime::component::Resource;

use crate::process::handles::HandleTable;
use crate::process::record::ProcessRecord;
use crate::sandbox::memory::MemoryLimiter;

/// A decoder of `pie-text`.
pub(crate) trait Decode: Send + 'static {
    /// Bytes of memory that it takes.
    fn held_bytes(&self) -> usize;

    /// The most that it takes once it was fed these tokens.
    fn most_bytes(&self, tokens: &[u32]) -> usize;
}

macro_rules! decode {
    ($($decoder:ty),+) => {
        $(impl Decode for $decoder {
            fn held_bytes(&self) -> usize {
                Self::held_bytes(self)
            }

            fn most_bytes(&self, tokens: &[u32]) -> usize {
                Self::most_bytes(self, tokens)
            }
        })+
    };
}

decode!(
    pie_text::ChatDecoder,
    pie_text::ReasoningDecoder,
    pie_text::ToolDecoder
);

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

    /// Lets a decoder take tokens, charged before and after.
    pub(crate) fn take<D: Decode, T>(
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

    /// Lets a decoder forget.
    pub(crate) fn reset<D: Decode>(
        &mut self,
        this: &Resource<DecoderHandle<D>>,
        reset: impl FnOnce(&mut D),
    ) -> wasmtime::Result<()> {
        reset(&mut self.table.get_mut(this)?.decoder);
        self.recharge(this, D::held_bytes)
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
