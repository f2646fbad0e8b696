//! A context: a sequence of tokens, apart from where its pages are.

mod before;
mod collecting;
mod held_bytes;
mod image;
mod pass;
mod phase;
#[cfg(test)]
mod phase_tests;
mod tokens;
mod wish;

use std::ops::Range;
use std::sync::Arc;

use crate::generation::{forked, saved};
use crate::hash::fold;
use crate::ids::{BatchId, ContextId, GeneratorId, ProcessId};
use crate::kv::{Content, Lane, Moves, NodeId, Obstacle, PageDemand, PageStore};
use crate::market::Offer;
use crate::sched::Habit;

pub(crate) use before::Before;
pub(crate) use held_bytes::{HeldBytes, PassBytes};
pub use image::{ContextImage, SpecialSlot};
pub(crate) use pass::{Pass, PassKind};
pub(crate) use tokens::Tokens;
pub(crate) use wish::PageWish;

/// The state of a context.
///
/// What the program sees is `n_tokens`, `pending` and `buffer`. A pass under way computes beyond them and changes none:
/// they change when the program takes its result. So undoing a pass is to forget it, and to roll the lane back. The
/// tokens of full pages are those of the nodes of the lane, so that a fork shares them.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) process: ProcessId,
    /// Tokens that were computed, wherever their keys and values are now.
    n_tokens: u32,
    /// Those of them behind the last full page.
    tail: Content,
    /// The newest tokens of a generation, which were not computed: one that was drawn, or those that a program put in
    /// its place.
    pub(crate) pending: Vec<u32>,
    /// What the last step accepted, which can be replaced; none once the program has gone on.
    pub(crate) provisional: Option<Provisional>,
    /// What stood before the collection that is under way.
    pub(crate) before: Option<Box<Before>>,
    /// Those of its tokens that passes found computed.
    pub(crate) n_cached: u32,
    /// What the program appended and no pass has taken.
    pub(crate) buffer: Arc<Vec<u32>>,
    /// Full pages that cannot be truncated any more.
    pub(crate) n_committed: u32,
    /// Pages that the program reserved, those that are filled included.
    pub(crate) n_reserved: u32,
    /// Full pages whose price its process has paid: each once, however often it is filled anew.
    pub(crate) n_paid: u32,
    /// Tokens whose full pages are committed when the program goes on.
    n_final: u32,
    pub(crate) lane: Lane,
    /// The batch that uses the lane, the later one where a batch follows. Until it completes nothing else changes the
    /// lane, whatever the program does.
    pub(crate) lease: Option<BatchId>,
    /// It follows the context of another model, for which it drafts. Its tokens are charged to no token budget, and
    /// count for no seed; its generators and requests count among those of nobody.
    pub(crate) drafts: bool,
    /// The program released it; it goes when its lease ends.
    pub(crate) released: bool,
    /// The generator that is not retired.
    pub(crate) generator: Option<GeneratorId>,
    pub(crate) pass: Option<Pass>,
    /// What the program said of its bid for pages.
    pub(crate) offer: Offer,
    /// Until when its pages are not taken for others, for it has just computed again what it had lost.
    pub(crate) spared_until_ns: u64,
    /// Tokens that it had lost and computed again, less those that its new ones repaid. While there are any, its pages
    /// are not taken for others of its user, or of a user who has as much.
    pub(crate) n_owed: u32,
    /// How soon its program comes back.
    pub(crate) habit: Habit,
    /// How soon the token masks of its steps come, where they come after their rows.
    pub(crate) mask_habit: Habit,
    /// When the last pass went, in the order of such ends.
    pub(crate) idle_stamp: u64,
    /// Which fork of which fork it is, as a hash.
    pub(crate) path: u64,
    /// Forks and snapshots made of it.
    pub(crate) n_forks: u64,
    /// The program asked for its suspension while a batch used its pages: they go when the batch is done.
    pub(crate) gives_up: bool,
    /// Pages of it lie elsewhere.
    pub(crate) wish: Option<PageWish>,
}

/// What a step accepted, until its program goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Provisional {
    /// So many of the last tokens of the context, the buffer apart.
    pub(crate) n_tokens: u32,
    /// So many were charged to the token budget for them, or for those in whose place they stand.
    pub(crate) n_charged: u32,
}

