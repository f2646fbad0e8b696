//! What stretches of a context are, and what a cut leaves of them.

use std::sync::Arc;

use super::role::Role;
use super::scene::Particulars;
use crate::tools::list::ToolList;

/// What a stretch of a context is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Turn {
    /// A whole message, closed.
    Said {
        /// Who said it.
        role: Role,
        /// The template's text behind its content, as it was written.
        closing: Arc<str>,
        /// What it was said with.
        with: Particulars,
    },
    /// Tools that the model is given. They are written with a message that follows, or alone.
    Tools {
        tools: Arc<ToolList>,
        /// Whether they are written here, alone.
        written: bool,
    },
    /// What opens the assistant's turn. What comes after it is the assistant's, whoever appends it.
    Open {
        /// Whether the template wrote all of it: after raw tokens it writes only what those do not hold already.
        whole: bool,
    },
    /// What closes the assistant's turn.
    Sealed {
        /// The template's text behind the assistant's words.
        closing: Arc<str>,
        /// The last of its tokens, which the model had not written itself.
        n_written: u32,
    },
    /// What a cut left of a stretch that the template wrote: its first tokens.
    Cut {
        /// What it was, whole.
        of: Box<Self>,
        /// Its tokens that are left, and those that were cut away.
        n_kept: u32,
        n_gone: u32,
    },
    /// Tokens of the program's or the model's own, outside any turn.
    Raw,
}

impl Turn {
    /// Whether a cut that takes the last `n_gone` tokens lies within what the template wrote. The assistant's words
    /// before its closing lie in no stretch of their own.
    pub(super) fn loses(&self, n_gone: u32) -> bool {
        match self {
            Self::Raw | Self::Tools { .. } => false,
            Self::Sealed { n_written, .. } => n_gone < *n_written,
            Self::Cut {
                of, n_gone: before, ..
            } => of.loses(n_gone.saturating_add(*before)),
            // The tokens of a cue that begins in raw ones are no more than those, once its end is gone.
            Self::Open { whole } => *whole,
            Self::Said { .. } => true,
        }
    }

    /// Whether no template wrote it, or only the beginning of a cue.
    pub(super) fn is_free(&self) -> bool {
        match self {
            Self::Raw | Self::Tools { written: false, .. } => true,
            Self::Cut { of, .. } => matches!(**of, Self::Open { .. }),
            _ => false,
        }
    }

    /// What is left of it with `n_kept` of its tokens, where `n_gone` more are cut away.
    pub(super) fn cut(self, n_kept: u32, n_gone: u32) -> Self {
        match self {
            Self::Cut {
                of, n_gone: before, ..
            } => Self::Cut {
                of,
                n_kept,
                n_gone: before.saturating_add(n_gone),
            },
            whole => Self::Cut {
                of: Box::new(whole),
                n_kept,
                n_gone,
            },
        }
    }
}
