//! What a program may know, and what each of its requests must answer.

use std::collections::HashMap;

use pie_core::sampling::Params;
use pie_core::{
    Adapter, ContextId, Drafting, FinishReason, GeneratorId, Output, Reading, RequestId, RowOutput,
};

use super::support::{Slot, write_plain};

/// What a program may know of a context.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub process: usize,
    /// What was computed.
    pub slots: Vec<Slot>,
    pub pending: Vec<u32>,
    /// So many of the last tokens, the buffer apart, can be replaced.
    pub provisional: Option<usize>,
    pub buffer: Vec<u32>,
    pub n_committed: usize,
    /// Tokens whose full pages are committed when the program goes on.
    pub n_final: usize,
    /// Pages that were reserved, filled ones included.
    pub n_reserved: usize,
    pub path: u64,
    pub n_forks: u64,
    pub generator: Option<GeneratorId>,
    pub request: Option<RequestId>,
}

impl Model {
    pub fn all(&self) -> Vec<u32> {
        let computed = self.slots.iter().map(|slot| slot.token);
        computed.chain(self.taken()).collect()
    }

    /// What a pass takes first.
    pub fn taken(&self) -> Vec<u32> {
        let taken = self.pending.iter().chain(&self.buffer);
        taken.copied().collect()
    }

    pub fn seq_len(&self) -> usize {
        self.slots.len() + self.pending.len()
    }

    pub fn n_pages(&self, page_size: usize) -> usize {
        self.slots.len().div_ceil(page_size).max(self.n_reserved)
    }

    pub fn settle(&mut self, page_size: u32) {
        self.provisional = None;
        let page_size = page_size as usize;
        self.n_committed = self.n_committed.max(self.n_final / page_size * page_size);
    }

    /// The slots, with what a pass takes written behind them.
    pub fn written(&self, tokens: &[u32], adapter: Adapter) -> Vec<Slot> {
        let mut slots = self.slots.clone();
        for &token in tokens {
            slots.push(write_plain(&slots, token, adapter));
        }
        slots
    }

    /// A pass took the pending tokens and so much of the buffer, and left these slots.
    pub fn take(&mut self, slots: Vec<Slot>, n_buffered: usize) {
        self.pending.clear();
        self.buffer.drain(..n_buffered);
        self.slots = slots;
    }

    /// Drops the last tokens, the pending ones first.
    pub fn drop_tokens(&mut self, n: usize) {
        let n_pending = n.min(self.pending.len());
        self.pending.truncate(self.pending.len() - n_pending);
        self.slots.truncate(self.slots.len() - (n - n_pending));
        self.n_final = self.n_final.min(self.slots.len());
        self.generator = None;
    }
}

#[derive(Clone, Debug)]
pub struct GeneratorModel {
    pub params: Params,
    pub seed: Option<u64>,
    pub max_tokens: Option<u32>,
    pub stop: Vec<u32>,
    pub adapter: Adapter,
    pub drafting: Drafting,
    pub n_accepted: u32,
    pub finish: Option<FinishReason>,
    pub counted: bool,
    pub n_steps: u32,
    /// Its last step drew nothing, and what follows was not said.
    pub lacks_tokens: bool,
    pub process: usize,
    /// The token masks of its steps come late.
    pub late: bool,
    /// What was wanted of the step that was asked for and not taken: it is opened again with that.
    pub undone: Option<Wanted>,
}

/// What is wanted of a step.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// It draws nothing.
    pub is_cleared: bool,
    /// So many tokens that are right are proposed, and others behind them.
    pub drafts: Option<(usize, Vec<u32>)>,
    /// So many times the row is read from which it draws.
    pub n_probes: usize,
}

impl Wanted {
    pub fn cleared() -> Self {
        Self {
            is_cleared: true,
            ..Self::default()
        }
    }

    /// The same, in a step that is open and of which that was wanted before.
    pub fn with(&self, before: Option<&Self>) -> Self {
        let before = before.cloned().unwrap_or_default();
        Self {
            is_cleared: self.is_cleared || before.is_cleared,
            drafts: self.drafts.clone().or(before.drafts),
            n_probes: self.n_probes + before.n_probes,
        }
    }
}

/// A row whose token mask comes late, and was not given.
#[derive(Clone, Debug)]
pub struct Awaited {
    pub request: RequestId,
    pub row: u32,
    pub mask: Vec<bool>,
}

/// What a request must answer.
#[derive(Clone, Debug)]
pub struct Expected {
    pub context: ContextId,
    pub n_buffered: usize,
    pub what: What,
}

#[derive(Clone, Debug)]
pub enum What {
    Flush,
    Generation(Generation),
    Forward(Box<Forwarded>),
}

#[derive(Clone, Debug)]
pub struct Generation {
    pub generator: GeneratorId,
    pub tokens: Vec<u32>,
    pub finish: Option<FinishReason>,
    pub seed: u64,
    pub origin: (u64, Vec<u32>),
    pub run: bool,
    /// There was nothing to run.
    pub void: bool,
    /// It was to draw nothing.
    pub is_cleared: bool,
    /// Tokens were proposed, or may have been: any number of the tokens may be accepted, one at least.
    pub is_drafted: bool,
    /// The token mask of a step, where it comes late.
    pub mask: Option<Vec<bool>>,
    /// What each of its probes reads.
    pub readings: Vec<Reading>,
}

impl Generation {
    /// What was accepted of tokens that may have been drafted: one at least, and those drafts that were right.
    pub fn cut(mut self, output: &Output) -> Self {
        let n = output.tokens.len();
        let n_accepted = output.speculation.n_accepted as usize;
        assert!((n_accepted..=n_accepted + 1).contains(&n) && n > 0);
        if n < self.tokens.len() {
            self.tokens.truncate(n);
            self.finish = None;
        }
        self
    }
}

#[derive(Clone, Debug)]
pub struct Forwarded {
    /// The slots of the context afterwards.
    pub slots: Vec<Slot>,
    pub n_given: u32,
    pub rows: Vec<RowOutput>,
    /// None: it draws nothing.
    pub origin: Option<(u64, Vec<u32>)>,
    pub leaves: bool,
}

impl What {
    /// Tokens that the context may hold beyond those that it shows.
    pub fn n_to_come(&self) -> u32 {
        match self {
            Self::Flush => 0,
            Self::Generation(_) => 1,
            Self::Forward(forwarded) => forwarded.n_given,
        }
    }

    pub fn is_drafted(&self) -> bool {
        matches!(self, Self::Generation(generation) if generation.is_drafted)
    }

    pub fn is_run(&self) -> bool {
        matches!(self, Self::Generation(generation) if generation.run)
    }
}

/// A snapshot, with what was put beside it.
#[derive(Clone, Debug)]
pub struct Kept {
    pub model: Model,
    pub beside: u64,
}

/// What the seeds of a process depend on.
#[derive(Clone, Debug, Default)]
pub struct Process {
    pub id: u64,
    pub user: u64,
    pub launch_seed: u64,
    pub counts: HashMap<(u64, Vec<u32>), u64>,
    pub opened: HashMap<u64, u64>,
}