impl Context {
    /// An empty one.
    pub(crate) fn new(process: ProcessId, lane: Lane) -> Self {
        Self {
            process,
            n_tokens: 0,
            tail: Content::default(),
            pending: Vec::new(),
            provisional: None,
            before: None,
            n_cached: 0,
            buffer: Arc::default(),
            n_committed: 0,
            n_final: 0,
            n_reserved: 0,
            n_paid: 0,
            lane,
            lease: None,
            drafts: false,
            released: false,
            generator: None,
            pass: None,
            offer: Offer::default(),
            spared_until_ns: 0,
            n_owed: 0,
            habit: Habit::default(),
            mask_habit: Habit::default(),
            idle_stamp: 0,
            path: 0,
            n_forks: 0,
            gives_up: false,
            wish: None,
        }
    }

    /// Whether its pass waits for pages that are on their way.
    pub(crate) fn awaits_pages(&self) -> bool {
        self.wish.is_some_and(|wish| wish.is_asked)
    }

    /// A pass of it wants its pages. Returns whose they are, where they lie elsewhere.
    pub(crate) fn ask_for_pages(&mut self) -> Option<ContextId> {
        let wish = self.wish.as_mut().filter(|wish| !wish.is_asked)?;
        wish.is_asked = true;
        Some(wish.context)
    }

    /// A copy of everything, which shares the pages.
    pub(crate) fn fork(&mut self, store: &mut PageStore) -> Self {
        self.n_forks += 1;
        self.copy(store, forked(self.path, self.n_forks))
    }

    fn copy(&mut self, store: &mut PageStore, path: u64) -> Self {
        let (leased, n_tokens) = (self.lease.is_some(), self.n_tokens);
        let (lane, behind) = self.split();
        let mut lane = lane.fork(store, leased, |slots| behind.content(slots));
        // A batch may still compute a pass that was cancelled.
        lane.roll_back(store, n_tokens);
        Self {
            n_tokens,
            tail: self.tail.clone(),
            pending: self.pending.clone(),
            n_cached: self.n_cached,
            buffer: self.buffer.clone(),
            n_committed: self.n_committed,
            n_final: self.n_final,
            n_reserved: self.n_reserved,
            // What was truncated of those that are paid is not shared.
            n_paid: self.n_paid.min(n_tokens / store.page_size()),
            habit: self.habit.of_fork(),
            mask_habit: self.mask_habit.of_fork(),
            wish: self.wish.map(PageWish::of_fork),
            path,
            ..Self::new(self.process, lane)
        }
    }

    /// A copy of everything that uses no page: what a snapshot keeps. For seeds it counts as a fork.
    pub(crate) fn freeze(&mut self, store: &mut PageStore) -> Self {
        self.n_forks += 1;
        let mut frozen = self.copy(store, saved(self.path, self.n_forks));
        frozen.suspend(store);
        frozen.wish = None;
        frozen
    }

    /// The same, of another process and under another path.
    pub(crate) fn given_to(self, process: ProcessId, path: u64) -> Self {
        Self {
            process,
            path,
            n_forks: 0,
            ..self
        }
    }

    /// Whether its requests count among those of its process and of its user.
    pub(crate) const fn counts_requests(&self) -> bool {
        !self.drafts
    }

    /// Tokens that were computed.
    pub(crate) const fn n_tokens(&self) -> u32 {
        self.n_tokens
    }

    /// Tokens that were computed, and the pending ones.
    pub(crate) const fn seq_len(&self) -> u32 {
        self.n_tokens + self.pending.len() as u32
    }

    /// Tokens that were computed, the pending ones, and those in the buffer.
    pub(crate) fn length(&self) -> u32 {
        self.seq_len() + self.buffer.len() as u32
    }

    /// Tokens that will be computed when the pass under way is done, apart from one that is yet to be drawn.
    pub(crate) fn end(&self) -> u32 {
        self.n_tokens + self.pass.as_ref().map_or(0, Pass::n_tokens)
    }

    /// Tokens that a batch has to compute before there is anything to draw; a token that is read again counts.
    pub(crate) fn n_remaining(&self) -> u32 {
        self.end().saturating_sub(self.lane.n_ready()).max(1)
    }

    /// What the next pass takes: the pending tokens and the buffer.
    pub(crate) fn to_take(&self) -> Tokens {
        Tokens::taken(self.n_tokens, &self.pending, &self.buffer)
    }

