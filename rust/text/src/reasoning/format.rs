//! How models mark their thoughts, and which way is a template's.

use crate::template::ChatTemplate;
use crate::tokenizer::Tokenizer;

/// The markers between which templates have thoughts, by what models are trained on.
const PAIRS: [(&str, &str); 6] = [
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<seed:think>", "</seed:think>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
];

/// What checkpoints call the thought of a message.
const THOUGHTS: [&str; 3] = ["thinking", "reasoning_content", "reasoning"];

/// How a model marks its thoughts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReasoningFormat {
    /// Between two markers.
    Between {
        open: String,
        close: String,
        /// Whether the cue of the template opens a thought.
        is_opened: bool,
    },
    /// In the channel `analysis` of its messages.
    Channel,
}

impl ReasoningFormat {
    /// The way of a template that writes `cue` before the model speaks: the first whose two markers stand in the
    /// template, or are tokens of the tokenizer.
    pub(crate) fn of(tokenizer: &Tokenizer, template: &ChatTemplate, cue: &str) -> Option<Self> {
        if ["<|channel|>", "<|message|>"]
            .iter()
            .all(|marker| tokenizer.id_of(marker).is_some())
        {
            return Some(Self::Channel);
        }
        let stated = template.response_markers(&THOUGHTS);
        let known =
            |marker: &str| tokenizer.id_of(marker).is_some() || template.source().contains(marker);
        let (open, close) = stated.or_else(|| {
            let pair = PAIRS
                .iter()
                .find(|(open, close)| known(open) && known(close))?;
            Some((pair.0.to_owned(), pair.1.to_owned()))
        })?;
        Some(Self::Between {
            is_opened: cue.trim_end().ends_with(&open),
            open,
            close,
        })
    }

    /// Its two markers; those of channels are the calls' too.
    pub(crate) fn markers(&self) -> Vec<&str> {
        match self {
            Self::Between { open, close, .. } => vec![open, close],
            Self::Channel => Vec::new(),
        }
    }
}
