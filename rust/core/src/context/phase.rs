//! The states of a pass, and what takes it from one to the next.
//!
//! A pass waits for a batch and runs in one, until it is answered or fails. A step that was answered goes on *ahead* of
//! its program: the token that it drew is computed and the next one drawn before the program asks. When the answer is
//! taken, what ran ahead becomes a pass of its own, without a request (`split`), and the next step takes it over where
//! it asks for the same (`promote`). A pass of which everything is computed, and rows of which were not drawn from
//! since their token masks have not come, *awaits* these, and no batch. A generation for which another model drafts is
//! *drafting* until it has its drafts.
//!
//! A transition is a method; those of this table are all that there are. One that the table does not have changes
//! nothing and returns false: a fault of the engine. `phase_tests.rs` reads the table from here.
//!
//! | from | by | to |
//! |---|---|---|
//! | waiting | start | running |
//! | waiting | answer | answered |
//! | waiting | answer and go ahead | answered, waiting ahead |
//! | waiting | fail | failed |
//! | waiting | await masks | awaiting |
//! | waiting | await drafts | drafting |
//! | drafting | end drafting | waiting |
//! | drafting | fail | failed |
//! | awaiting | resume | waiting |
//! | awaiting | fail | failed |
//! | running | stop | waiting |
//! | running | draw | waiting |
//! | running | fail | failed |
//! | answered | stop ahead | answered |
//! | answered, waiting ahead | start | answered, running ahead |
//! | answered, waiting ahead | stop ahead | answered |
//! | answered, waiting ahead | split | waiting ahead |
//! | answered, waiting ahead | await masks | answered, awaiting ahead |
//! | answered, awaiting ahead | stop ahead | answered |
//! | answered, awaiting ahead | split | awaiting ahead |
//! | answered, running ahead | stop | answered, waiting ahead |
//! | answered, running ahead | draw | answered, drawn ahead |
//! | answered, running ahead | stop ahead | answered |
//! | answered, running ahead | split | running ahead |
//! | answered, drawn ahead | stop ahead | answered |
//! | answered, drawn ahead | split | drawn ahead |
//! | waiting ahead | start | running ahead |
//! | waiting ahead | promote | waiting |
//! | waiting ahead | await masks | awaiting ahead |
//! | awaiting ahead | promote | awaiting |
//! | running ahead | stop | waiting ahead |
//! | running ahead | draw | drawn ahead |
//! | running ahead | promote | running |
//! | drawn ahead | promote | waiting |
//!
//! `stop` and `draw` end a batch, without a token and with one. What is promoted after its token was drawn is judged
//! and answered at once; so is what resumes. What runs ahead gets its mask only when it was asked for.

use crate::errors::Error;
use crate::generation::FinishReason;
use crate::ids::RequestId;

/// Where a pass stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Phase {
    /// A program asked for it, and no batch runs it: it is in the queue, or about to be judged.
    Waiting(RequestId),
    /// A program asked for it, and a batch runs it.
    Running(RequestId),
    /// A program asked for it, and nothing is missing but token masks.
    Awaiting(RequestId),
    /// A program asked for it, and it has no drafts yet.
    Drafting(RequestId),
    /// Its answer can be taken.
    Answered {
        request: RequestId,
        /// Of the tokens of the pass, those that belong to the answer; the others ran ahead of it.
        n_tokens: u32,
        /// Why the generation ended, where it did.
        finish: Option<FinishReason>,
        ahead: Option<Ahead>,
    },
    /// Its error can be taken. What it computed does not count.
    Failed(RequestId, Box<Error>),
    /// Its answer was taken, and no program has asked for what comes next.
    Ahead(Ahead),
}

/// Where a token stands that no program has asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ahead {
    Waiting,
    Running,
    /// Nothing is missing but its token mask.
    Awaiting,
    /// It goes no further: one token is drawn ahead, and not a second one.
    Drawn,
}

impl Phase {
    /// A batch runs it.
    pub(super) fn start(&mut self) -> bool {
        match self {
            Self::Waiting(request) => *self = Self::Running(*request),
            Self::Answered {
                ahead: Some(ahead @ Ahead::Waiting),
                ..
            }
            | Self::Ahead(ahead @ Ahead::Waiting) => *ahead = Ahead::Running,
            _ => return false,
        }
        true
    }

    /// The batch is done, and drew no token of it.
    pub(super) fn stop(&mut self) -> bool {
        self.end_batch(Ahead::Waiting)
    }

    /// The batch is done, and drew a token of it.
    pub(super) fn draw(&mut self) -> bool {
        self.end_batch(Ahead::Drawn)
    }

    fn end_batch(&mut self, then: Ahead) -> bool {
        match self {
            Self::Running(request) => *self = Self::Waiting(*request),
            Self::Answered {
                ahead: Some(ahead @ Ahead::Running),
                ..
            }
            | Self::Ahead(ahead @ Ahead::Running) => *ahead = then,
            _ => return false,
        }
        true
    }