    /// Digest of the fork path and of all tokens.
    pub(crate) fn origin(&self, store: &PageStore) -> u64 {
        let digest = store.digest(self.last_full(store));
        let behind = self.tokens_behind();
        fold(
            self.path,
            behind.fold(digest, |digest, token| fold(digest, u64::from(token))),
        )
    }

    /// The tokens behind the full pages, those that are not computed included.
    fn tokens_behind(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        let tail = self.tail.tokens().iter();
        tail.chain(&self.pending).chain(self.buffer.iter()).copied()
    }

    /// The last `n` of all tokens, in order.
    pub(crate) fn last_tokens(&self, store: &PageStore, n: usize) -> Vec<u32> {
        let mut last: Vec<u32> = Vec::with_capacity(n.min(self.length() as usize));
        last.extend(self.tokens_behind().rev().take(n));
        let mut next = self.last_full(store);
        while let Some(node) = next.filter(|_| last.len() < n) {
            let tokens = store.content(node).map_or(&[][..], Content::tokens);
            last.extend(tokens.iter().rev().take(n - last.len()));
            next = store.parent(node);
        }
        last.reverse();
        last
    }

    /// The node of the last full page of what was computed, apart from a pass under way.
    fn last_full(&self, store: &PageStore) -> Option<NodeId> {
        store.ancestor(self.lane.reach(), self.n_tokens - self.tail.len())
    }

