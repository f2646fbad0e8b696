//! Which way of writing calls is a template's.

use serde_json::json;

use super::calls::first;
use super::format::{CallFormat, formats};
use crate::chat::CallStyle;
use crate::template::{ChatTemplate, Message};
use crate::tokenizer::Tokenizer;

const NAME: &str = "QtoolZ0000Q";

/// The way in which the template writes a call: the first that reads the call out of the template's own rendering.
/// Where the template renders none, the first whose markers are tokens of the tokenizer, or stand in the template.
/// `ends` are the tokens with which the model ends what it says.
pub(crate) fn format_of(
    tokenizer: &Tokenizer,
    template: &ChatTemplate,
    ends: &[u32],
) -> Option<CallFormat> {
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
        CallFormat::Marked { begin, end } => known(begin) && end.as_deref().is_none_or(known),
        CallFormat::Channel => known("<|channel|>") && known("<|message|>"),
        CallFormat::Bare { .. } => false,
    })
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
