//! What programs are charged with for grammars, as long as a handle, a matcher or a generator has one: whichever of
//! them the program keeps.

use std::sync::{Arc, Weak};

use pie_text::grammar::{Compiled, Grammar, Matcher};

use crate::Error;
use crate::budget::{Account, Charge, Purpose};

/// A grammar that a program has.
#[derive(Debug)]
pub(crate) struct HeldGrammar {
    pub(crate) grammar: Arc<Grammar>,
    charge: Arc<Charge>,
    /// Compiled for models, as long as matchers of it live.
    compiled: Vec<Weak<HeldCompiled>>,
}

/// A grammar that was compiled for a model, and that matchers share.
#[derive(Debug)]
pub(crate) struct HeldCompiled {
    compiled: Arc<Compiled>,
    _charge: Charge,
    _of_grammar: Arc<Charge>,
}

impl HeldGrammar {
    /// One that its holder is charged for.
    ///
    /// # Errors
    /// `limit-engine-memory`.
    pub(crate) fn new(account: &Account, grammar: Arc<Grammar>) -> Result<Self, Error> {
        let charge = account.charge(Purpose::Options, grammar.n_bytes() as u64)?;
        Ok(Self {
            grammar,
            charge: Arc::new(charge),
            compiled: Vec::new(),
        })
    }

    /// What it was compiled to, charged once for all matchers.
    ///
    /// # Errors
    /// `limit-engine-memory`.
    pub(crate) fn hold(
        &mut self,
        account: &Account,
        compiled: Arc<Compiled>,
    ) -> Result<Arc<HeldCompiled>, Error> {
        self.compiled.retain(|held| held.strong_count() > 0);
        let mut held = self.compiled.iter().filter_map(Weak::upgrade);
        if let Some(held) = held.find(|held| Arc::ptr_eq(&held.compiled, &compiled)) {
            return Ok(held);
        }
        let charge = account.charge(Purpose::Options, compiled.n_bytes() as u64)?;
        let held = Arc::new(HeldCompiled {
            compiled,
            _charge: charge,
            _of_grammar: self.charge.clone(),
        });
        self.compiled.push(Arc::downgrade(&held));
        Ok(held)
    }
}

impl HeldCompiled {
    /// A matcher at the beginning of a text, which may be ended by one of the `stop` tokens.
    pub(crate) fn matcher(&self, stop: Vec<u32>) -> Matcher {
        Matcher::new(&self.compiled, stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::model::grammars::{Grammars, OwnedSource};
    use crate::model::testing::tiny_chat;

    #[test]
    fn a_grammar_is_charged_once_as_long_as_a_matcher_has_it() {
        let (grammars, chat) = (Grammars::default(), tiny_chat());
        let source = OwnedSource::Regex("(ab|cd)*e".repeat(100));
        let grammar = grammars.check("ada", &source).unwrap();
        let compiled = grammars.compile("ada", &chat, &grammar).unwrap();
        let n_bytes = (grammar.n_bytes() + compiled.n_bytes()) as u64;
        let budget = Budget::new(1 << 30, None);
        let account = budget.account("ada");
        let mut held = HeldGrammar::new(&account, grammar).unwrap();
        let first = held.hold(&account, compiled.clone()).unwrap();
        let second = held.hold(&account, compiled.clone()).unwrap();
        assert_eq!(budget.held_bytes(), n_bytes);
        drop((held, first));
        assert_eq!(budget.held_bytes(), n_bytes);
        drop(second);
        assert_eq!(budget.held_bytes(), 0);
        // One for which there is no room is refused, and charged with nothing.
        let small = Budget::new(1 << 20, Some(n_bytes - 1)).account("ada");
        let filled = small.charge(Purpose::Options, (1 << 20) / 64).ok();
        let grammar = compiled.grammar().clone();
        let held = HeldGrammar::new(&small, grammar);
        let held = held.and_then(|mut held| held.hold(&small, compiled));
        assert_eq!(
            held.unwrap_err().code,
            pie_core::ErrorCode::LimitEngineMemory
        );
        drop(filled);
        assert_eq!(small.usage().n_bytes(), 0);
    }
}
