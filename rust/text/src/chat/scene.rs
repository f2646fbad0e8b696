//! A conversation as it is shown to a template: who speaks, with marks for what was said.

use std::sync::Arc;

use serde_json::{Value, json};

use super::role::Role;
use crate::error::{Error, Result};
use crate::limits::MAX_TOOL_NAME_BYTES;
use crate::template::{ChatTemplate, Message};
use crate::tools::list::{ToolList, check_name};

/// The id of a call that was given none. Templates that look at ids want nine letters and digits.
const PLAIN_ID: &str = "call00000";
/// The tool of a call that nobody named.
const PLAIN_NAME: &str = "tool";

/// Which call is answered.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Answer {
    name: String,
    id: Option<String>,
}

impl Answer {
    /// The answer of a tool, to the call of this id where the model gave one.
    ///
    /// # Errors
    /// `invalid-argument` for a name or an id that cannot stand in a call.
    pub fn new(name: &str, id: Option<&str>) -> Result<Self> {
        check_name(name).map_err(|why| Error::Argument(format!("the answer of a tool: {why}")))?;
        if let Some(id) = id
            && check_name(id).is_err()
        {
            let shown: String = id.chars().take(MAX_TOOL_NAME_BYTES).collect();
            return Err(Error::Argument(format!(
                "the id {shown:?} is not one of a call; use the one that the model gave, or none"
            )));
        }
        Ok(Self {
            name: name.to_owned(),
            id: id.map(str::to_owned),
        })
    }

    /// The name of the tool, and the id of the call.
    pub(super) fn parts(&self) -> (&str, Option<&str>) {
        (&self.name, self.id.as_deref())
    }
}

/// What a message is said with, besides its content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Particulars {
    /// The tools that are written with it.
    pub(super) tools: Option<Arc<ToolList>>,
    /// The call that it answers.
    pub(super) answer: Option<Arc<Answer>>,
    /// What the template writes behind its content where no tools stand there, if it is another text.
    pub(super) plain_closing: Option<Arc<str>>,
}

impl Particulars {
    /// Whether there are none.
    pub(super) fn is_plain(&self) -> bool {
        self.tools.is_none() && self.answer.is_none()
    }

    /// The variable `tools` of the template.
    pub(super) fn tools(&self) -> Option<&Value> {
        self.tools.as_ref().map(|tools| tools.value())
    }

    /// The same with names of tools that no template writes itself.
    pub(super) fn with_marks(&self) -> Self {
        Self {
            tools: self
                .tools
                .as_ref()
                .map(|tools| Arc::new(tools.with_marks())),
            ..self.clone()
        }
    }

    /// Whether a text has the names of all the tools.
    pub(super) fn names_stand_in(&self, text: &str) -> bool {
        let mut names = self.tools.iter().flat_map(|tools| tools.names());
        self.tools.is_some() && names.all(|name| text.contains(name.as_str()))
    }
}

/// Who speaks, and what is beside.
pub(super) struct Scene {
    pub(super) roles: Vec<Role>,
    /// The message of `with`.
    pub(super) at: usize,
    pub(super) with: Particulars,
}

/// How a call is shown to a template: some look whether its message has content, and some join the arguments to texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallStyle {
    /// Whether its message has an empty text for content, or none.
    empty_content: bool,
    /// Whether its arguments are a text of JSON, or an object.
    text_arguments: bool,
}

impl CallStyle {
    /// The first way in which a template shows a call and its answer.
    pub(crate) fn of(template: &ChatTemplate) -> Option<Self> {
        let marks: Vec<String> = (0..3).map(mark).collect();
        let ways = [(false, false), (true, false), (false, true), (true, true)];
        ways.into_iter()
            .map(|(empty_content, text_arguments)| Self {
                empty_content,
                text_arguments,
            })
            .find(|style| {
                let scene = Scene {
                    roles: vec![Role::User, Role::Assistant, Role::Tool],
                    at: 2,
                    with: Particulars::default(),
                };
                let messages = scene.messages(&marks, Some(*style));
                template
                    .render(&messages, None, false)
                    .is_ok_and(|text| marks.iter().all(|mark| text.matches(mark).count() == 1))
            })
    }

    /// The content of the message of calls.
    fn content(self) -> Option<&'static str> {
        self.empty_content.then_some("")
    }

    /// The arguments of a call.
    fn arguments(self, arguments: Value) -> Value {
        if self.text_arguments {
            Value::String(arguments.to_string())
        } else {
            arguments
        }
    }

    /// A call as templates take it.
    pub(crate) fn call(self, name: &str, id: &str, arguments: Value) -> Value {
        let function = json!({"name": name, "arguments": self.arguments(arguments)});
        json!({"id": id, "type": "function", "function": function})
    }

    /// The message of a model that does nothing but make these calls.
    pub(crate) fn message(self, calls: Vec<Value>) -> Message<'static> {
        Message {
            role: Role::Assistant.name(),
            content: self.content(),
            tool_calls: Some(Value::Array(calls)),
            ..Message::default()
        }
    }
}

impl Scene {
    /// The messages, with marks for contents. A message of the assistant that tools answer is one of calls, and the
    /// mark stands in the arguments of the last of them.
    pub(super) fn messages<'a>(
        &'a self,
        marks: &'a [String],
        style: Option<CallStyle>,
    ) -> Vec<Message<'a>> {
        let mut calls = 0..0;
        let mut messages = Vec::with_capacity(self.roles.len());
        for (place, (role, mark)) in self.roles.iter().zip(marks).enumerate() {
            let answers = self.roles[place + 1..].iter();
            let n_answers = answers.take_while(|role| **role == Role::Tool).count();
            messages.push(match (role, style) {
                (Role::Assistant, Some(style)) if n_answers > 0 => {
                    calls = place + 1..place + 1 + n_answers;
                    let call = |at: usize| {
                        let (name, id) = self.answer(at, at - calls.start);
                        let text = if at + 1 == calls.end { mark } else { "" };
                        style.call(name, &id, json!({ "q": text }))
                    };
                    style.message(calls.clone().map(call).collect())
                }
                (Role::Tool, _) => {
                    let (name, id) = self.answer(place, place.saturating_sub(calls.start));
                    Message {
                        role: role.name(),
                        content: Some(mark),
                        name: Some(name),
                        tool_call_id: Some(id),
                        tool_calls: None,
                    }
                }
                _ => Message {
                    role: role.name(),
                    content: Some(mark),
                    ..Message::default()
                },
            });
        }
        messages
    }

    /// The name and the id of the call that the message at `place` answers, the `n`-th of its calls.
    fn answer(&self, place: usize, n: usize) -> (&str, String) {
        let given = self.with.answer.as_ref().filter(|_| place == self.at);
        let name = given.map_or(PLAIN_NAME, |answer| answer.name.as_str());
        let id = given.and_then(|answer| answer.id.clone());
        (name, id.unwrap_or_else(|| plain_id(n)))
    }
}

/// The id of the `n`-th call of a message, where it was given none.
fn plain_id(n: usize) -> String {
    let digits = n.to_string();
    format!(
        "{}{digits}",
        &PLAIN_ID[..PLAIN_ID.len().saturating_sub(digits.len())]
    )
}

/// What stands for the content of the message at `place`: a word that no template changes or writes itself.
pub(super) fn mark(place: usize) -> String {
    format!("QcontentZ{place:06}Q")
}
