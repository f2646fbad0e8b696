//! Grammars of the calls of a model: what it may say, so that every call is one of a tool that it was given, in the way
//! that its template writes calls.
//!
//! Control tokens stand in them by their ids, and no text becomes one. Markers that are no tokens may stand in no text.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::calls::Calls;
use super::choice::ToolChoice;
use super::format::CallFormat;
use super::frame::{CallFrame, CallPart};
use super::list::ToolList;
use crate::chat::{Chat, ChatState, markers_of};
use crate::error::{Error, Result};
use crate::grammar::{Grammar, pattern_of_text, rules_of_schema};
use crate::reasoning::ReasoningFormat;

/// The most bytes of the text of such a grammar.
const MAX_TEXT_BYTES: usize = 8 << 20;
/// Any character.
const ANY: &str = r"[\x00-\x{10FFFF}]";

impl Chat {
    /// The grammar of what the model may say where it was given these tools; none where its template has no way to
    /// write calls that can be enforced.
    ///
    /// What it says ends with a token that ends the turn. It may think first where its template has thoughts. Several
    /// calls follow each other where the template writes several. An argument that a tool does not name is not
    /// written, unless its schema says something of other arguments.
    ///
    /// # Errors
    /// `invalid-argument` for the name of a tool that is not among them; `invalid-grammar` for parameters that cannot
    /// be enforced.
    pub fn native_grammar(&self, tools: &ToolList, choice: &ToolChoice) -> Result<Option<Grammar>> {
        let places = chosen(tools, choice)?;
        let Some((format, frame)) = self.call_format().zip(self.call_frame()) else {
            return Ok(None);
        };
        let frame = &without_thought(frame, self.reasoning_format());
        let Some(markers) = Spelled::of(self, format) else {
            return Ok(None);
        };
        let mut text = Text {
            chat: self,
            markers,
            lines: Vec::new(),
            n_bytes: 0,
        };
        let calls = text.calls(
            tools,
            &places,
            frame,
            matches!(choice, ToolChoice::Named(_)),
        )?;
        text.start(format, frame, choice, &calls)?;
        let text = text.lines.join("\n") + "\n";
        Ok(Some(Grammar::native(text, Arc::clone(self.tokenizer()))))
    }

    /// The tools that the model was given last; none where it was given none.
    pub fn given_tools(&self, state: &ChatState) -> Option<ToolList> {
        state.tools().map(|tools| tools.unmasked())
    }

    /// The tokens that no text is: the template's, and the markers of thoughts and calls.
    pub fn control_tokens(&self) -> Vec<u32> {
        let mut tokens = self.owned_tokens();
        let (reasoning, calls) = (self.reasoning_format(), self.call_format());
        tokens.extend(markers_of(self.tokenizer(), reasoning, calls));
        tokens
    }
}

/// The places of the tools that may be called.
fn chosen(tools: &ToolList, choice: &ToolChoice) -> Result<Vec<usize>> {
    let n_tools = tools.names().len();
    match choice {
        ToolChoice::None => Ok(Vec::new()),
        ToolChoice::Auto | ToolChoice::Required => Ok((0..n_tools).collect()),
        ToolChoice::Named(name) => match tools.names().iter().position(|it| it == name) {
            Some(place) => Ok(vec![place]),
            None => Err(Error::Argument(format!(
                "the tool choice names {name:?}, which is not among the tools that the model is given: {}; name one of \
                 them",
                tools.names().join(", ")
            ))),
        },
    }
}

/// The frame without a thought that the template writes before its calls: the model may think before.
fn without_thought(frame: &CallFrame, reasoning: Option<&ReasoningFormat>) -> CallFrame {
    let mut frame = frame.clone();
    if let Some(ReasoningFormat::Between { open, close, .. }) = reasoning
        && let Some(thought) = frame.open.trim_start().strip_prefix(open.as_str())
        && let Some((_, behind)) = thought.split_once(close.as_str())
    {
        frame.open = behind.trim_start().to_owned();
    }
    frame
}

/// The schema of arguments: an object, closed unless the schema says something of keys that it does not name.
fn closed(parameters: &Value) -> Value {
    const OPENING: [&str; 11] = [
        "$ref",
        "additionalProperties",
        "allOf",
        "anyOf",
        "dependentSchemas",
        "else",
        "if",
        "not",
        "oneOf",
        "patternProperties",
        "then",
    ];
    let mut closed: Map<String, Value> = parameters.as_object().cloned().unwrap_or_default();
    closed.insert("type".to_owned(), json!("object"));
    if !OPENING.iter().any(|keyword| closed.contains_key(*keyword)) {
        closed.insert("additionalProperties".to_owned(), json!(false));
    }
    Value::Object(closed)
}

/// The markers of a model's calls and thoughts.
struct Spelled {
    /// Control tokens, the longest of those that begin alike first.
    control: BTreeMap<std::cmp::Reverse<String>, u32>,
    /// Markers that are no tokens.
    texts: Vec<String>,
}

