//! `pie:instruct/tools`: what tools the model is given, the calls that it makes, and their answers.

use std::sync::Arc;

use pie_core::ErrorCode;
use pie_text::{Answer, Call, Chat, ToolChoice, ToolDecoder, ToolEvent, ToolList};
use wasmtime::component::{Linker, Resource};

use super::bindings::pie::core::generation::FinishReason;
use super::bindings::pie::instruct::tools::{self, HostToolDecoder};
use super::context::ContextHandle;
use super::decoding::{DecoderHandle, Decoders};
use super::errors::CallResult;
use super::grammar::{GrammarHandle, apart};
use super::model::ModelHandle;
use super::view::view;
use crate::Error;
use crate::errors::text_error;
use crate::model::grammars::NativeDigest;
use crate::process::handles::HandleTable;
use crate::process::record::ProcessRecord;
use crate::process::state::ProcessState;
use crate::process::surroundings::Surroundings;
use crate::process::texts::Texts;
use crate::sandbox::memory::MemoryLimiter;

/// What stands behind a `tool-decoder` handle.
pub type ToolDecoderHandle = DecoderHandle<ToolDecoder>;

view! {
    /// Conversations, decoders, which count as memory of the program, what works on long texts, and where grammars are
    /// made.
    Tools {
        table: HandleTable,
        texts: Texts,
        memory: MemoryLimiter,
        record: Arc<ProcessRecord>,
        surroundings: Arc<Surroundings>,
    }
}

impl Tools<'_> {
    fn decoders(&mut self) -> Decoders<'_> {
        Decoders {
            table: self.table,
            memory: self.memory,
            record: self.record,
        }
    }

    fn chat_of(&self, model: &Resource<ModelHandle>, n_bytes: usize) -> CallResult<Arc<Chat>> {
        let model = &self.table.get(model)?.0;
        model.check_text(n_bytes)?;
        Ok(model.chat().clone())
    }
}

impl Tools<'_> {
    /// The grammar of the calls of a model, made apart where the user's programs did not ask for it before; none where
    /// its calls cannot be enforced.
    async fn native(
        &mut self,
        chat: Arc<Chat>,
        asked: NativeDigest,
        tools: impl FnOnce() -> pie_text::Result<ToolList> + Send + 'static,
        choice: ToolChoice,
    ) -> CallResult<Option<Resource<GrammarHandle>>> {
        let record = self.record.clone();
        let grammars = &self.surroundings.grammars;
        let made = match grammars.known_native(&record.username, &chat, &asked) {
            Some(known) => known?,
            None => {
                apart(self.record.clone(), self.surroundings.clone(), move |it| {
                    let user = &record.username;
                    it.grammars.make_native(user, &chat, &asked, tools, &choice)
                })
                .await??
            }
        };
        let Some(grammar) = made else {
            return Ok(None);
        };
        let handle = GrammarHandle::new(self.record, grammar)?;
        Ok(Some(self.table.push(handle)?))
    }
}

/// The bytes of schemas.
fn n_bytes(schemas: &[String]) -> usize {
    schemas.iter().map(String::len).sum()
}

