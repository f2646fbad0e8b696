//! Which way of writing calls is a template's.

use serde_json::json;

use super::calls;
use super::format::{CallFormat, formats};
use crate::chat::CallStyle;
use crate::template::{ChatTemplate, Message};
use crate::tokenizer::Tokenizer;

/// The way in which the template writes a call: the first that reads the call out of the template's own rendering.
/// Where the template renders none, the first whose markers are tokens of the tokenizer, or stand in the template.
/// `ends` are the tokens with which the model ends what it says.
pub(crate) fn format_of(
    tokenizer: &Tokenizer,
    template: &ChatTemplate,
    ends: &[u32],
) -> Option<CallFormat> {
    let call = MarkedCall::new(0);
    if let Some(text) = written_calls(template, std::slice::from_ref(&call)) {
        let tokens = tokenizer.encode(&text).ok()?;
        return formats(template).into_iter().find(|format| {
            let found = calls::all(tokenizer, Some(format), &tokens, ends);
            found.first().is_some_and(|found| call.is(found))
        });
    }
    let known =
        |marker: &str| tokenizer.id_of(marker).is_some() || template.source().contains(marker);
    formats(template).into_iter().find(|format| match format {
        CallFormat::Marked { begin, end } => known(begin) && end.as_deref().is_none_or(known),
        CallFormat::Channel => known("<|channel|>") && known("<|message|>"),
        CallFormat::Bare { .. } => false,
    })
}

/// A call of words that no template writes itself.
#[derive(Debug, Clone)]
pub(crate) struct MarkedCall {
    pub(crate) name: String,
    pub(crate) id: String,
    argument: String,
}

impl MarkedCall {
    /// The one of this place.
    pub(crate) fn new(place: usize) -> Self {
        Self {
            name: format!("QtoolZ{place:04}Q"),
            id: format!("Qid{place:06}"),
            argument: format!("QargumentZ{place:04}Q"),
        }
    }

    fn arguments(&self) -> serde_json::Value {
        json!({"q": self.argument})
    }

    /// The ways to write its arguments, and whether they have a space behind the colon.
    pub(crate) fn spellings(&self) -> [String; 2] {
        let argument = &self.argument;
        [
            format!(r#"{{"q": "{argument}"}}"#),
            format!(r#"{{"q":"{argument}"}}"#),
        ]
    }

    /// Whether a call that was read is this one.
    pub(crate) fn is(&self, read: &super::Call) -> bool {
        let arguments = serde_json::from_str::<serde_json::Value>(&read.arguments);
        read.name == self.name && arguments.is_ok_and(|it| it == self.arguments())
    }
}

/// What the template writes of a message with these calls, behind what opens the turn; none where it refuses to, or
/// writes no calls.
pub(crate) fn written_calls(template: &ChatTemplate, calls: &[MarkedCall]) -> Option<String> {
    let style = CallStyle::of(template)?;
    let asked = [Message {
        role: "user",
        content: Some("q"),
        ..Message::default()
    }];
    let calls = calls.iter();
    let calling = style.message(
        calls
            .map(|it| style.call(&it.name, &it.id, it.arguments()))
            .collect(),
    );
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
