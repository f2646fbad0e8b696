//! What a process has of the market for pages.

use std::fmt;
use std::sync::Arc;

use pie_core::ProcessId;
use pie_core::market::credits;

use crate::model::Model;

/// The accounts of a process, one in each model, from its launch until this is dropped.
pub(crate) struct Purse {
    process: ProcessId,
    models: Vec<Arc<Model>>,
}

/// What the accounts of a process begin with, in micro-credits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endowment {
    /// What its launch says.
    pub(crate) wanted: Option<u64>,
    /// What a process has whose launch says nothing, and the most that a child has then.
    pub(crate) usual: u64,
    /// Whose account it comes from; none: nobody's.
    pub(crate) parent: Option<ProcessId>,
}

/// What a process has of one model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Holding {
    /// The name of the model.
    pub model: String,
    /// Its balance, in credits.
    pub balance: f64,
    /// The highest bid of its contexts, in credits a page.
    pub bid: f64,
}

impl Purse {
    /// Opens an account in each of the models.
    pub(crate) fn open(process: ProcessId, models: Vec<Arc<Model>>, endowment: Endowment) -> Self {
        let Endowment {
            wanted,
            usual,
            parent,
        } = endowment;
        for model in &models {
            model.with_engine(|engine| engine.open_account(process, parent, wanted, usual));
        }
        Self { process, models }
    }

    /// What the process has of each model.
    pub(crate) fn holdings(&self) -> Vec<Holding> {
        let holding = |model: &Arc<Model>| {
            let found = model.with_engine(|engine| {
                let balance = engine.account(self.process)?.balance;
                Some((balance, engine.highest_bid(self.process)))
            });
            let (balance, bid) = found?;
            Some(Holding {
                model: model.name().to_owned(),
                balance: credits(balance),
                bid: credits(u128::from(bid)),
            })
        };
        self.models.iter().filter_map(holding).collect()
    }
}

impl fmt::Debug for Purse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Purse")
            .field("process", &self.process)
            .finish_non_exhaustive()
    }
}

impl Drop for Purse {
    /// What is left returns to the parent.
    fn drop(&mut self) {
        for model in &self.models {
            model.with_engine(|engine| engine.close_account(self.process));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::{PROCESS, undriven};

    #[test]
    fn accounts_last_as_long_as_the_purse_and_what_is_left_returns() {
        let model = undriven();
        let open = |process, wanted, parent| {
            let endowment = Endowment {
                wanted,
                usual: 1000,
                parent,
            };
            Purse::open(process, vec![model.clone()], endowment)
        };
        let balance = |purse: &Purse| purse.holdings().first().map(|holding| holding.balance);
        let parent = open(PROCESS, Some(3_000_000), None);
        let child = open(ProcessId(2), None, Some(PROCESS));
        assert_eq!(balance(&child), Some(0.001));
        assert_eq!(balance(&parent), Some(2.999));
        drop(child);
        assert_eq!(balance(&parent), Some(3.0));
        drop(parent);
        let left = model.with_engine(|engine| engine.account(PROCESS).cloned());
        assert_eq!(left, None);
    }
}