impl tools::Host for Tools<'_> {
    async fn equip(
        &mut self,
        context: Resource<ContextHandle>,
        schemas: Vec<String>,
    ) -> CallResult<()> {
        let context = self.table.context(&context)?;
        context.model.check_text(n_bytes(&schemas))?;
        // The list is read where its text is charged: what it takes follows from its length.
        let equipped = self.texts.with(schemas.concat(), move |_| {
            let tools = ToolList::parse(&schemas).map_err(text_error)?;
            let chat = context.model.chat();
            context.add(|turns, at| chat.equip(turns, at, &tools))
        });
        Ok(equipped.await??)
    }

    async fn answer(
        &mut self,
        context: Resource<ContextHandle>,
        name: String,
        value: String,
        id: Option<String>,
    ) -> CallResult<()> {
        let context = self.table.context(&context)?;
        context.model.check_text(value.len())?;
        let answer = Answer::new(&name, id.as_deref()).map_err(text_error)?;
        let answered = self.texts.with(value, move |value| {
            let chat = context.model.chat();
            context.add(|turns, at| chat.answer(turns, at, &answer, value))
        });
        Ok(answered.await??)
    }

    async fn equip_tokens(
        &mut self,
        model: Resource<ModelHandle>,
        schemas: Vec<String>,
    ) -> CallResult<Vec<u32>> {
        let chat = self.chat_of(&model, n_bytes(&schemas))?;
        let tokens = self.texts.with(schemas.concat(), move |_| {
            chat.equip_tokens(&ToolList::parse(&schemas)?)
        });
        Ok(tokens.await?.map_err(text_error)?)
    }

    async fn answer_tokens(
        &mut self,
        model: Resource<ModelHandle>,
        name: String,
        value: String,
        id: Option<String>,
    ) -> CallResult<Vec<u32>> {
        let chat = self.chat_of(&model, value.len())?;
        let answer = Answer::new(&name, id.as_deref()).map_err(text_error)?;
        let tokens = self
            .texts
            .with(value, move |value| chat.answer_tokens(&answer, value));
        Ok(tokens.await?.map_err(text_error)?)
    }

    async fn parse_call(
        &mut self,
        model: Resource<ModelHandle>,
        text: String,
    ) -> CallResult<Option<tools::ToolCall>> {
        let chat = self.chat_of(&model, text.len())?;
        let call = self.texts.with(text, move |text| chat.parse_call(text));
        Ok(call.await?.map_err(text_error)?.map(wit_call))
    }

    async fn native_grammar(
        &mut self,
        model: Resource<ModelHandle>,
        schemas: Vec<String>,
        choice: tools::ToolChoice,
    ) -> CallResult<Option<Resource<GrammarHandle>>> {
        let chat = self.chat_of(&model, n_bytes(&schemas))?;
        let _held = self.texts.charge(n_bytes(&schemas))?;
        let choice = text_choice(choice);
        let asked = NativeDigest::of_schemas(&schemas, &choice);
        self.native(chat, asked, move || ToolList::parse(&schemas), choice)
            .await
    }

    async fn choice_grammar(
        &mut self,
        context: Resource<ContextHandle>,
        choice: tools::ToolChoice,
    ) -> CallResult<Option<Resource<GrammarHandle>>> {
        let context = self.table.context(&context)?;
        let must_call = matches!(
            choice,
            tools::ToolChoice::Required | tools::ToolChoice::Named(_)
        );
        let Some(given) = context.given_tools() else {
            return if must_call {
                Err(no_tools().into())
            } else {
                Ok(None)
            };
        };
        let chat = context.model.chat().clone();
        let choice = text_choice(choice);
        let asked = NativeDigest::of_tools(&given, &choice);
        let grammar = self.native(chat, asked, move || Ok(given), choice).await?;
        if must_call && grammar.is_none() {
            return Err(not_enforced().into());
        }
        Ok(grammar)
    }
}

fn no_tools() -> Error {
    Error::new(
        ErrorCode::InvalidArgument,
        "the tool choice asks for a call, and the model has no tools; give it some with equip before",
    )
}

fn not_enforced() -> Error {
    Error::new(
        ErrorCode::InvalidArgument,
        "the tool choice asks for a call, and the chat template of the model writes none that can be enforced; use the \
         tool choice auto and find calls in the text, or another model",
    )
}

fn text_choice(choice: tools::ToolChoice) -> ToolChoice {
    match choice {
        tools::ToolChoice::Auto => ToolChoice::Auto,
        tools::ToolChoice::None => ToolChoice::None,
        tools::ToolChoice::Required => ToolChoice::Required,
        tools::ToolChoice::Named(name) => ToolChoice::Named(name),
    }
}

impl HostToolDecoder for Tools<'_> {
    fn create(
        &mut self,
        model: Resource<ModelHandle>,
    ) -> wasmtime::Result<Resource<ToolDecoderHandle>> {
        let decoder = ToolDecoder::new(self.table.get(&model)?.0.chat().clone());
        self.decoders().add(decoder)
    }

    fn feed(
        &mut self,
        this: Resource<ToolDecoderHandle>,
        tokens: Vec<u32>,
    ) -> CallResult<tools::ToolEvent> {
        let event = self.decoders().feed(&this, &tokens)?;
        Ok(wit_event(event))
    }

    fn feed_output(
        &mut self,
        this: Resource<ToolDecoderHandle>,
        tokens: Vec<u32>,
        finish: Option<FinishReason>,
    ) -> CallResult<tools::ToolEvent> {
        let event = self.decoders().feed_output(&this, &tokens, finish)?;
        Ok(wit_event(event))
    }

    fn finish(&mut self, this: Resource<ToolDecoderHandle>) -> wasmtime::Result<tools::ToolEvent> {
        let event = self.decoders().finish(&this)?;
        Ok(wit_event(event))
    }

    fn reset(&mut self, this: Resource<ToolDecoderHandle>) -> wasmtime::Result<()> {
        self.decoders().reset(&this)
    }

    fn drop(&mut self, this: Resource<ToolDecoderHandle>) -> wasmtime::Result<()> {
        self.decoders().drop(this)
    }
}

fn wit_event(event: ToolEvent) -> tools::ToolEvent {
    match event {
        ToolEvent::Idle => tools::ToolEvent::Idle,
        ToolEvent::Start => tools::ToolEvent::Start,
        ToolEvent::Call(call) => tools::ToolEvent::Call(wit_call(call)),
        ToolEvent::Malformed(text) => tools::ToolEvent::Malformed(text),
    }
}

fn wit_call(call: Call) -> tools::ToolCall {
    tools::ToolCall {
        name: call.name,
        args: call.arguments,
        id: call.id,
    }
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    tools::add_to_linker::<_, Tools<'static>>(linker, Tools::of)
}