impl Spelled {
    /// Those of a chat; none where one is a token that text may be too.
    fn of(chat: &Chat, format: &CallFormat) -> Option<Self> {
        let tokenizer = chat.tokenizer();
        let mut texts = Vec::new();
        for marker in Calls::markers_of(format) {
            match tokenizer.id_of(marker) {
                None => texts.push(marker.to_owned()),
                Some(id) if tokenizer.added_tokens_in(marker) == [id] => {}
                Some(_) => return None,
            }
        }
        // Channels have no other form than their tokens; a call that is a whole turn needs no marker.
        match format {
            CallFormat::Channel if !texts.is_empty() => return None,
            CallFormat::Bare { .. } => texts.clear(),
            _ => {}
        }
        let spelling = |id: u32| {
            let bytes = tokenizer.token_bytes(id)?;
            let text = std::str::from_utf8(bytes).ok()?.to_owned();
            (!text.is_empty()).then_some((std::cmp::Reverse(text), id))
        };
        let control = chat.control_tokens().into_iter().filter_map(spelling);
        Some(Self {
            control: control.collect(),
            texts,
        })
    }

    /// The first control token in a text, with where it stands.
    fn first_in<'t>(&self, text: &'t str) -> Option<(usize, &'t str, u32)> {
        let found = self.control.iter().filter_map(|(token, &id)| {
            let start = text.find(token.0.as_str())?;
            Some((start, std::cmp::Reverse(token.0.len()), id))
        });
        let (start, length, id) = found.min()?;
        Some((start, &text[start..start + length.0], id))
    }
}

/// The lines of a grammar.
struct Text<'a> {
    chat: &'a Chat,
    markers: Spelled,
    lines: Vec<String>,
    n_bytes: usize,
}