    /// What lies behind the full pages.
    const fn behind(&self) -> Behind<'_> {
        Behind {
            tail: &self.tail,
            n_tokens: self.n_tokens,
            pass: self.pass.as_ref(),
        }
    }

    /// The lane, to be changed, and what lies behind its full pages.
    const fn split(&mut self) -> (&mut Lane, Behind<'_>) {
        let behind = Behind {
            tail: &self.tail,
            n_tokens: self.n_tokens,
            pass: self.pass.as_ref(),
        };
        (&mut self.lane, behind)
    }

    /// Content of any of its slots.
    pub(crate) fn content_at(&self, store: &PageStore, slots: Range<u32>) -> Content {
        let first = self.n_tokens - self.tail.len();
        let page_size = store.page_size();
        let mut nodes = Vec::new();
        let mut next = store.ancestor(
            self.lane.reach(),
            slots.end.min(first).next_multiple_of(page_size),
        );
        while let Some(node) = next.filter(|_| store.end(next) > slots.start) {
            nodes.push(node);
            next = store.parent(node);
        }
        let mut content = Content::default();
        for node in nodes.into_iter().rev() {
            if let Some(page) = store.content(node) {
                let start = store.end(Some(node)) - page.len();
                let range = slots.start.saturating_sub(start)
                    ..slots.end.saturating_sub(start).min(page.len());
                content.extend(page, range, slots.start);
            }
        }
        if slots.end > first {
            let behind = self.behind().content(slots.start.max(first)..slots.end);
            content.extend(&behind, 0..behind.len(), slots.start);
        }
        content
    }

    /// Content of these slots; none where they are plain tokens of the pass.
    pub(crate) fn content_unless_plain(
        &self,
        store: &PageStore,
        slots: Range<u32>,
    ) -> Option<Content> {
        let pass = self.pass.as_ref();
        match pass.and_then(|pass| pass.tokens_at(slots.clone())) {
            Some(_) => None,
            None => Some(self.content_at(store, slots)),
        }
    }

    /// Of `n` tokens that it computes `n_replayed` are not new: it owes as many, which new ones repay.
    pub(crate) const fn owe(&mut self, n_replayed: u32, n: u32) {
        let n_new = n.saturating_sub(n_replayed);
        let owed = self.n_owed.saturating_add(n_replayed);
        self.n_owed = owed.saturating_sub(n_new);
    }

    /// Tokens that were computed, with the pass under way, ready or not: up to the last full page at least.
    pub(crate) fn n_once_ready(&self, store: &PageStore) -> u32 {
        store
            .end(self.lane.reach())
            .max(self.lane.n_ready())
            .max(self.n_tokens)
    }

    /// At most so many pages have to be allocated, emptied or copied back before the pass can be computed to its end.
    pub(crate) fn n_missing_at_most(&self, store: &PageStore) -> u32 {
        self.lane.n_missing_at_most(store, self.end())
    }

    /// The same, exactly.
    pub(crate) fn survey(&self, store: &PageStore, demand: PageDemand) -> Result<u32, Obstacle> {
        if self.is_steady() {
            return Ok(self.n_missing_at_most(store));
        }
        let (behind, page_size) = (self.behind(), store.page_size());
        self.lane.survey(store, demand, self.end(), |page_idx| {
            let page = || behind.whole_page(page_size, page_idx);
            store.is_searched().then(page).flatten()
        })
    }

    /// Whether no more is missing than a step computes: nothing is looked up for it.
    pub(crate) fn is_steady(&self) -> bool {
        let n_of_step = self.pass.as_ref().map_or(1, Pass::n_of_step);
        self.lane.is_whole() && self.n_remaining() <= n_of_step
    }

    /// Makes ready what is to be had without computing it.
    pub(crate) fn adopt(
        &mut self,
        store: &mut PageStore,
        demand: PageDemand,
        moves: &mut Moves,
    ) -> Result<(), Obstacle> {
        if self.is_steady() {
            return Ok(());
        }
        let (page_size, is_searched) = (store.page_size(), store.is_searched());
        let (lane, behind) = self.split();
        lane.adopt(store, demand, moves, |page_idx| {
            let page = || behind.whole_page(page_size, page_idx);
            is_searched.then(page).flatten()
        })
    }

    /// Makes what was folded in final: it cannot be replaced, nor its full pages truncated any more.
    pub(crate) fn settle(&mut self, page_size: u32) {
        self.provisional = None;
        self.n_committed = self.n_committed.max(self.n_final / page_size);
    }

    /// Verifies that the tokens of full pages are there, those included that were found computed.
    ///
    /// # Errors
    /// A sentence that says what is missing.
    pub(crate) fn check(&self, store: &PageStore) -> Result<(), String> {
        let n_full = self.n_tokens - self.tail.len();
        let end = store.end(self.last_full(store));
        if end != n_full || self.tail.len() >= store.page_size() {
            return Err(format!(
                "{} tokens lie in {end} slots of nodes and {} behind them",
                self.n_tokens,
                self.tail.len()
            ));
        }
        if self.n_cached > n_full {
            return Err(format!(
                "{} of {} tokens were found computed, and {n_full} lie in full pages",
                self.n_cached, self.n_tokens
            ));
        }
        Ok(())
    }

    /// Brings the lane back to what the program sees, unless a pass goes on or a batch uses it: then the end of the
    /// lease does.
    pub(crate) fn trim(&mut self, store: &mut PageStore) {
        let counts = |pass: &Pass| pass.error().is_none();
        if self.lease.is_none() && !self.pass.as_ref().is_some_and(counts) {
            self.roll_back(store);
        }
    }

    /// Brings the lane back to what the program sees, or will when it takes an answer that is ready.
    pub(crate) fn roll_back(&mut self, store: &mut PageStore) {
        let n_kept = self.pass.as_ref().map_or(0, Pass::n_kept);
        self.lane.roll_back(store, self.n_tokens + n_kept);
    }

    /// Lets go of all pages at the wish of the program: now, or when the batch that uses them is done.
    pub(crate) fn give_back(&mut self, store: &mut PageStore) {
        self.gives_up = self.lease.is_some();
        self.suspend(store);
    }

    /// The batch that used the pages is done. Returns whether the program wished them gone, and nothing was asked of
    /// the context since.
    pub(crate) fn is_to_go(&mut self) -> bool {
        std::mem::take(&mut self.gives_up) && self.pass.is_none()
    }

    /// Lets go of all pages; nothing that the program sees changes.
    pub(crate) fn suspend(&mut self, store: &mut PageStore) {
        if self.lease.is_none() {
            let (lane, behind) = self.split();
            lane.suspend(store, |slots| behind.content(slots));
        }
    }

    /// The tokens up to `length` are ready.
    pub(crate) fn advance(&mut self, store: &mut PageStore, length: u32) {
        let page_size = store.page_size();
        let (lane, behind) = self.split();
        lane.advance(store, length, |page_idx| behind.page(page_size, page_idx));
    }

    /// Takes a finished pass into the state that the program sees.
    pub(crate) fn absorb(&mut self, store: &PageStore, pass: &Pass) {
        let n_buffered = pass.n_buffered().min(self.buffer.len());
        if n_buffered == self.buffer.len() {
            self.buffer = Arc::default();
        } else {
            Arc::make_mut(&mut self.buffer).drain(..n_buffered);
        }
        let page_size = store.page_size();
        let n_computed = pass.n_computed();
        // In place: every step of every generation comes by here.
        self.pending.clear();
        self.pending.extend(pass.uncomputed());
        let first = self.n_tokens - self.tail.len();
        self.tail.extend(pass.content(), 0..n_computed, first);
        self.n_tokens += n_computed;
        if pass.commits() {
            self.n_final = self.n_tokens;
        }
        let n_full = self.tail.len() / page_size * page_size;
        if n_full > 0 {
            self.tail = self.tail.part(n_full..self.tail.len(), first);
        }
        // What was found may lie beyond: it ran ahead.
        self.n_cached = (self.n_cached + pass.n_found).min(self.n_tokens - self.tail.len());
    }

    /// The last `n` tokens, the buffer apart.
    pub(crate) fn accepted(&self, store: &PageStore, n: u32) -> Vec<u32> {
        let n_behind = self.buffer.len();
        let mut last = self.last_tokens(store, n as usize + n_behind);
        last.truncate(last.len() - n_behind);
        last
    }

    /// Puts `tokens` in place of the last `n`, the buffer apart. What is computed of them stays, but for the last: the
    /// newest token of a generation is pending.
    pub(crate) fn replace_last(&mut self, store: &mut PageStore, n: u32, tokens: &[u32]) {
        let n_computed = n.saturating_sub(self.pending.len() as u32);
        let start = self.n_tokens - n_computed;
        let computed = self.content_at(store, start..self.n_tokens);
        let alike = computed.tokens().iter().zip(tokens);
        let n_alike = alike.take_while(|(old, new)| old == new).count();
        let n_kept = n_alike.min(tokens.len().saturating_sub(1));
        let n_dropped = n_computed - n_kept as u32;
        self.pending.clear();
        self.pending.extend_from_slice(&tokens[n_kept..]);
        if n_dropped > 0 {
            self.drop_last(store, n_dropped);
        }
    }

    /// Drops the last `n` computed tokens.
    pub(crate) fn drop_last(&mut self, store: &mut PageStore, n: u32) {
        let kept = self.n_tokens.saturating_sub(n);
        let first = self.n_tokens - self.tail.len();
        if kept >= first {
            self.tail.truncate(kept - first, first);
        } else {
            let page_size = store.page_size();
            let start = kept / page_size * page_size;
            let node = store.ancestor(self.lane.reach(), start + page_size);
            let content = node.and_then(|node| store.content(node));
            self.tail = content
                .map(|content| content.part(0..kept - start, start))
                .unwrap_or_default();
        }
        self.n_tokens = kept;
        // Found pages that no pass has committed may go; where in the context they were is not kept.
        self.n_cached = self.n_cached.min(kept - self.tail.len());
        self.n_final = self.n_final.min(kept);
        self.trim(store);
    }
}

