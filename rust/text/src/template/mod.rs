//! The chat template of a checkpoint, evaluated as `transformers` evaluates it.
//!
//! `transformers` renders with Jinja2: `trim_blocks`, `lstrip_blocks`, loop controls, a `tojson` that keeps its input
//! readable, `raise_exception`, `strftime_now`, and a `generation` block that marks what the model says. Here minijinja
//! does, with Python's methods and Python's way to print.

mod budget;
mod builtins;
mod compile;
mod instructions;
mod prices;
mod python;
mod response;
mod source;
mod weight;

use std::fmt;
use std::path::Path;

use chrono::{DateTime, Local, NaiveDateTime};
use minijinja::machinery::{Vm, make_string_output};
use minijinja::value::Kwargs;
use minijinja::{AutoEscape, Environment, Error as JinjaError, ErrorKind, Value, context};

use crate::caught::caught;
use crate::error::{Error, Result};
use crate::limits::{
    MAX_RENDERED_BYTES, MAX_RENDERED_TIMES, MAX_TEMPLATE_FUEL, MAX_TEXT_BYTES, RENDERING_BYTES,
    RENDERING_BYTES_PER_CONTENT_BYTE,
};
use crate::special::SpecialTokens;

use budget::{Budget, Exhausted};
use compile::{Compiled, compile};
use response::ResponseTemplate;

/// A message as a template sees it.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub(crate) struct Message<'a> {
    /// `system`, `user`, `assistant` or `tool`.
    pub(crate) role: &'a str,
    /// What was said; none where the model did nothing but call tools.
    pub(crate) content: Option<&'a str>,
    /// The tool that gives this answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<&'a str>,
    /// The call that this answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_call_id: Option<String>,
    /// The calls of an assistant's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_calls: Option<serde_json::Value>,
}

/// The compiled chat template of a checkpoint.
///
/// Compiling is bounded in the words of the source, and a rendering in instructions, in the depth of values and in the
/// bytes of all that it makes or walks. So no template can hold up, fill or crash the engine.
pub struct ChatTemplate {
    environment: Environment<'static>,
    program: Compiled,
    special: SpecialTokens,
    source: String,
    /// What the checkpoint says of the model's answers.
    response: ResponseTemplate,
}

impl fmt::Debug for ChatTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatTemplate")
            .field("special", &self.special)
            .finish_non_exhaustive()
    }
}

impl ChatTemplate {
    /// Reads the template of a model directory: `chat_template.jinja`, else `chat_template` in `tokenizer_config.json`
    /// (a text, or a list of named ones of which `default` is taken), else `chat_template.json`. `None` when it has
    /// none.
    ///
    /// # Errors
    /// `invalid-model` for a damaged file, `template-error` for a template that does not parse and for a
    /// `response_template` that is none.
    pub fn from_dir(dir: &Path) -> Result<Option<Self>> {
        let special = SpecialTokens::from_dir(dir)?;
        match source::from_dir(dir)? {
            Some(source) => {
                let mut template = Self::new(&source, special)?;
                template.response = source::response_template(dir)?;
                Ok(Some(template))
            }
            None => Ok(None),
        }
    }

    /// Compiles a template.
    ///
    /// # Errors
    /// `template-error` when it does not parse.
    pub fn new(source: &str, special: SpecialTokens) -> Result<Self> {
        Self::with_clock(source, special, || Local::now().naive_local())
    }

    /// Compiles a template for which it is always the same time, given in seconds since 1970, UTC. The date in a
    /// prompt, where a template writes one, is then the same on every run.
    ///
    /// # Errors
    /// `template-error` when it does not parse; `invalid-argument` for a time that no calendar holds.
    pub fn at_time(source: &str, special: SpecialTokens, unix_time_s: i64) -> Result<Self> {
        let Some(now) = DateTime::from_timestamp(unix_time_s, 0) else {
            return Err(Error::Argument(format!(
                "the time {unix_time_s} s is beyond the calendar; use seconds since 1970"
            )));
        };
        Self::with_clock(source, special, move || now.naive_utc())
    }

    /// Compiles a template that reads this clock.
    pub(crate) fn with_clock(
        source: &str,
        special: SpecialTokens,
        now: impl Fn() -> NaiveDateTime + Send + Sync + 'static,
    ) -> Result<Self> {
        let mut environment = builtins::environment();
        environment.set_fuel(Some(MAX_TEMPLATE_FUEL));
        environment.set_formatter(|output, _, value| python::print(output, value));
        environment.add_filter("tojson", |value: Value, options: Kwargs| {
            python::to_json(&value, &options)
        });
        environment.add_function("raise_exception", raise_exception);
        environment.add_function("strftime_now", move |format: &str| strftime(now(), format));
        let program =
            compile(&source::without_generation_tags(source)).map_err(|error| explain(&error))?;
        Ok(Self {
            environment,
            program,
            special,
            source: source.to_owned(),
            response: ResponseTemplate::default(),
        })
    }

    /// Whether renderings of the same messages may differ from one day to the next.
    pub(crate) fn reads_clock(&self) -> bool {
        self.source.contains("strftime_now")
    }

    /// Its source.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// The two markers between which the checkpoint says that a part of the model's answers stands: the texts at which
    /// the first of these fields of its `response_template` opens and closes.
    pub(crate) fn response_markers(&self, fields: &[&str]) -> Option<(String, String)> {
        let is_known = |marker: &str| self.source.contains(marker);
        self.response.markers(fields, is_known)
    }

    /// The special tokens that the template sees.
    pub(crate) fn special(&self) -> &SpecialTokens {
        &self.special
    }