impl Text<'_> {
    fn line(&mut self, line: String) -> Result<()> {
        self.n_bytes += line.len() + 1;
        if self.n_bytes > MAX_TEXT_BYTES {
            return Err(Error::Grammar(format!(
                "the grammar of the calls has more than the limit of {MAX_TEXT_BYTES} bytes; give the model fewer tools, \
                 or simpler parameters"
            )));
        }
        self.lines.push(line);
        Ok(())
    }

    /// A text of the template as part of a rule.
    fn literal(&self, text: &str) -> String {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((start, token, id)) = self.markers.first_in(rest) {
            if start > 0 {
                parts.push(Value::from(&rest[..start]).to_string());
            }
            parts.push(format!("<[{id}]>"));
            rest = &rest[start + token.len()..];
        }
        if !rest.is_empty() {
            parts.push(Value::from(rest).to_string());
        }
        parts.join(" ")
    }

    /// What any text is that spells no marker.
    fn any_text(&self) -> String {
        let mut expression = format!("/{ANY}+/");
        for marker in &self.markers.texts {
            let marker = pattern_of_text(marker);
            expression.push_str(&format!(" & ~/{ANY}*{marker}{ANY}*/"));
        }
        expression
    }

    /// Writes the rules of the calls of these tools, behind what opens the first of them; its name.
    fn calls(
        &mut self,
        tools: &ToolList,
        places: &[usize],
        frame: &CallFrame,
        single: bool,
    ) -> Result<String> {
        let mut options = Vec::with_capacity(places.len());
        for &place in places {
            let name = &tools.names()[place];
            let schema = closed(tools.parameters(place)).to_string();
            let prefix = format!("t{place}_");
            let rules = rules_of_schema(&schema, &prefix, &self.markers.texts).map_err(|why| {
                Error::Grammar(format!("the parameters of the tool {name:?}: {why}"))
            })?;
            self.line(rules)?;
            let call = self.call(frame, name, &format!("{prefix}start"));
            self.line(format!("call{place}: {call}"))?;
            options.push(format!("call{place}"));
        }
        if !options.is_empty() {
            self.line(format!("call: {}", options.join(" | ")))?;
            let further = match &frame.between {
                Some(between) if !single => format!(" ({} call)*", self.literal(between)),
                _ => String::new(),
            };
            let close = self.literal(&frame.close);
            self.line(format!("calls: call{further} {close}"))?;
        }
        Ok("calls".to_owned())
    }

    /// A call of a tool.
    fn call(&self, frame: &CallFrame, name: &str, arguments: &str) -> String {
        let mut parts = Vec::new();
        let mut text = String::new();
        for part in &frame.parts {
            let part = match part {
                CallPart::Text(more) => {
                    text.push_str(more);
                    continue;
                }
                CallPart::Name => {
                    text.push_str(name);
                    continue;
                }
                CallPart::Arguments => arguments.to_owned(),
                CallPart::Id => "/[a-zA-Z0-9]{9}/".to_owned(),
            };
            parts.push(self.literal(&std::mem::take(&mut text)));
            parts.push(part);
        }
        parts.push(self.literal(&text));
        parts.join(" ")
    }

    /// Writes the rules of what is said.
    fn start(
        &mut self,
        format: &CallFormat,
        frame: &CallFrame,
        choice: &ToolChoice,
        calls: &str,
    ) -> Result<()> {
        match format {
            CallFormat::Channel => self.start_of_channels(frame, choice, calls),
            CallFormat::Marked { .. } => self.start_of_marked(frame, choice, calls),
            CallFormat::Bare { .. } => self.start_of_bare(frame, choice, calls),
        }
    }

    /// Of a model whose turn is a call or is not.
    fn start_of_bare(&mut self, frame: &CallFrame, choice: &ToolChoice, calls: &str) -> Result<()> {
        let blank = r"[\x09-\x0D\x20\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}]*";
        let open = self.literal(&frame.open);
        let said = format!("/{ANY}+/ & ~/{blank}\\{{{blank}\\x22name\\x22{ANY}*/");
        let start = match choice {
            ToolChoice::Auto => format!("start: SAID? | {open} {calls}"),
            ToolChoice::None => "start: SAID?".to_owned(),
            ToolChoice::Required | ToolChoice::Named(_) => {
                return self.line(format!("start: {open} {calls}"));
            }
        };
        self.line(start)?;
        self.line(format!("SAID: {said}"))
    }

    /// Of a model whose calls stand behind a marker.
    fn start_of_marked(
        &mut self,
        frame: &CallFrame,
        choice: &ToolChoice,
        calls: &str,
    ) -> Result<()> {
        let thought = self.thought()?;
        let said = self.any_text();
        self.line(format!("SAID: {said}"))?;
        let open = self.literal(&frame.open);
        let mut markers = self.markers.texts.iter();
        let marker = markers
            .find(|it| frame.open.starts_with(it.as_str()))
            .cloned();
        // A lexer does not go back: a marker that is a text belongs to the text before it.
        let before = match marker {
            Some(marker) => {
                let spelled = Value::from(marker.as_str());
                self.line(format!("said[suffix={spelled}]: /{ANY}*/"))?;
                format!("said {}", self.literal(&frame.open[marker.len()..]))
            }
            None => format!("SAID? {open}"),
        };
        let said = match choice {
            ToolChoice::Auto => format!("(SAID? | {before} {calls})"),
            ToolChoice::None => "SAID?".to_owned(),
            ToolChoice::Required | ToolChoice::Named(_) => format!("{open} {calls}"),
        };
        let is_free = matches!(choice, ToolChoice::Auto | ToolChoice::None);
        let gap = if is_free { "" } else { r" /[\n ]{1,3}/?" };
        let start = match thought {
            Thought::None => format!("start: {said}"),
            Thought::Open if is_free => format!("start: SAID? | thought {said}"),
            Thought::Open => format!("start: thought{gap} {said}"),
            // One whose markers are texts is text.
            Thought::Possible { spelled: true } if is_free => format!("start: {said}"),
            Thought::Possible { .. } => format!("start: {said} | thought{gap} {said}"),
        };
        self.line(start)
    }

    /// Writes the rule of a thought, `thought`.
    fn thought(&mut self) -> Result<Thought> {
        let Some(ReasoningFormat::Between {
            open,
            close,
            is_opened,
        }) = self.chat.reasoning_format()
        else {
            return Ok(Thought::None);
        };
        let is_token = |marker: &str| self.chat.tokenizer().id_of(marker).is_some();
        let inside = if is_token(close) {
            format!("SAID? {}", self.literal(close))
        } else {
            let spelled = Value::from(close.as_str());
            self.line(format!("thinking[suffix={spelled}]: /{ANY}*/"))?;
            "thinking".to_owned()
        };
        let (opening, kind) = if *is_opened {
            (String::new(), Thought::Open)
        } else {
            let spelled = !is_token(open);
            (self.literal(open), Thought::Possible { spelled })
        };
        self.line(format!("thought: {opening} {inside}"))?;
        Ok(kind)
    }

    /// Of a model that speaks in channels.
    fn start_of_channels(
        &mut self,
        frame: &CallFrame,
        choice: &ToolChoice,
        calls: &str,
    ) -> Result<()> {
        let message = self.literal("<|message|>");
        let channel = self.literal("<|channel|>");
        let next = self.literal("<|end|><|start|>assistant");
        let ends = self.chat.ends();
        let is_last = self
            .chat
            .tokenizer()
            .id_of("<|end|>")
            .is_some_and(|id| ends.contains(&id));
        self.line(format!("SAID: /{ANY}+/"))?;
        self.line(format!(
            "say: {channel} (\"final\" | \"commentary\") {message} SAID?"
        ))?;
        let before = if is_last {
            String::new()
        } else {
            self.line(format!(
                "thought: {channel} \"analysis\" {message} SAID? {next}"
            ))?;
            "thought* ".to_owned()
        };
        let call = format!("{} {calls}", self.literal(&frame.open));
        self.line(match choice {
            ToolChoice::Auto if is_last => format!("start: say | {call}"),
            ToolChoice::Auto => format!("start: {before}(say ({next} {call})? | {call})"),
            ToolChoice::None => format!("start: {before}say"),
            ToolChoice::Required | ToolChoice::Named(_) => format!("start: {before}{call}"),
        })
    }
}

/// Whether a turn begins with a thought.
enum Thought {
    None,
    /// The cue opens one.
    Open,
    /// It may.
    Possible {
        /// Its first marker is not a token.
        spelled: bool,
    },
}