    /// Nothing is missing but token masks.
    pub(super) fn await_masks(&mut self) -> bool {
        match self {
            Self::Waiting(request) => *self = Self::Awaiting(*request),
            Self::Answered {
                ahead: Some(ahead @ Ahead::Waiting),
                ..
            }
            | Self::Ahead(ahead @ Ahead::Waiting) => *ahead = Ahead::Awaiting,
            _ => return false,
        }
        true
    }

    /// It goes on when it has its drafts.
    pub(super) fn await_drafts(&mut self) -> bool {
        let Self::Waiting(request) = *self else {
            return false;
        };
        *self = Self::Drafting(request);
        true
    }

    /// It has its drafts, or goes on without any.
    pub(super) fn end_drafting(&mut self) -> bool {
        let Self::Drafting(request) = *self else {
            return false;
        };
        *self = Self::Waiting(request);
        true
    }

    /// Its rows were drawn from: it is about to be judged.
    pub(super) fn resume(&mut self) -> bool {
        let Self::Awaiting(request) = *self else {
            return false;
        };
        *self = Self::Waiting(request);
        true
    }

    /// Its answer is ready: `n_tokens` of its tokens. `goes_ahead` tells whether it goes on.
    pub(super) fn answer(
        &mut self,
        n_tokens: u32,
        finish: Option<FinishReason>,
        goes_ahead: bool,
    ) -> bool {
        let Self::Waiting(request) = *self else {
            return false;
        };
        *self = Self::Answered {
            request,
            n_tokens,
            finish,
            ahead: goes_ahead.then_some(Ahead::Waiting),
        };
        true
    }

    /// What ran ahead of the answer is forgotten.
    pub(super) const fn stop_ahead(&mut self) -> bool {
        let Self::Answered { ahead, .. } = self else {
            return false;
        };
        *ahead = None;
        true
    }

    /// The phase of what runs ahead of the answer, as a pass of its own; none where nothing does.
    pub(super) const fn split(&self) -> Option<Self> {
        match self {
            Self::Answered {
                ahead: Some(ahead), ..
            } => Some(Self::Ahead(*ahead)),
            _ => None,
        }
    }

    /// A program asks for what ran ahead.
    pub(super) fn promote(&mut self, request: RequestId) -> bool {
        let Self::Ahead(ahead) = self else {
            return false;
        };
        *self = match ahead {
            Ahead::Waiting | Ahead::Drawn => Self::Waiting(request),
            Ahead::Running => Self::Running(request),
            Ahead::Awaiting => Self::Awaiting(request),
        };
        true
    }

    /// It ends with an error.
    pub(super) fn fail(&mut self, error: Error) -> bool {
        let (Self::Waiting(request)
        | Self::Running(request)
        | Self::Awaiting(request)
        | Self::Drafting(request)) = *self
        else {
            return false;
        };
        *self = Self::Failed(request, Box::new(error));
        true
    }

    /// The request that it serves; none where it runs ahead as a pass of its own.
    pub(super) const fn request(&self) -> Option<RequestId> {
        match self {
            Self::Waiting(request)
            | Self::Running(request)
            | Self::Awaiting(request)
            | Self::Drafting(request)
            | Self::Answered { request, .. }
            | Self::Failed(request, _) => Some(*request),
            Self::Ahead(_) => None,
        }
    }

    /// Where what nobody has asked for stands.
    const fn ahead(&self) -> Option<Ahead> {
        match self {
            Self::Answered { ahead, .. } => *ahead,
            Self::Ahead(ahead) => Some(*ahead),
            Self::Waiting(_)
            | Self::Running(_)
            | Self::Awaiting(_)
            | Self::Drafting(_)
            | Self::Failed(..) => None,
        }
    }

    /// Whether it waits for a batch.
    pub(super) const fn is_waiting(&self) -> bool {
        matches!(self, Self::Waiting(_)) || matches!(self.ahead(), Some(Ahead::Waiting))
    }

    /// Whether a program asked for it, and nothing is missing but token masks.
    pub(super) const fn is_awaiting(&self) -> bool {
        matches!(self, Self::Awaiting(_))
    }

    /// Whether it goes on when it has its drafts.
    pub(super) const fn is_drafting(&self) -> bool {
        matches!(self, Self::Drafting(_))
    }

    /// Whether nothing is missing but token masks, asked for or not.
    pub(super) fn awaits_masks(&self) -> bool {
        self.is_awaiting() || self.ahead() == Some(Ahead::Awaiting)
    }

    /// Whether a program asked for it, and a batch runs it.
    pub(super) const fn is_asked_and_running(&self) -> bool {
        matches!(self, Self::Running(_))
    }

    /// Whether a batch runs it.
    pub(super) const fn is_running(&self) -> bool {
        matches!(self, Self::Running(_)) || matches!(self.ahead(), Some(Ahead::Running))
    }
}
