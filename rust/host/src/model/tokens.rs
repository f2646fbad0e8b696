//! What the tokens of a context are charged with.
//!
//! A fork shares the tokens of its original, so each token is charged once: to the context that it was added to, until
//! that one and all that were forked from it afterwards are gone. A context takes back as its own what it alone still
//! has, so that what it shares is never more than a few parts, and what it truncates is charged no more.
//!
//! What a forward pass gave its tokens besides, as positions and attention masks, lives as long as they do. It is
//! charged to each context that has it, so that nobody has to know who shares which of it.

use std::ops::Range;
use std::sync::Arc;

use crate::Error;
use crate::budget::{Account, Charge, Purpose};
use crate::stepped_charge::SteppedCharge;

/// What a token takes in the engine: four bytes, and its part of the node of its page.
pub(crate) const TOKEN_BYTES: usize = 24;
/// The most parts that a context shares with others; one with more is charged with all of its tokens anew when it is
/// forked.
const MAX_SHARED: usize = 16;

/// What positions and the like take of a token that has some of its own.
pub(crate) const TRAITS_BYTES: usize = 64;

/// What tokens of a context take besides, by their place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extras(Vec<Extra>);

#[derive(Clone, Copy, Debug)]
struct Extra {
    place: usize,
    /// Bytes of this one and of all before it.
    total: usize,
}

impl Extras {
    /// Those of tokens that end before `end`, with attention masks of so many runs.
    pub(crate) fn ending(end: usize, n_runs: impl ExactSizeIterator<Item = usize>) -> Self {
        let start = end.saturating_sub(n_runs.len());
        let mut extras = Self::default();
        for (place, n_runs) in (start..end).zip(n_runs) {
            extras.push(place, TRAITS_BYTES + n_runs * size_of::<u32>());
        }
        extras
    }

    /// Those of tokens at ascending places, each with so many runs of its attention mask.
    pub(crate) fn at(tokens: impl Iterator<Item = (usize, usize)>) -> Self {
        let mut extras = Self::default();
        for (place, n_runs) in tokens {
            extras.push(place, TRAITS_BYTES + n_runs * size_of::<u32>());
        }
        extras
    }

    fn push(&mut self, place: usize, n_bytes: usize) {
        let total = self.0.last().map_or(0, |last| last.total) + n_bytes;
        self.0.push(Extra { place, total });
    }

    /// Adds those of the last tokens, in place of what they had.
    fn extend(&mut self, others: &Self) {
        if let Some(first) = others.0.first() {
            self.truncate(first.place);
        }
        let mut before = 0;
        for other in &others.0 {
            self.push(other.place, other.total - before);
            before = other.total;
        }
    }

    fn truncate(&mut self, length: usize) {
        let n_left = self.0.partition_point(|extra| extra.place < length);
        self.0.truncate(n_left);
        // The charge counts two for each of them.
        self.0.shrink_to(2 * n_left);
    }

    /// Bytes of them, and of what counts them.
    pub(crate) fn n_bytes(&self) -> usize {
        let own = self.0.last().map_or(0, |last| last.total);
        own + self.0.len() * 2 * size_of::<Extra>()
    }
}

/// The tokens of one context.
#[derive(Debug)]
pub(crate) struct Tokens {
    account: Account,
    /// For those that it shares with nobody: the last ones.
    own: SteppedCharge,
    n_own: usize,
    /// Of those that it has in common with others. Whoever shares a part shares those before it.
    shared: Vec<Part>,
    /// So many of the first tokens are charged by what is shared.
    n_shared: usize,
    /// Charged with its own tokens, whosever they are of.
    extras: Extras,
}

/// Tokens that several contexts have in common, as one of these has them.
#[derive(Clone, Debug)]
struct Part {
    holding: Arc<SteppedCharge>,
    /// So many tokens of the context come before them.
    start: usize,
}

impl Part {
    /// That many of the first tokens are left of `n_tokens` when `cut` is taken out of the tokens.
    fn left_of(n_tokens: usize, cut: &Range<usize>) -> usize {
        n_tokens.min(cut.start) + n_tokens.saturating_sub(cut.end)
    }
}

