//! How models write calls, and which way is a template's.

use std::borrow::Cow;

use serde_json::json;

use super::calls::first;
use crate::chat::CallStyle;
use crate::template::{ChatTemplate, Message};
use crate::tokenizer::Tokenizer;

/// A way to write calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallFormat {
    /// Between two markers, or from a marker to the end of the turn.
    Marked {
        begin: Cow<'static, str>,
        end: Option<Cow<'static, str>>,
    },
    /// In a channel whose header names the function.
    Channel,
    /// The whole turn is JSON, behind a marker or not.
    Bare { marker: &'static str },
}

/// The markers between which models write calls; where there is no second one, a call ends with its turn.
const MARKED: [(&str, Option<&str>); 5] = [
    ("<tool_call>", Some("</tool_call>")),
    ("<|tool_call|>", Some("<|/tool_call|>")),
    ("<｜tool▁call▁begin｜>", Some("<｜tool▁call▁end｜>")),
    ("<|tool_call_start|>", Some("<|tool_call_end|>")),
    ("[TOOL_CALLS]", None),
];

/// The ways by what models are trained on, that which the checkpoint states first.
fn formats(template: &ChatTemplate) -> Vec<CallFormat> {
    let stated = template.response_markers("tool_calls");
    let stated = stated.map(|(begin, end)| CallFormat::Marked {
        begin: begin.into(),
        end: Some(end.into()),
    });
    let marked = MARKED.into_iter().map(|(begin, end)| CallFormat::Marked {
        begin: begin.into(),
        end: end.map(Into::into),
    });
    let bare = CallFormat::Bare {
        marker: "<|python_tag|>",
    };
    let mut formats: Vec<CallFormat> = stated.into_iter().collect();
    formats.push(CallFormat::Channel);
    formats.extend(marked);
    formats.push(bare);
    formats
}

const NAME: &str = "QtoolZ0000Q";

impl CallFormat {
    /// The way in which the template writes a call: the first that reads the call out of the template's own rendering.
    /// Where the template renders none, the first whose markers are tokens of the tokenizer, or stand in the template.
    /// `ends` are the tokens with which the model ends what it says.
    pub(crate) fn of(tokenizer: &Tokenizer, template: &ChatTemplate, ends: &[u32]) -> Option<Self> {
        let rendered = CallStyle::of(template).and_then(|style| written_call(template, style));
        if let Some(text) = rendered {
            let tokens = tokenizer.encode(&text).ok()?;
            return formats(template).into_iter().find(|format| {
                let call = first(tokenizer, Some(format), &tokens, ends);
                call.is_some_and(|call| call.name == NAME && is_plain(&call.arguments))
            });
        }
        let known =
            |marker: &str| tokenizer.id_of(marker).is_some() || template.source().contains(marker);
        formats(template).into_iter().find(|format| match format {
            Self::Marked { begin, end } => known(begin) && end.as_deref().is_none_or(known),
            Self::Channel => known("<|channel|>") && known("<|message|>"),
            Self::Bare { .. } => false,
        })
    }
}

fn arguments() -> serde_json::Value {
    json!({"q": "a"})
}

fn is_plain(text: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(text).is_ok_and(|value| value == arguments())
}

/// What the template writes of a message with a call, behind what opens the turn.
fn written_call(template: &ChatTemplate, style: CallStyle) -> Option<String> {
    let asked = [Message {
        role: "user",
        content: Some("q"),
        ..Message::default()
    }];
    let calling = style.message(vec![style.call(NAME, "call00000", arguments())]);
    let called = [asked[0].clone(), calling];
    let before = template.render(&asked, None, true).ok()?;
    let whole = template.render(&called, None, false).ok()?;
    // A cue may open a thought, which the rendering of a call does not have.
    let common = before
        .bytes()
        .zip(whole.bytes())
        .take_while(|(left, right)| left == right);
    let mut start = common.count();
    while !whole.is_char_boundary(start) {
        start -= 1;
    }
    // Where the marker of a call begins as what opens a thought does, it is not cut.
    let start = whole[..start]
        .rfind(['<', '['])
        .filter(|_| start < before.len())
        .unwrap_or(start);
    Some(whole[start..].to_owned())
}
