//! The turn state of one context.

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
    fn loses(&self, n_gone: u32) -> bool {
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

    /// What is left of it with `n_kept` of its tokens, where `n_gone` more are cut away.
    fn cut(self, n_kept: u32, n_gone: u32) -> Self {
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

/// A stretch that ends where `end` tokens of the context are counted, and begins where the one before ends.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stretch {
    end: u32,
    turn: Turn,
}

/// The turn state of one context: who said what, recorded by the context's length, so that a truncated context has the
/// state that it had.
///
/// A clone costs no more than a reference.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChatState {
    log: Arc<Vec<Stretch>>,
}

/// The conversation before a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct History {
    /// Who spoke, in order; each turn is closed.
    pub(super) roles: Vec<Role>,
    /// The template's text behind the last of them; `None` when nobody spoke.
    pub(super) closing: Option<Arc<str>>,
    /// Whether something stands before the first of them, which the log does not know as a turn.
    pub(super) follows: bool,
}

impl ChatState {
    /// The state of an empty context.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records that the model generated `n_tokens` tokens. `end` is how many tokens the context keeps with them,
    /// pending one included; what the program appended meanwhile lies behind and moves on.
    pub fn on_generated(&mut self, n_tokens: u32, end: u32) {
        let start = end.saturating_sub(n_tokens);
        let log = Arc::make_mut(&mut self.log);
        let n_before = log.partition_point(|stretch| stretch.end <= start);
        let behind = log.split_off(n_before);
        self.raw(n_tokens, end);
        let moved = behind.into_iter().map(|stretch| Stretch {
            end: stretch.end.saturating_add(n_tokens),
            ..stretch
        });
        Arc::make_mut(&mut self.log).extend(moved);
    }

    /// Records that the context's kept tokens, pending one included, were cut from `old_seq_len` to `new_seq_len`. Its
    /// buffer stays and moves up.
    pub fn truncate(&mut self, old_seq_len: u32, new_seq_len: u32) {
        if new_seq_len >= old_seq_len {
            return;
        }
        let cut = old_seq_len - new_seq_len;
        let log = Arc::make_mut(&mut self.log);
        let n_kept = log.partition_point(|stretch| stretch.end <= new_seq_len);
        let n_seen = log.partition_point(|stretch| stretch.end <= old_seq_len);
        for stretch in log.iter_mut().skip(n_seen) {
            stretch.end -= cut;
        }
        let cut_through = log.drain(n_kept..n_seen).next();
        let last = n_kept.checked_sub(1).and_then(|place| log.get(place));
        let (start, open) = last.map_or((0, false), |stretch| {
            (stretch.end, matches!(stretch.turn, Turn::Open { .. }))
        });
        if start >= new_seq_len {
            return;
        }
        let turn = match cut_through {
            Some(stretch) if stretch.turn.loses(stretch.end - new_seq_len) => stretch
                .turn
                .cut(new_seq_len - start, stretch.end - new_seq_len),
            // What is left is the assistant's, or belongs to what continues behind it.
            _ if open => return,
            _ if log
                .get(n_kept)
                .is_some_and(|stretch| stretch.turn == Turn::Raw) =>
            {
                return;
            }
            _ => Turn::Raw,
        };
        log.insert(
            n_kept,
            Stretch {
                end: new_seq_len,
                turn,
            },
        );
    }

    /// Whether generating has to open the assistant's turn first: a chat turn stands last.
    pub fn needs_cue(&self) -> bool {
        matches!(
            self.last(),
            Some(Turn::Said { .. } | Turn::Sealed { .. } | Turn::Tools { .. })
        )
    }

    /// The tools that the model was given last.
    pub(crate) fn tools(&self) -> Option<&Arc<ToolList>> {
        self.log
            .iter()
            .rev()
            .find_map(|stretch| match &stretch.turn {
                Turn::Tools { tools, .. } => Some(tools),
                Turn::Said { with, .. } => with.tools.as_ref(),
                _ => None,
            })
    }

    /// The tools that the model was given and that nothing has written yet.
    pub(super) fn unwritten_tools(&self) -> Option<&Arc<ToolList>> {
        self.log
            .iter()
            .rev()
            .find_map(|stretch| match &stretch.turn {
                Turn::Tools { tools, written } => Some((!written).then_some(tools)),
                Turn::Said { with, .. } if with.tools.is_some() => Some(None),
                _ => None,
            })
            .flatten()
    }

    /// The state of a context of which nothing is known but that it is not empty.
    pub(super) fn following() -> Self {
        let mut state = Self::new();
        state.push(1, Turn::Raw);
        state
    }

    /// What stands last.
    pub(super) fn last(&self) -> Option<&Turn> {
        self.log.last().map(|stretch| &stretch.turn)
    }

    /// The state before what stands last, which is taken for not written.
    pub(super) fn without_last(&self) -> Self {
        let mut state = self.clone();
        Arc::make_mut(&mut state.log).pop();
        state
    }

    /// Adds a stretch that ends at `end`.
    pub(super) fn push(&mut self, end: u32, turn: Turn) {
        Arc::make_mut(&mut self.log).push(Stretch { end, turn });
    }

    /// Records `n_tokens` of no template up to `length`.
    pub(super) fn raw(&mut self, n_tokens: u32, length: u32) {
        if n_tokens == 0 {
            return;
        }
        match self.last() {
            // The assistant's words.
            Some(Turn::Open { .. }) => {}
            Some(Turn::Raw) => {
                if let Some(stretch) = Arc::make_mut(&mut self.log).last_mut() {
                    stretch.end = length;
                }
            }
            _ => self.push(length, Turn::Raw),
        }
    }

    /// Where the tokens at the end of the context begin that no template wrote, or of which it wrote the beginning of a
    /// cue.
    pub(super) fn raw_start(&self) -> u32 {
        let is_free = |turn: &Turn| match turn {
            Turn::Raw | Turn::Tools { written: false, .. } => true,
            Turn::Cut { of, .. } => matches!(**of, Turn::Open { .. }),
            _ => false,
        };
        let mut stretches = self.log.iter().rev();
        let written = stretches.find(|stretch| !is_free(&stretch.turn));
        written.map_or(0, |stretch| stretch.end)
    }

    /// The conversation so far.
    pub(super) fn history(&self) -> History {
        let mut history = History {
            roles: Vec::new(),
            closing: None,
            follows: false,
        };
        let mut is_open = false;
        for stretch in self.log.iter() {
            let was_open = std::mem::replace(&mut is_open, false);
            let (role, closing) = match &stretch.turn {
                Turn::Said {
                    role,
                    closing,
                    with,
                } => (*role, with.plain_closing.as_ref().unwrap_or(closing)),
                Turn::Sealed { closing, .. } => (Role::Assistant, closing),
                Turn::Tools { written: false, .. } => continue,
                turn => {
                    history.follows |= history.roles.is_empty();
                    is_open = matches!(turn, Turn::Open { .. });
                    continue;
                }
            };
            // The answer of a tool closes the turn that called it.
            if was_open && role == Role::Tool {
                history.roles.push(Role::Assistant);
            }
            history.roles.push(role);
            history.closing = Some(Arc::clone(closing));
        }
        history
    }
}
