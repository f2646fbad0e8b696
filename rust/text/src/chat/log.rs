//! The stretches of a context, in order.
//!
//! A list whose parts never change: another stretch is a part of its own in front of those before. So forks and
//! snapshots share what they have in common, and one more costs the same behind any number. What would have to be
//! looked for in all of them is kept with each part.

use std::fmt;
use std::sync::Arc;

use super::role::Role;
use super::turn::Turn;
use super::window::shortened;
use crate::tools::list::ToolList;

/// A stretch ends where `end` tokens of the context are counted, and begins where the one before ends.
#[derive(Debug, PartialEq, Eq)]
struct Stretch {
    end: u32,
    turn: Turn,
}

/// The stretches of a context. A clone costs no more than a reference.
#[derive(Clone, Default)]
pub(super) struct Log(Option<Arc<Part>>);

struct Part {
    stretch: Stretch,
    before: Log,
    so_far: SoFar,
}

/// What all stretches up to one say together.
#[derive(Clone, Default)]
pub(super) struct SoFar {
    /// Who spoke, in order, as far as a template sees it.
    pub(super) roles: Option<Arc<[Role]>>,
    /// The template's text behind the last of them; none when nobody spoke.
    pub(super) closing: Option<Arc<str>>,
    /// Whether something stands before the first of them, which is not a turn.
    pub(super) follows: bool,
    /// Whether the last stretch opens the assistant's turn.
    is_open: bool,
    /// The tools that were given last.
    pub(super) tools: Option<Arc<ToolList>>,
    /// Whether nothing has written them.
    pub(super) are_unwritten: bool,
    /// Where the tokens at the end begin that no template wrote, or of which it wrote the beginning of a cue.
    pub(super) raw_start: u32,
    /// Bytes of the tools of all stretches.
    pub(super) tool_bytes: usize,
}

impl SoFar {
    /// The same with one more stretch.
    fn with(&self, stretch: &Stretch) -> Self {
        let mut so_far = self.clone();
        let turn = &stretch.turn;
        if !turn.is_free() {
            so_far.raw_start = stretch.end;
        }
        so_far.is_open = matches!(turn, Turn::Open { .. });
        match turn {
            Turn::Tools { tools, written } => {
                so_far.give(tools, !written);
                so_far.follows |= *written && self.roles.is_none();
            }
            Turn::Said {
                role,
                closing,
                with,
            } => {
                if let Some(tools) = &with.tools {
                    so_far.give(tools, false);
                }
                // The answer of a tool closes the turn that called it.
                let caller = (self.is_open && *role == Role::Tool).then_some(Role::Assistant);
                so_far.speak(caller.into_iter().chain([*role]));
                let closing = with.plain_closing.as_ref().unwrap_or(closing);
                so_far.closing = Some(Arc::clone(closing));
            }
            Turn::Sealed { closing, .. } => {
                so_far.speak([Role::Assistant].into_iter());
                so_far.closing = Some(Arc::clone(closing));
            }
            Turn::Open { .. } | Turn::Cut { .. } | Turn::Raw => {
                so_far.follows |= self.roles.is_none();
            }
        }
        so_far
    }

    fn give(&mut self, tools: &Arc<ToolList>, are_unwritten: bool) {
        if !self.tools.as_ref().is_some_and(|it| Arc::ptr_eq(it, tools)) {
            self.tool_bytes += tools.n_bytes();
        }
        self.tools = Some(Arc::clone(tools));
        self.are_unwritten = are_unwritten;
    }

    fn speak(&mut self, more: impl Iterator<Item = Role>) {
        let before = self.roles.as_deref().unwrap_or_default();
        let roles: Vec<Role> = before.iter().copied().chain(more).collect();
        self.roles = Some(shortened(roles).into());
    }
}

impl Log {
    /// What stands last, and where it ends.
    pub(super) fn last(&self) -> Option<(u32, &Turn)> {
        let stretch = &self.0.as_ref()?.stretch;
        Some((stretch.end, &stretch.turn))
    }

    /// What stands before the last stretch.
    pub(super) fn before(&self) -> Self {
        self.0
            .as_ref()
            .map_or_else(Self::default, |part| part.before.clone())
    }

    /// What all of them say together; none where there are none.
    pub(super) fn so_far(&self) -> Option<&SoFar> {
        self.0.as_ref().map(|part| &part.so_far)
    }

    /// Adds a stretch that ends at `end`.
    pub(super) fn push(&mut self, end: u32, turn: Turn) {
        let stretch = Stretch { end, turn };
        let before = std::mem::take(self);
        let so_far = match before.so_far() {
            Some(so_far) => so_far.with(&stretch),
            None => SoFar::default().with(&stretch),
        };
        self.0 = Some(Arc::new(Part {
            stretch,
            before,
            so_far,
        }));
    }

    /// Takes off the last stretch where it ends behind `end`.
    pub(super) fn pop_behind(&mut self, end: u32) -> Option<(u32, Turn)> {
        let (last, turn) = self.last().filter(|(last, _)| *last > end)?;
        let popped = (last, turn.clone());
        *self = self.before();
        Some(popped)
    }

    /// What all of them are and where they end, the last first.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, &Turn)> {
        let stretches = self.stretches();
        stretches.map(|stretch| (stretch.end, &stretch.turn))
    }

    fn stretches(&self) -> impl Iterator<Item = &Stretch> {
        std::iter::successors(self.0.as_deref(), |part| part.before.0.as_deref())
            .map(|part| &part.stretch)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // A long list that dropped its parts within each other would overflow the stack.
        let mut next = self.0.take();
        while let Some(part) = next {
            next = Arc::into_inner(part).and_then(|mut part| part.before.0.take());
        }
    }
}

impl PartialEq for Log {
    fn eq(&self, other: &Self) -> bool {
        self.stretches().eq(other.stretches())
    }
}

impl Eq for Log {}

impl fmt::Debug for Log {
    /// The last stretch first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.stretches()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_is_dropped_and_compared_without_a_deep_stack() {
        let mut log = Log::default();
        for end in 1..=1_000_000 {
            log.push(end, Turn::Raw);
        }
        let fork = log.clone();
        log.push(1_000_001, Turn::Raw);
        assert_ne!(log, fork);
        assert_eq!(log.before(), fork);
        drop(log);
        assert_eq!(fork.last(), Some((1_000_000, &Turn::Raw)));
    }

    #[test]
    fn another_stretch_shares_those_before() {
        let mut log = Log::default();
        log.push(1, Turn::Raw);
        let (mut left, mut right) = (log.clone(), log.clone());
        left.push(2, Turn::Open { whole: true });
        right.push(3, Turn::Raw);
        let [left, right] = [left.before(), right.before()].map(|it| it.0.clone().unwrap());
        assert!(Arc::ptr_eq(&left, &right));
        assert!(Arc::ptr_eq(&left, log.0.as_ref().unwrap()));
    }
}
