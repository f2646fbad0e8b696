//! The market in an engine: accounts of processes, bids of contexts, and what a batch costs for which pages are short.

use super::Engine;
use super::contexts::pass_under_way;
use super::owned::Owned;
use super::planner::Planner;
use crate::context::{Context, Pass};
use crate::errors::Result;
use crate::ids::{ContextId, GeneratorId, ProcessId};
use crate::kv::pages_for;
use crate::market::{Account, Auction, Bid, Ledger, Outlook, Resident, rents};
use crate::sched::Ticket;

impl Engine {
    /// Opens the account of a process with an endowment in micro-credits. A child has its endowment from its parent:
    /// what is `wanted`, or half of what the parent has and `usual` at most; never more than the parent has. One that
    /// is open stays as it is. A process without an account bids nothing.
    pub fn open_account(
        &mut self,
        process: ProcessId,
        parent: Option<ProcessId>,
        wanted: Option<u64>,
        usual: u64,
    ) {
        match parent {
            Some(parent) => self.market.open_child(process, parent, wanted, usual),
            None => self.market.open(process, wanted.unwrap_or(usual)),
        }
    }

    /// Closes the account of a process: what is left goes to its parent. An unknown one is none.
    pub fn close_account(&mut self, process: ProcessId) {
        self.market.close(process);
    }

    /// The account of a process; none where it has none.
    pub fn account(&self, process: ProcessId) -> Option<&Account> {
        self.market.account(process)
    }

    /// The clearing price of the last batch, in micro-credits a page: the highest bid that lost; 0 where pages were not
    /// short.
    pub const fn rent(&self) -> u64 {
        self.market.rent()
    }

    /// What a full page costs once, in micro-credits.
    pub const fn page_price(&self) -> u64 {
        self.config.page_price
    }

    /// The smoothed time of a batch, in nanoseconds; 0 before the first.
    pub fn tick_ns(&self) -> u64 {
        self.waiting.costs.tick_ns()
    }

    /// What the program bids for each page of the next pass of a context, in micro-credits. In a generation it holds
    /// for one step, or for all where the generator keeps it ([`Engine::rebid_each_step`]). Under shortage contexts
    /// that bid less give way to those that bid more. A program bids no more than it can pay. No token depends on it.
    ///
    /// # Errors
    /// `context-busy`, `context-released`.
    pub fn set_bid(&mut self, context: ContextId, bid: u64) -> Result<()> {
        let state = self.owned.live_mut(context)?;
        let pass = state.pass.as_ref();
        if state.before.is_some() || pass.is_some_and(|pass| pass.request().is_some()) {
            return Err(pass_under_way("bid for"));
        }
        // What runs ahead stays: a bid changes no token.
        state.offer.give(bid);
        Ok(())
    }

    /// The context bids nothing until [`Engine::end_idle`]; scopes may lie within each other.
    ///
    /// # Errors
    /// `context-released`.
    pub fn begin_idle(&mut self, context: ContextId) -> Result<()> {
        self.owned.live_mut(context)?.offer.begin_idle();
        Ok(())
    }

    /// Ends a scope in which a context bids nothing: with the last one it bids what it did before. One that was
    /// released has none.
    pub fn end_idle(&mut self, context: ContextId) {
        if let Ok(state) = self.owned.live_mut(context) {
            state.offer.end_idle();
        }
    }

    /// Whether each step of a generator bids anew, as it does at first. If not, a bid that the program gave holds for
    /// all that follow.
    ///
    /// # Errors
    /// `generator-retired`; `context-busy` while a step is under way.
    pub fn rebid_each_step(&mut self, generator: GeneratorId, rebids: bool) -> Result<()> {
        self.owned.idle_generator(generator)?.rebids = rebids;
        Ok(())
    }

    /// What a context bids for each of its pages now, in micro-credits.
    ///
    /// # Errors
    /// `context-released`.
    pub fn bid(&self, context: ContextId) -> Result<u64> {
        let state = self.owned.live(context)?;
        let page_size = self.config.driver.page_size;
        Ok(bid_of(state, &self.owned, &self.market, page_size).amount)
    }