impl Tokens {
    /// Those of an empty context.
    pub(crate) fn new(account: Account) -> Self {
        let own = SteppedCharge::new(account.empty(Purpose::Text));
        Self {
            account,
            own,
            n_own: 0,
            shared: Vec::new(),
            n_shared: 0,
            extras: Extras::default(),
        }
    }

    /// The same, of a context whose tokens have these.
    pub(crate) fn with_extras(self, extras: Extras) -> Self {
        Self { extras, ..self }
    }

    /// Who is charged.
    pub(crate) const fn account(&self) -> &Account {
        &self.account
    }

    /// Those of a context of `length` tokens that took over a snapshot, whose charge becomes its own.
    pub(crate) fn taken_over(
        account: Account,
        charge: Option<Charge>,
        length: usize,
        extras: Extras,
    ) -> Self {
        let mut tokens = Self::new(account).with_extras(extras);
        if let Some(charge) = charge {
            let charge = charge.repurposed(Purpose::Text);
            tokens.own.absorb(SteppedCharge::new(charge));
        }
        tokens.n_own = length;
        // A step of the charge may have no room: what there is covers the tokens.
        tokens.own.shrink(tokens.bytes(length));
        tokens
    }

    /// What its tokens take besides.
    pub(crate) const fn extras(&self) -> &Extras {
        &self.extras
    }

    /// Bytes of so many tokens of its own, and of all extras.
    fn bytes(&self, n_own: usize) -> usize {
        let n_bytes = n_own.saturating_mul(TOKEN_BYTES);
        n_bytes.saturating_add(self.extras.n_bytes())
    }

    /// `n_tokens` more come in, which makes `length`: what was truncated meanwhile is charged no more.
    ///
    /// # Errors
    /// `limit-engine-memory`, and what is held stays charged.
    pub(crate) fn add(&mut self, n_tokens: usize, length: usize) -> Result<(), Error> {
        self.add_with(n_tokens, length, &Extras::default())
    }

