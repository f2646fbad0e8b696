//! `pie:instruct/reasoning`: what the model thinks, told from what it says.

use std::sync::Arc;

use pie_text::{ReasoningDecoder, ReasoningEvent};
use wasmtime::component::{Linker, Resource};

use super::bindings::pie::core::generation::FinishReason;
use super::bindings::pie::instruct::reasoning::{self, HostReasoningDecoder};
use super::decoding::{DecoderHandle, Decoders};
use super::errors::CallResult;
use super::model::ModelHandle;
use super::view::view;
use crate::process::handles::HandleTable;
use crate::process::record::ProcessRecord;
use crate::process::state::ProcessState;
use crate::sandbox::memory::MemoryLimiter;

/// What stands behind a `reasoning-decoder` handle.
pub type ReasoningDecoderHandle = DecoderHandle<ReasoningDecoder>;

view! {
    /// Decoders, which count as memory of the program.
    Reasoning { table: HandleTable, memory: MemoryLimiter, record: Arc<ProcessRecord> }
}

impl Reasoning<'_> {
    fn decoders(&mut self) -> Decoders<'_> {
        Decoders {
            table: self.table,
            memory: self.memory,
            record: self.record,
        }
    }
}

impl reasoning::Host for Reasoning<'_> {}

impl HostReasoningDecoder for Reasoning<'_> {
    fn create(
        &mut self,
        model: Resource<ModelHandle>,
    ) -> wasmtime::Result<Resource<ReasoningDecoderHandle>> {
        let decoder = ReasoningDecoder::new(self.table.get(&model)?.0.chat().clone());
        self.decoders().add(decoder)
    }

    fn feed(
        &mut self,
        this: Resource<ReasoningDecoderHandle>,
        tokens: Vec<u32>,
    ) -> CallResult<reasoning::ReasoningEvent> {
        let event = self.decoders().feed(&this, &tokens)?;
        Ok(wit_event(event))
    }

    fn feed_output(
        &mut self,
        this: Resource<ReasoningDecoderHandle>,
        tokens: Vec<u32>,
        finish: Option<FinishReason>,
    ) -> CallResult<reasoning::ReasoningEvent> {
        let event = self.decoders().feed_output(&this, &tokens, finish)?;
        Ok(wit_event(event))
    }

    fn finish(
        &mut self,
        this: Resource<ReasoningDecoderHandle>,
    ) -> wasmtime::Result<reasoning::ReasoningEvent> {
        let event = self.decoders().finish(&this)?;
        Ok(wit_event(event))
    }

    fn reset(&mut self, this: Resource<ReasoningDecoderHandle>) -> wasmtime::Result<()> {
        self.decoders().reset(&this)
    }

    fn drop(&mut self, this: Resource<ReasoningDecoderHandle>) -> wasmtime::Result<()> {
        self.decoders().drop(this)
    }
}

fn wit_event(event: ReasoningEvent) -> reasoning::ReasoningEvent {
    match event {
        ReasoningEvent::Idle => reasoning::ReasoningEvent::Idle,
        ReasoningEvent::Start => reasoning::ReasoningEvent::Start,
        ReasoningEvent::Delta(text) => reasoning::ReasoningEvent::Delta(text),
        ReasoningEvent::End(text) => reasoning::ReasoningEvent::End(text),
    }
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    reasoning::add_to_linker::<_, Reasoning<'static>>(linker, Reasoning::of)
}