    /// The highest bid of the contexts of a process, in micro-credits a page; 0 where it has none.
    pub fn highest_bid(&self, process: ProcessId) -> u64 {
        let process = self.owned.processes.get(&process);
        let contexts = process.map(|process| process.contexts.iter());
        let bids = contexts.into_iter().flatten().map(|id| self.bid(*id));
        bids.filter_map(Result::ok).max().unwrap_or(0)
    }

    /// A batch was planned: where pages were short for it, those who hold pages pay rent.
    pub(super) fn settle_market(&mut self, auction: Option<&Auction>) {
        let Some(auction) = auction else {
            return self.market.rest();
        };
        let n_refused = u64::from(self.waiting.queue.most_refused());
        self.totals.n_refused_max = self.totals.n_refused_max.max(n_refused);
        let price = auction.clearing_price();
        let n_pages = self.device.store.n_pages();
        let residents = match price {
            0 => Vec::new(),
            _ => self.residents(),
        };
        self.market
            .settle(price, &rents(price, n_pages, &residents));
    }

    /// The contexts that hold pages, in the order of their numbers.
    fn residents(&self) -> Vec<Resident> {
        let page_size = self.config.driver.page_size;
        let contexts = self.owned.contexts.iter();
        let resident = contexts.filter(|(_, context)| context.lane.is_resident());
        let mut sorted: Vec<(u64, &Context)> = resident.collect();
        sorted.sort_unstable_by_key(|(id, _)| *id);
        let resident = |(_, context): (u64, &Context)| Resident {
            process: context.process,
            bid: bid_of(context, &self.owned, &self.market, page_size).amount,
            pages: context.lane.pages(&self.device.store).collect(),
        };
        sorted.into_iter().map(resident).collect()
    }

    /// A process pays for pages that a context filled.
    pub(super) fn charge_pages(&mut self, process: ProcessId, n_new: u32) {
        let price = u128::from(n_new) * u128::from(self.config.page_price);
        if price > 0 {
            self.market.charge(process, price);
        }
    }
}

impl Planner<'_> {
    /// Pages are short: from now on what waits bids for them. Returns the auction of this batch.
    pub(super) fn auction(&mut self, others: &[Ticket]) -> &mut Auction {
        let (owned, market) = (&*self.owned, self.market);
        let page_size = self.config.driver.page_size;
        self.auction.get_or_insert_with(|| {
            let bid = |ticket: &Ticket| {
                let context = owned.contexts.get(ticket.context.0)?;
                Some((ticket.context, bid_of(context, owned, market, page_size)))
            };
            let asked = others.iter().filter(|ticket| !ticket.is_ahead);
            let users = asked.map(|ticket| ticket.user);
            Auction::new(others.iter().filter_map(bid), users)
        })
    }
}

/// What a context bids for each of its pages.
fn bid_of(context: &Context, owned: &Owned, market: &Ledger, page_size: u32) -> Bid {
    let Some(account) = market.account(context.process) else {
        return Bid::default();
    };
    let pass = context.pass.as_ref();
    let generator = pass.and_then(|pass| pass.kind.generator());
    let generator = generator.or(context.generator);
    let generator = generator.and_then(|id| owned.generators.get(id.0));
    let n_drawn = pass.map_or(0, |pass| pass.drawn().len() as u32);
    let left = |n: u32| {
        let n_accepted = generator.map_or(0, |generator| generator.n_accepted());
        n.saturating_sub(n_accepted.saturating_add(n_drawn))
    };
    let outlook = Outlook {
        balance: account.balance,
        dividend: account.dividend,
        horizon: generator.and_then(|generator| generator.horizon).map(left),
        max_tokens: generator
            .and_then(|generator| generator.max_tokens)
            .map(left),
        n_pages: pages_for(context.end(), page_size),
        page_size,
    };
    // A run to the end has many steps.
    let keeps = generator.is_some_and(|generator| !generator.rebids);
    let is_first = pass.is_none_or(Pass::has_drawn_none);
    context.offer.bid(keeps || is_first, &outlook)
}
