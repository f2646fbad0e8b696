//! Mistakes that a program is warned of, each once: what it does is allowed, and hardly meant.

use std::sync::atomic::{AtomicBool, Ordering};

/// What a program has hardly meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// It generates behind a system message alone.
    OnlyInstructions,
    /// It has made a generator, and drops it without a step.
    GeneratorNotRun,
    /// It has started a child, and ends while that runs, without having waited for it.
    ChildNotAwaited,
}

impl Mistake {
    /// What happened, and what to do.
    pub(crate) const fn advice(self) -> &'static str {
        match self {
            Self::OnlyInstructions => {
                "the context holds a system message and no user message, so the model has nothing to answer; add one with \
                 `user` before `generate`"
            }
            Self::GeneratorNotRun => {
                "a generator was made and never run, so that nothing was generated; await a collector of it, or its steps"
            }
            Self::ChildNotAwaited => {
                "the program ended while a child ran that it has started and never waited for, and the child ends with it; \
                 await what `spawn` gives, end the child by its `cancel`, or start it detached"
            }
        }
    }
}

/// The mistakes that a process was warned of.
#[derive(Debug, Default)]
pub(crate) struct Mistakes {
    only_instructions: AtomicBool,
    generator_not_run: AtomicBool,
    /// A generator was dropped without having run, and the process is to be warned of it at its end.
    holds_unrun_generator: AtomicBool,
    child_not_awaited: AtomicBool,
}

impl Mistakes {
    /// Notes a mistake; true the first time.
    pub(crate) fn note(&self, mistake: Mistake) -> bool {
        let is_noted = match mistake {
            Mistake::OnlyInstructions => &self.only_instructions,
            Mistake::GeneratorNotRun => &self.generator_not_run,
            Mistake::ChildNotAwaited => &self.child_not_awaited,
        };
        !is_noted.swap(true, Ordering::Relaxed)
    }

    /// Notes a generator that was dropped without having run, to be told of later.
    pub(crate) fn hold_unrun_generator(&self) {
        self.holds_unrun_generator.store(true, Ordering::Relaxed);
    }

    /// Whether a generator was dropped without having run.
    pub(crate) fn has_unrun_generator(&self) -> bool {
        self.holds_unrun_generator.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mistake_is_told_once() {
        let told = Mistakes::default();
        assert!(told.note(Mistake::OnlyInstructions));
        assert!(!told.note(Mistake::OnlyInstructions));
        assert!(told.note(Mistake::GeneratorNotRun));
        assert!(!told.note(Mistake::GeneratorNotRun));
    }
}
