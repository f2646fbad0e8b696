//! A batch in the making: `admitting` gives what the scheduler offers a place, `displacing` finds pages for it,
//! `writing` puts it into the arena.

use std::collections::BTreeSet;
use std::ops::Range;

use super::device::{Device, InFlight};
use super::idle::IdleList;
use super::owned::Owned;
use super::totals::Totals;
use crate::config::EngineConfig;
use crate::errors::Error;
use crate::ids::{ContextId, PageId, PassId, RequestId};
use crate::kv::{Content, PageCopy, PageDemand};
use crate::market::{Auction, Ledger};
use crate::sched::Ticket;

/// What a plan reads and changes of the engine, and what it comes to.
pub(super) struct Planner<'a> {
    pub(super) demand: PageDemand,
    pub(super) now_ns: u64,
    /// What computing a token costs.
    pub(super) token_ns: u64,
    /// A request that displaces every other, where none can run.
    pub(super) urgent: Option<PassId>,
    pub(super) config: &'a EngineConfig,
    pub(super) owned: &'a mut Owned,
    pub(super) market: &'a Ledger,
    pub(super) idle: &'a mut IdleList,
    pub(super) device: &'a mut Device,
    pub(super) totals: &'a mut Totals,
    pub(super) batch: InFlight,
    /// Rows of forward passes.
    pub(super) n_reads: u32,
    /// The pages of the sequence that is added, behind its full ones; its memory serves one after the other.
    pub(super) last_pages: Vec<PageId>,
    pub(super) fates: Fates,
    /// What is bid for pages; none while they are not short.
    pub(super) auction: Option<Auction>,
}

/// What becomes of requests apart from the batch.
#[derive(Debug, Default)]
pub(super) struct Fates {
    /// Requests whose contexts have outgrown the pool.
    pub(super) doomed: Vec<(Ticket, Error)>,
    /// Passes of which nothing is left to compute, with the request that is answered where no token mask is missing,
    /// and contexts whose pass ran ahead in vain.
    pub(super) done: Vec<(ContextId, Option<RequestId>)>,
    /// Requests that lack pages, and for which more was bid than for others that have a place.
    pub(super) outbidding: BTreeSet<PassId>,
    /// When pages may be had that programs expected back hold now.
    pub(super) retry_ns: Option<u64>,
}

/// Tokens of a context that a batch computes.
#[derive(Debug, Default)]
pub(super) struct Chunk<'a> {
    pub(super) slots: Range<u32>,
    /// The only token is in its slot already.
    pub(super) reread: bool,
    /// What stands in the slots, and perhaps behind them; none where they are plain tokens of the pass.
    pub(super) content: Option<&'a Content>,
    /// A copy of a page, and the place in the context of what it replaces.
    pub(super) copy: Option<(u32, PageCopy)>,
}