    /// The text of a whole conversation: messages as `transformers` takes them, and the tools that the model is given.
    /// With `cue` also what opens the assistant's turn.
    ///
    /// # Errors
    /// `template-error` when the template raises, or exceeds its bounds.
    pub fn render_whole(
        &self,
        messages: &serde_json::Value,
        tools: Option<&serde_json::Value>,
        cue: bool,
    ) -> Result<String> {
        let n_bytes = messages.to_string().len() + tools.map_or(0, |tools| tools.to_string().len());
        self.evaluate(Value::from_serialize(messages), tools, cue, n_bytes)
    }

    /// The same of messages of its own; with `tools` those that the model is given.
    ///
    /// # Errors
    /// As [`ChatTemplate::render_whole`].
    pub(crate) fn render(
        &self,
        messages: &[Message<'_>],
        tools: Option<&serde_json::Value>,
        cue: bool,
    ) -> Result<String> {
        let contents = messages.iter().filter_map(|message| message.content);
        let n_bytes = contents.map(str::len).sum::<usize>()
            + tools.map_or(0, |tools| tools.to_string().len());
        self.evaluate(Value::from_serialize(messages), tools, cue, n_bytes)
    }

    fn evaluate(
        &self,
        messages: Value,
        tools: Option<&serde_json::Value>,
        cue: bool,
        n_content_bytes: usize,
    ) -> Result<String> {
        let variables = context! {
            messages => messages,
            add_generation_prompt => cue,
            tools => tools.map_or(Value::from(()), Value::from_serialize),
            documents => Value::from(()),
            ..self.special.iter().collect::<Value>()
        };
        let budget_bytes = RENDERING_BYTES
            + RENDERING_BYTES_PER_CONTENT_BYTE * n_content_bytes.min(MAX_TEXT_BYTES);
        let program = self.program.get();
        // Stepping backwards through an empty sequence (`messages[1:][::-1]`) panics. Nothing but the output is shared.
        let rendering = || {
            let _budget = Budget::of(budget_bytes);
            let mut text = String::new();
            let vm = Vm::new(&self.environment);
            let mut output = make_string_output(&mut text);
            vm.eval(
                &program.instructions,
                variables,
                &program.blocks,
                &mut output,
                AutoEscape::None,
            )
            .map(drop)
            .map_err(|error| explain(&error))?;
            drop(output);
            Ok(text)
        };
        let Some(rendered) = caught(rendering) else {
            return Err(Error::Template(
                "the chat template failed on this conversation inside the template engine"
                    .to_owned(),
            ));
        };
        let text: String = rendered?;
        let limit = MAX_RENDERED_BYTES + MAX_RENDERED_TIMES * n_content_bytes;
        if text.len() > limit {
            return Err(Error::Template(format!(
                "the chat template wrote {} bytes, and the limit is {limit}: {MAX_RENDERED_BYTES}, and {MAX_RENDERED_TIMES} for each byte of content; use \
                 a shorter conversation, or another template",
                text.len()
            )));
        }
        Ok(text)
    }
}

/// What a template said when it did not accept a conversation.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Raised(String);

/// What a template calls when it does not accept a conversation.
fn raise_exception(message: String) -> std::result::Result<Value, JinjaError> {
    Err(
        JinjaError::new(ErrorKind::InvalidOperation, "raise_exception")
            .with_source(Raised(message)),
    )
}

fn strftime(now: NaiveDateTime, format: &str) -> std::result::Result<String, JinjaError> {
    use fmt::Write as _;
    // Two characters stand for a date and a time at most.
    const FIELD_BYTES: usize = 32;
    budget::charge(format.len().saturating_mul(FIELD_BYTES))?;
    let mut text = String::new();
    match write!(text, "{}", now.format(format)) {
        Ok(()) => Ok(text),
        Err(_) => Err(JinjaError::new(
            ErrorKind::InvalidOperation,
            format!("strftime_now cannot write the format {format:?}"),
        )),
    }
}

/// The error of the engine, with the innermost cause and its line.
fn explain(error: &JinjaError) -> Error {
    let line = error
        .line()
        .map(|line| format!(" (line {line})"))
        .unwrap_or_default();
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| {
        error.source()
    });
    if let Some(Raised(message)) = causes.into_iter().find_map(|cause| cause.downcast_ref()) {
        return Error::Template(shortened(format!(
            "the chat template refused the conversation: {message}"
        )));
    }
    let mut causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| {
        error.source()
    });
    if causes.any(|cause| cause.is::<Exhausted>()) {
        return Error::Template(format!(
            "the chat template made or looked at more than the limit of {RENDERING_BYTES} bytes and {RENDERING_BYTES_PER_CONTENT_BYTE} for each byte \
             of content{line}; use a shorter conversation, or another template"
        ));
    }
    let message = match (error.kind(), error.detail()) {
        (ErrorKind::OutOfFuel, _) => format!(
            "the chat template ran for more than the limit of {MAX_TEMPLATE_FUEL} instructions{line}; use a shorter conversation"
        ),
        (ErrorKind::SyntaxError, detail) => {
            format!(
                "the chat template of the model does not parse: {}{line}",
                detail.unwrap_or("syntax error")
            )
        }
        (kind, detail) => format!(
            "the chat template failed: {kind}: {}{line}",
            detail.unwrap_or("no details")
        ),
    };
    Error::Template(shortened(message))
}

/// A message that a template wrote some of, as far as anybody reads it.
fn shortened(mut message: String) -> String {
    const MAX_MESSAGE_BYTES: usize = 2048;
    if message.len() > MAX_MESSAGE_BYTES {
        let end = (0..=MAX_MESSAGE_BYTES)
            .rev()
            .find(|&at| message.is_char_boundary(at));
        message.truncate(end.unwrap_or(0));
        message.push_str(" ...");
    }
    message
}
