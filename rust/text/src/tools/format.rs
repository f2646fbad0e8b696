//! How models write calls.

use std::borrow::Cow;

use crate::template::ChatTemplate;

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
pub(crate) fn formats(template: &ChatTemplate) -> Vec<CallFormat> {
    let stated = template.response_markers(&["tool_calls"]);
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
