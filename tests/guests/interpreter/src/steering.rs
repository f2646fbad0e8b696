//! The constraints and the speculator of a vector, and what they were told.

use std::sync::{Arc, Mutex};

use inferlet::Constrain;
use inferlet::spec::Speculator;
use serde_json::{Value, json};

/// What the constraints and the speculator of one generator were told.
#[derive(Default)]
pub struct Logs {
    pub constraints: Vec<Log>,
    pub speculator: Log,
}

/// What one was told, in the order of the calls. The traits ask for `Send`, which a cell of a program is not.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<Value>>>);

impl Log {
    /// Writes it down; how much was told.
    fn tell(&self, what: Value) -> usize {
        self.0.lock().map_or(0, |mut told| {
            told.push(what);
            told.len()
        })
    }

    pub fn told(&self) -> Vec<Value> {
        self.0
            .lock()
            .map_or_else(|_| Vec::new(), |told| told.clone())
    }
}

impl Logs {
    /// A constraint that answers with these masks in turn.
    pub fn constraint(&mut self, masks: &[Vec<u32>]) -> impl Constrain + use<> {
        let log = Log::default();
        self.constraints.push(log.clone());
        Masks {
            masks: masks.to_vec(),
            log,
        }
    }

    /// A speculator that proposes these tokens in turn, behind `start` and what was drawn since.
    pub fn speculator(&self, start: u32, drafts: &[Vec<u32>]) -> impl Speculator + use<> {
        Drafts {
            drafts: drafts.to_vec().into_iter(),
            start,
            n_drawn: 0,
            log: self.speculator.clone(),
        }
    }
}

struct Masks {
    masks: Vec<Vec<u32>>,
    log: Log,
}

impl Constrain for Masks {
    fn step(&mut self, accepted: &[u32]) -> &[u32] {
        let n_asked = self.log.tell(json!(accepted));
        self.masks.get(n_asked - 1).map_or(&[], Vec::as_slice)
    }
}

struct Drafts {
    drafts: std::vec::IntoIter<Vec<u32>>,
    start: u32,
    n_drawn: u32,
    log: Log,
}

impl Speculator for Drafts {
    fn draft(&mut self) -> (Vec<u32>, Vec<u32>) {
        let tokens = self.drafts.next().unwrap_or_default();
        let first = self.start + self.n_drawn;
        let positions = (first..first + tokens.len() as u32).collect();
        (tokens, positions)
    }

    fn accept(&mut self, accepted: &[u32]) {
        self.n_drawn += accepted.len() as u32;
        self.log.tell(json!(["accept", accepted]));
    }

    fn rollback(&mut self, n: u32) {
        self.log.tell(json!(["rollback", n]));
    }

    fn reset(&mut self) {
        self.n_drawn = 0;
        self.log.tell(json!(["reset"]));
    }
}
