//! `pie:instruct/chat`: chat turns by the template of the checkpoint, and the decoder of what the model says.

use std::sync::Arc;

use pie_text::{Chat, ChatDecoder, ChatEvent};
use wasmtime::component::{Linker, Resource};

use super::bindings::pie::core::generation::FinishReason;
use super::bindings::pie::instruct::chat::{self, HostDecoder, Role};
use super::context::ContextHandle;
use super::decoding::{DecoderHandle, Decoders};
use super::errors::CallResult;
use super::generation::GeneratorHandle;
use super::model::ModelHandle;
use super::view::view;
use crate::errors::text_error;
use crate::process::handles::HandleTable;
use crate::process::record::ProcessRecord;
use crate::process::state::ProcessState;
use crate::process::texts::Texts;
use crate::sandbox::memory::MemoryLimiter;

/// What stands behind a `decoder` handle.
pub type ChatDecoderHandle = DecoderHandle<ChatDecoder>;

view! {
    /// Conversations, decoders, which count as memory of the program, and what works on long texts.
    Chats { table: HandleTable, texts: Texts, memory: MemoryLimiter, record: Arc<ProcessRecord> }
}

impl Chats<'_> {
    fn chat_of(&self, model: &Resource<ModelHandle>) -> CallResult<Arc<Chat>> {
        Ok(self.table.get(model)?.0.chat().clone())
    }

    fn decoders(&mut self) -> Decoders<'_> {
        Decoders {
            table: self.table,
            memory: self.memory,
            record: self.record,
        }
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

impl chat::Host for Chats<'_> {
    async fn fill(
        &mut self,
        context: Resource<ContextHandle>,
        role: Role,
        text: String,
    ) -> CallResult<()> {
        let context = self.table.context(&context)?;
        context.model.check_text(text.len())?;
        let filled = self.texts.with(text, move |text| {
            let chat = context.model.chat();
            context.add(|turns, at| chat.fill(turns, at, text_role(role), text))
        });
        Ok(filled.await??)
    }

    fn cue(&mut self, context: Resource<ContextHandle>) -> CallResult<()> {
        let context = self.table.context(&context)?;
        Ok(context.add(|turns, at| context.model.chat().cue(turns, at))?)
    }

    fn seal(&mut self, context: Resource<ContextHandle>) -> CallResult<()> {
        let context = self.table.context(&context)?;
        Ok(context.add(|turns, at| context.model.chat().seal(turns, at))?)
    }

    async fn message_tokens(
        &mut self,
        model: Resource<ModelHandle>,
        role: Role,
        text: String,
    ) -> CallResult<Vec<u32>> {
        self.table.get(&model)?.0.check_text(text.len())?;
        let chat = self.chat_of(&model)?;
        let tokens = self
            .texts
            .with(text, move |text| chat.message_tokens(text_role(role), text));
        Ok(tokens.await?.map_err(text_error)?)
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

impl HostDecoder for Chats<'_> {
    fn create(
        &mut self,
        model: Resource<ModelHandle>,
    ) -> wasmtime::Result<Resource<ChatDecoderHandle>> {
        let decoder = ChatDecoder::new(self.table.get(&model)?.0.chat().clone());
        self.decoders().add(decoder)
    }

    fn create_hiding(
        &mut self,
        model: Resource<ModelHandle>,
        thoughts: bool,
        calls: bool,
    ) -> wasmtime::Result<Resource<ChatDecoderHandle>> {
        let chat = self.table.get(&model)?.0.chat().clone();
        self.decoders()
            .add(ChatDecoder::hiding(chat, thoughts, calls))
    }

    fn create_for(
        &mut self,
        generator: Resource<GeneratorHandle>,
        thoughts: bool,
        calls: bool,
    ) -> wasmtime::Result<Resource<ChatDecoderHandle>> {
        let decoder = self.table.get(&generator)?.decoder(thoughts, calls);
        self.decoders().add(decoder)
    }

    fn feed(
        &mut self,
        this: Resource<ChatDecoderHandle>,
        tokens: Vec<u32>,
    ) -> CallResult<chat::Event> {
        let event = self.decoders().feed(&this, &tokens)?;
        Ok(wit_event(event))
    }

    fn feed_output(
        &mut self,
        this: Resource<ChatDecoderHandle>,
        tokens: Vec<u32>,
        finish: Option<FinishReason>,
    ) -> CallResult<chat::Event> {
        let event = self.decoders().feed_output(&this, &tokens, finish)?;
        Ok(wit_event(event))
    }

    fn finish(&mut self, this: Resource<ChatDecoderHandle>) -> wasmtime::Result<chat::Event> {
        let event = self.decoders().finish(&this)?;
        Ok(wit_event(event))
    }

    fn reset(&mut self, this: Resource<ChatDecoderHandle>) -> wasmtime::Result<()> {
        self.decoders().reset(&this)
    }

    fn drop(&mut self, this: Resource<ChatDecoderHandle>) -> wasmtime::Result<()> {
        self.decoders().drop(this)
    }
}

fn wit_event(event: ChatEvent) -> chat::Event {
    match event {
        ChatEvent::Idle => chat::Event::Idle,
        ChatEvent::Delta(text) => chat::Event::Delta(text),
        ChatEvent::Done(text) => chat::Event::Done(text),
        ChatEvent::Interrupt(token) => chat::Event::Interrupt(token),
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
    chat::add_to_linker::<_, Chats<'static>>(linker, Chats::of)
}