    /// The same, with what the last tokens take besides.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub(crate) fn add_with(
        &mut self,
        n_tokens: usize,
        length: usize,
        extras: &Extras,
    ) -> Result<(), Error> {
        self.take_back();
        let room = length.saturating_sub(self.n_shared);
        let n_own = self.n_own.saturating_add(n_tokens).min(room);
        self.own.set(self.bytes(n_own) + extras.n_bytes())?;
        self.n_own = n_own;
        if !extras.0.is_empty() {
            self.extras.extend(extras);
            self.own.shrink(self.bytes(n_own));
        }
        Ok(())
    }

    /// It has `length` tokens from now on, of which the last are other ones.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub(crate) fn replace(&mut self, length: usize) -> Result<(), Error> {
        self.take_back();
        let n_own = length.saturating_sub(self.n_shared);
        self.own.set(self.bytes(n_own))?;
        self.truncate(length);
        Ok(())
    }

    /// `length` tokens are left.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.take_back();
        self.n_shared = self.n_shared.min(length);
        self.n_own = length - self.n_shared;
        self.extras.truncate(length);
        self.own.shrink(self.bytes(self.n_own));
    }

    /// The tokens of `cut` are dropped, and `length` are left. What lies behind them was appended and is in no page: it
    /// moves to the front. So the last tokens are not those that are dropped: `truncate` would keep the masks of
    /// dropped tokens charged for those that moved, and take tokens of the context's own for shared ones.
    pub(crate) fn cut(&mut self, cut: Range<usize>, length: usize) {
        self.take_back();
        self.extras.truncate(cut.start);
        self.n_shared = Part::left_of(self.n_shared, &cut);
        for part in &mut self.shared {
            part.start = Part::left_of(part.start, &cut);
        }
        self.truncate(length);
    }

    /// The context is gone, though its handle may stay.
    pub(crate) fn release(&mut self) {
        *self = Self::new(self.account.clone());
    }

    /// Those of a fork of `length` tokens.
    ///
    /// # Errors
    /// `limit-engine-memory`, and what is held stays charged.
    pub(crate) fn fork(&mut self, length: usize) -> Result<Self, Error> {
        self.truncate(length);
        let mut fork = Self::new(self.account.clone()).with_extras(self.extras.clone());
        fork.own.set(self.extras.n_bytes())?;
        if self.n_own > 0 {
            let is_full = self.shared.len() >= MAX_SHARED;
            let n_own = if is_full { length } else { self.n_own };
            let mut own = SteppedCharge::new(self.account.empty(Purpose::Text));
            own.set(self.extras.n_bytes())?;
            self.own.set(n_own.saturating_mul(TOKEN_BYTES))?;
            if is_full {
                self.shared.clear();
                self.n_shared = 0;
            }
            self.shared.push(Part {
                holding: Arc::new(std::mem::replace(&mut self.own, own)),
                start: self.n_shared,
            });
            self.n_own = 0;
            self.n_shared = length;
        }
        fork.shared.clone_from(&self.shared);
        fork.n_shared = self.n_shared;
        Ok(fork)
    }

    /// Makes its own what it alone still has: the last parts, because whoever has one has those before it too.
    fn take_back(&mut self) {
        while let Some(Part { holding, start }) = self.shared.pop() {
            match Arc::try_unwrap(holding) {
                Ok(holding) => {
                    let start = start.min(self.n_shared);
                    self.n_own = self.n_own.saturating_add(self.n_shared - start);
                    self.n_shared = start;
                    self.own.absorb(holding);
                }
                Err(holding) => {
                    self.shared.push(Part { holding, start });
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;

    const N: usize = 10_000;

    #[test]
    fn each_token_is_charged_once_until_nobody_has_it() {
        let budget = Budget::new(64 << 20, Some(32 << 20));
        let mut first = Tokens::new(budget.account("ada"));
        first.add(N, N).unwrap();
        let once = budget.held_bytes();
        assert!(once >= (N * TOKEN_BYTES) as u64);
        let mut second = first.fork(N).unwrap();
        let third = second.fork(N).unwrap();
        assert_eq!(budget.held_bytes(), once);
        second.add(N, 2 * N).unwrap();
        assert_eq!(budget.held_bytes(), 2 * once);
        drop((first, second));
        assert_eq!(budget.held_bytes(), once);
        drop(third);
        assert_eq!(budget.held_bytes(), 0);
    }

    #[test]
    fn masks_are_charged_as_long_as_their_tokens() {
        let budget = Budget::new(64 << 20, Some(32 << 20));
        let mut tokens = Tokens::new(budget.account("ada"));
        tokens.add(N, N).unwrap();
        let plain = budget.held_bytes();
        let masks = |end| Extras::ending(end, std::iter::repeat_n(1024, 1000));
        tokens.add_with(1000, N + 1000, &masks(N + 1000)).unwrap();
        let masked = budget.held_bytes();
        assert!(masked >= plain + 1000 * 4096, "{masked}");
        // Tokens that were there may be given some too; each fork has its own.
        tokens.add(1000, N + 2000).unwrap();
        tokens.add_with(0, N + 2000, &masks(N + 2000)).unwrap();
        let twice = budget.held_bytes();
        assert!(twice >= masked + 1000 * 4096, "{twice}");
        let fork = tokens.fork(N + 2000).unwrap();
        assert!(budget.held_bytes() >= twice + 2000 * 4096);
        drop(fork);
        // A part of them, others in place of the last ones, and the rest.
        tokens.truncate(N + 1000);
        tokens.add_with(0, N + 1000, &masks(N + 1000)).unwrap();
        let again = budget.held_bytes();
        assert!(
            (masked..masked + (64 << 10)).contains(&again),
            "{masked} {again}"
        );
        tokens.replace(N).unwrap();
        assert!(budget.held_bytes() <= plain + (32 << 10));
        let refused = tokens.add_with(
            9000,
            N + 9000,
            &Extras::ending(N + 9000, std::iter::repeat_n(1024, 9000)),
        );
        assert_eq!(
            refused.unwrap_err().code,
            pie_core::ErrorCode::LimitEngineMemory
        );
        assert!(budget.held_bytes() <= plain + (32 << 10));
        drop(tokens);
        assert_eq!(budget.held_bytes(), 0);
    }

    #[test]
    fn what_is_added_and_truncated_again_does_not_sum_up() {
        let budget = Budget::new(64 << 20, Some(32 << 20));
        let mut tokens = Tokens::new(budget.account("ada"));
        for _ in 0..1000 {
            tokens.add(N, N).unwrap();
        }
        assert!(budget.held_bytes() < (2 * N * TOKEN_BYTES) as u64);
    }

    #[test]
    fn a_fork_of_a_fork_of_a_fork_keeps_few() {
        let budget = Budget::new(64 << 20, Some(32 << 20));
        let mut tokens = Tokens::new(budget.account("ada"));
        for n in 1..=100 {
            tokens.add(300, 300 * n).unwrap();
            tokens = tokens.fork(300 * n).unwrap();
            assert!(tokens.shared.len() <= MAX_SHARED);
            let bytes = (300 * n * TOKEN_BYTES) as u64;
            assert!(budget.held_bytes() <= 2 * bytes + (MAX_SHARED as u64 + 2) * (32 << 10));
        }
        drop(tokens);
        assert_eq!(budget.held_bytes(), 0);
    }

    #[test]
    fn forks_that_are_dropped_again_leave_nothing_behind() {
        for (n_kept, n_added) in [(0, 1), (N, 1), (0, 1000), (N, 1000)] {
            let budget = Budget::new(64 << 20, Some(32 << 20));
            let mut tokens = Tokens::new(budget.account("ada"));
            tokens.add(n_kept, n_kept).unwrap();
            let _beside = tokens.fork(n_kept).unwrap();
            let (before, length) = (budget.held_bytes(), n_kept + n_added);
            let most = before + (n_added * TOKEN_BYTES) as u64 + (32 << 10);
            for _ in 0..100_000 {
                tokens.add(n_added, length).unwrap();
                drop(tokens.fork(length).unwrap());
                assert!(tokens.shared.len() <= 2);
                assert!(budget.held_bytes() <= most);
                tokens.truncate(n_kept);
            }
            assert!(tokens.shared.capacity() <= 2 * MAX_SHARED);
            assert_eq!(budget.held_bytes(), before);
        }
    }

    #[test]
    fn one_of_which_many_forks_live_keeps_few_and_is_charged_anew() {
        let budget = Budget::new(64 << 20, Some(32 << 20));
        let mut tokens = Tokens::new(budget.account("ada"));
        let mut forks = Vec::new();
        for length in 1..=1000 {
            tokens.add(1, length).unwrap();
            forks.push(tokens.fork(length).unwrap());
            assert!(tokens.shared.len() <= MAX_SHARED);
        }
        // Every sixteenth fork may be charged with all that came before.
        let most = (1000 / MAX_SHARED + 1) * (1000 * TOKEN_BYTES + (16 << 10));
        assert!(budget.held_bytes() <= most as u64);
        assert!(budget.held_bytes() > 0);
        drop(forks);
        tokens.truncate(1000);
        assert!(tokens.shared.is_empty());
        assert!(budget.held_bytes() >= (1000 * TOKEN_BYTES) as u64);
        assert!(budget.held_bytes() <= (1000 * TOKEN_BYTES + (32 << 10)) as u64);
        tokens.truncate(0);
        assert_eq!(budget.held_bytes(), 0);
    }

    #[test]
    fn what_is_truncated_of_a_shared_part_and_added_again_is_charged() {
        let budget = Budget::new(64 << 20, Some(32 << 20));
        let mut first = Tokens::new(budget.account("ada"));
        first.add(N, N).unwrap();
        let once = budget.held_bytes();
        let second = first.fork(N).unwrap();
        first.truncate(N / 2);
        assert_eq!(budget.held_bytes(), once);
        first.add(N / 2, N).unwrap();
        assert!(budget.held_bytes() >= once + (N / 2 * TOKEN_BYTES) as u64);
        let third = first.fork(N).unwrap();
        drop((second, third));
        first.truncate(N);
        assert_eq!(first.n_own, N);
        assert!(budget.held_bytes() >= (N * TOKEN_BYTES) as u64);
        assert!(budget.held_bytes() <= once + (32 << 10));
        drop(first);
        assert_eq!(budget.held_bytes(), 0);
    }

    #[test]
    fn what_is_cut_in_front_of_tokens_of_its_own_leaves_these_charged() {
        let budget = Budget::new(64 << 20, Some(32 << 20));
        let mut first = Tokens::new(budget.account("ada"));
        first.add(N, N).unwrap();
        let once = budget.held_bytes();
        let mut second = first.fork(N).unwrap();
        second.add(N / 2, N + N / 2).unwrap();
        second.cut(N / 2..N, N);
        assert_eq!((second.n_shared, second.n_own), (N / 2, N / 2));
        assert!(budget.held_bytes() >= once + (N / 2 * TOKEN_BYTES) as u64);
        drop(first);
        second.truncate(N);
        assert_eq!((second.n_shared, second.n_own), (0, N));
        assert!(budget.held_bytes() >= (N * TOKEN_BYTES) as u64);
        drop(second);
        assert_eq!(budget.held_bytes(), 0);
    }

    #[test]
    fn what_is_cut_in_front_of_a_shared_part_leaves_it_shared() {
        let budget = Budget::new(64 << 20, Some(32 << 20));
        let mut first = Tokens::new(budget.account("ada"));
        first.add(N, N).unwrap();
        let beside = first.fork(N).unwrap();
        first.add(N, 2 * N).unwrap();
        let mut second = first.fork(2 * N).unwrap();
        let twice = budget.held_bytes();
        second.cut(N / 2..N, 3 * N / 2);
        assert_eq!((second.n_shared, second.n_own), (3 * N / 2, 0));
        assert_eq!(budget.held_bytes(), twice);
        // It alone has the second part from now on, and takes it back.
        drop(first);
        second.truncate(3 * N / 2);
        assert_eq!((second.n_shared, second.n_own), (N / 2, N));
        assert!(budget.held_bytes() >= (2 * N * TOKEN_BYTES) as u64);
        drop((second, beside));
        assert_eq!(budget.held_bytes(), 0);
    }

    #[test]
    fn masks_of_tokens_that_are_cut_out_are_charged_no_more() {
        let budget = Budget::new(64 << 20, Some(32 << 20));
        let mut tokens = Tokens::new(budget.account("ada"));
        tokens.add(N, N).unwrap();
        let plain = budget.held_bytes();
        let masks = Extras::ending(N + 1000, std::iter::repeat_n(1024, 1000));
        tokens.add_with(1000, N + 1000, &masks).unwrap();
        tokens.add(1000, N + 2000).unwrap();
        tokens.cut(N..N + 1000, N + 1000);
        let most = plain + (1000 * TOKEN_BYTES + (32 << 10)) as u64;
        assert!(budget.held_bytes() <= most);
        assert!(tokens.extras.0.capacity() == 0);
    }

    #[test]
    fn a_refused_fork_leaves_what_is_held_charged() {
        let budget = Budget::new(64 << 20, Some(1 << 20));
        let mut tokens = Tokens::new(budget.account("ada"));
        let most = (1 << 20) / TOKEN_BYTES / 4 * 3;
        tokens.add(most, most).unwrap();
        let mut forks = vec![tokens.fork(most).unwrap()];
        let mut length = most;
        let refused = loop {
            length += 1;
            tokens.add(1, length).unwrap();
            match tokens.fork(length) {
                Ok(fork) => forks.push(fork),
                Err(error) => break error,
            }
        };
        assert_eq!(refused.code, pie_core::ErrorCode::LimitEngineMemory);
        assert_eq!(tokens.shared.len(), MAX_SHARED);
        assert!(budget.held_bytes() >= (most * TOKEN_BYTES) as u64);
        drop(forks);
        tokens.fork(length).unwrap();
    }
}
