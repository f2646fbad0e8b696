//! `pie:instruct/chat`: chat turns by the template of the checkpoint, and the decoder of what the model says.

use std::sync::Arc;

use pie_text::{Chat, ChatDecoder, ChatEvent};
use wasmtime::component::{HasSelf, Linker, Resource};

use super::bindings::pie::instruct::chat::{self, HostDecoder, Role};
use super::context::ContextHandle;
use super::model::ModelHandle;
use super::{CallResult, counted, text_error, with_text};
use crate::process::state::ProcessState;

/// What stands behind a `decoder` handle.
pub struct DecoderHandle(ChatDecoder);

impl ProcessState {
    fn chat_of(&self, model: &Resource<ModelHandle>) -> CallResult<Arc<Chat>> {
        Ok(self.table.get(model)?.0.chat().clone())
    }

    /// The tokens that `call` makes with the chat template of a model.
    fn chat_tokens(
        &self,
        model: &Resource<ModelHandle>,
        call: impl FnOnce(&Chat) -> pie_text::Result<Vec<u32>>,
    ) -> CallResult<Vec<u32>> {
        Ok(call(&*self.chat_of(model)?).map_err(text_error)?)
    }
}

impl chat::Host for ProcessState {
    fn fill(
        &mut self,
        context: Resource<ContextHandle>,
        role: Role,
        text: String,
    ) -> CallResult<()> {
        let context = self.context(&context)?;
        let chat = context.model.chat();
        Ok(with_text(&text, |text| {
            context.add(|turns, at| chat.fill(turns, at, text_role(role), text))
        })?)
    }

    fn cue(&mut self, context: Resource<ContextHandle>) -> CallResult<()> {
        let context = self.context(&context)?;
        Ok(context.add(|turns, at| context.model.chat().cue(turns, at))?)
    }

    fn seal(&mut self, context: Resource<ContextHandle>) -> CallResult<()> {
        let context = self.context(&context)?;
        Ok(context.add(|turns, at| context.model.chat().seal(turns, at))?)
    }

    fn message_tokens(
        &mut self,
        model: Resource<ModelHandle>,
        role: Role,
        text: String,
    ) -> CallResult<Vec<u32>> {
        with_text(&text, |text| {
            self.chat_tokens(&model, |chat| chat.message_tokens(text_role(role), text))
        })
    }

    fn cue_tokens(&mut self, model: Resource<ModelHandle>) -> CallResult<Vec<u32>> {
        self.chat_tokens(&model, |chat| chat.cue_tokens().map(<[u32]>::to_vec))
    }

    fn seal_tokens(&mut self, model: Resource<ModelHandle>) -> CallResult<Vec<u32>> {
        self.chat_tokens(&model, |chat| chat.seal_tokens().map(<[u32]>::to_vec))
    }

    fn stop_tokens(&mut self, model: Resource<ModelHandle>) -> CallResult<Vec<u32>> {
        self.chat_tokens(&model, |chat| chat.stop_tokens().map(<[u32]>::to_vec))
    }
}

impl HostDecoder for ProcessState {
    fn create(
        &mut self,
        model: Resource<ModelHandle>,
    ) -> wasmtime::Result<Resource<DecoderHandle>> {
        let chat = self.table.get(&model)?.0.chat().clone();
        Ok(self.table.push(DecoderHandle(ChatDecoder::new(chat)))?)
    }

    fn feed(&mut self, this: Resource<DecoderHandle>, tokens: Vec<u32>) -> CallResult<chat::Event> {
        let event = self
            .table
            .get_mut(&this)?
            .0
            .feed(&tokens)
            .map_err(text_error)?;
        Ok(match event {
            ChatEvent::Idle => chat::Event::Idle,
            ChatEvent::Delta(text) => chat::Event::Delta(text),
            ChatEvent::Done(text) => chat::Event::Done(text),
            ChatEvent::Interrupt(token) => chat::Event::Interrupt(token),
        })
    }

    fn reset(&mut self, this: Resource<DecoderHandle>) -> wasmtime::Result<()> {
        self.table.get_mut(&this)?.0.reset();
        Ok(())
    }

    fn drop(&mut self, this: Resource<DecoderHandle>) -> wasmtime::Result<()> {
        self.count_drop();
        self.table.delete(this)?;
        Ok(())
    }
}

fn text_role(role: Role) -> pie_text::Role {
    match role {
        Role::System => pie_text::Role::System,
        Role::User => pie_text::Role::User,
        Role::Assistant => pie_text::Role::Assistant,
    }
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    chat::add_to_linker::<_, HasSelf<_>>(linker, counted)
}
