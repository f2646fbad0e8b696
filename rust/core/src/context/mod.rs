//! A context: a sequence of tokens, apart from where its pages are.

mod pass;

use crate::ids::{BatchId, GeneratorId, ProcessId};
use crate::kv::{PagePool, PageTable};

pub(crate) use pass::{Draws, Pass, PassKind};

/// The state of a context.
///
/// `tokens`, `pending` and `buffer` are what the program sees. A pass under way computes beyond `tokens` and changes none of
/// them: they change when the program takes its result. So undoing a pass is to forget it, and to drop the pages behind `tokens`.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) process: ProcessId,
    /// Tokens whose keys and values are in the pages.
    pub(crate) tokens: Vec<u32>,
    /// The newest token of a generation, which has no keys and values yet.
    pub(crate) pending: Option<u32>,
    /// What the program appended and no pass has taken.
    pub(crate) buffer: Vec<u32>,
    /// Full pages that cannot be truncated any more.
    pub(crate) n_committed: u32,
    pub(crate) table: PageTable,
    /// The batch that uses the pages. Until it completes no page leaves the table, whatever the program does.
    pub(crate) lease: Option<BatchId>,
    /// The program released it; it goes when its lease ends.
    pub(crate) released: bool,
    /// The generator that is not retired.
    pub(crate) generator: Option<GeneratorId>,
    pub(crate) pass: Option<Pass>,
    /// Which fork of which fork it is, as a hash.
    pub(crate) path: u64,
    /// Forks made of it.
    pub(crate) n_forks: u64,
}

impl Context {
    pub(crate) fn new(process: ProcessId) -> Self {
        Self {
            process,
            tokens: Vec::new(),
            pending: None,
            buffer: Vec::new(),
            n_committed: 0,
            table: PageTable::default(),
            lease: None,
            released: false,
            generator: None,
            pass: None,
            path: 0,
            n_forks: 0,
        }
    }

    /// A copy of everything, which shares the pages.
    pub(crate) fn fork(&mut self, pool: &mut PagePool, page_size: u32) -> Self {
        self.n_forks += 1;
        Self {
            tokens: self.tokens.clone(),
            pending: self.pending,
            buffer: self.buffer.clone(),
            n_committed: self.n_committed,
            table: self.table.fork(pool, page_size, self.n_computed()),
            path: crate::hash::fold(self.path, self.n_forks),
            ..Self::new(self.process)
        }
    }

    /// Tokens in pages.
    pub(crate) fn n_computed(&self) -> u32 {
        self.tokens.len() as u32
    }

    /// Tokens in pages, and the pending one.
    pub(crate) fn seq_len(&self) -> u32 {
        self.n_computed() + u32::from(self.pending.is_some())
    }

    /// Tokens in pages, the pending one, and those in the buffer.
    pub(crate) fn length(&self) -> u32 {
        self.seq_len() + self.buffer.len() as u32
    }

    /// All tokens in order.
    pub(crate) fn all_tokens(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.tokens
            .iter()
            .chain(&self.pending)
            .chain(&self.buffer)
            .copied()
    }

    /// Makes what was folded in final: its full pages cannot be truncated any more.
    pub(crate) fn settle(&mut self, page_size: u32) {
        self.n_committed = self.n_committed.max(self.n_computed() / page_size);
    }

    /// Drops every page behind what is computed, unless a batch uses them: then the end of the lease does.
    pub(crate) fn trim(&mut self, pool: &mut PagePool, page_size: u32) {
        if self.lease.is_none() {
            let n_computed = self.n_computed() + self.pass.as_ref().map_or(0, Pass::n_computed);
            self.table.truncate(pool, page_size, n_computed);
        }
    }

    /// Takes a finished pass into the state that the program sees.
    pub(crate) fn absorb(&mut self, pass: Pass) {
        self.buffer
            .drain(..pass.n_buffered().min(self.buffer.len()));
        let (computed, pending) = pass.into_tokens();
        self.tokens.extend(computed);
        self.pending = pending;
    }
}