/// What lies behind the full pages of a context of `n_tokens` tokens: its tail, and the pass under way.
#[derive(Clone, Copy)]
struct Behind<'a> {
    tail: &'a Content,
    n_tokens: u32,
    pass: Option<&'a Pass>,
}

impl Behind<'_> {
    /// The content of slots behind the full pages.
    fn content(&self, slots: Range<u32>) -> Content {
        let (n_tokens, first) = (self.n_tokens, self.n_tokens - self.tail.len());
        let mut content = if slots.start < n_tokens {
            let range = slots.start.saturating_sub(first)..slots.end.min(n_tokens) - first;
            self.tail.part(range, first)
        } else {
            Content::default()
        };
        if let Some(pass) = self.pass.filter(|_| slots.end > n_tokens) {
            let range = slots.start.max(n_tokens) - n_tokens..slots.end - n_tokens;
            content.extend(pass.content(), range, slots.start);
        }
        content
    }

    /// The content of a page.
    fn page(&self, page_size: u32, page_idx: u32) -> Content {
        self.content(page_idx * page_size..(page_idx + 1) * page_size)
    }

    /// The content of a page that the pass would fill; none where it does not fill it, or wants rows of it.
    fn whole_page(&self, page_size: u32, page_idx: u32) -> Option<Content> {
        let end = self.pass.map_or(self.n_tokens, |pass| {
            (self.n_tokens + pass.n_tokens()).min(pass.first_read())
        });
        ((page_idx + 1) * page_size <= end).then(|| self.page(page_size, page_idx))
    }
}
