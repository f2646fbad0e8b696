//! What is drafted for a generator, and how much: by n-grams of its context, or by another model.
//!
//! Drafts follow from the tokens and from what came of the drafts before, and from nothing else: so it does not depend
//! on time or load how many tokens a step accepts.
//!
//! Drafts that are all drawn make the next ones longer. Where none is drawn the next ones are shorter, and made after a
//! rest that becomes longer each time: where nothing is ever accepted, drafting costs next to nothing.

use super::ngrams::NGrams;

/// The most tokens that are drafted at once.
const MAX_DRAFTS: u32 = 8;
/// Tokens that are drafted first.
const FIRST_DRAFTS: u32 = 2;
/// Copies of a token mask of which another model makes drafts.
pub(super) const MODEL_MASKS: usize = 3;
/// The longest rest, in passes.
const MAX_REST: u32 = 255;

/// How much is drafted, by what came of it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pace {
    /// Tokens that are drafted next.
    n_drafts: u32,
    /// Passes before drafts are looked for again.
    rest: u32,
    /// The last rest.
    last_rest: u32,
}

impl Pace {
    const FIRST: Self = Self {
        n_drafts: FIRST_DRAFTS,
        rest: 0,
        last_rest: 0,
    };

    /// Of so many drafts so many were drawn.
    fn turn(&mut self, n_drafted: u32, n_accepted: u32) {
        if n_drafted == 0 {
            self.rest = self.rest.saturating_sub(1);
            return;
        }
        if n_accepted == 0 {
            // 1, 7, 31, 127: a pass with drafts takes longer, and where none is drawn, few of them are.
            self.last_rest = match self.last_rest {
                0 => 1,
                last => (4 * last + 3).min(MAX_REST),
            };
            self.rest = self.last_rest;
            self.n_drafts = (self.n_drafts / 2).max(1);
            return;
        }
        self.last_rest = 0;
        if n_accepted == n_drafted {
            self.n_drafts = (2 * self.n_drafts).min(MAX_DRAFTS);
        }
    }
}

/// What is drafted behind a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Drafts {
    /// These tokens; none: nothing.
    Made(Vec<u32>),
    /// So many tokens, one at least, which another model is asked for.
    Wanted(u32),
}

impl Drafts {
    /// Nothing.
    pub(crate) const NONE: Self = Self::Made(Vec::new());

    /// Whether nothing is drafted.
    pub(crate) const fn is_none(&self) -> bool {
        matches!(self, Self::Made(drafts) if drafts.is_empty())
    }
}

/// Where drafts come from.
#[derive(Debug)]
enum Source {
    NGrams(Box<NGrams>),
    /// Another model, which knows the first so many tokens of the context.
    Model(u32),
}

/// Makes the drafts of a generator.
#[derive(Debug)]
pub(crate) struct Drafter {
    pace: Pace,
    /// The same when the program last took a result: what was cancelled since does not count.
    taken: Pace,
    source: Source,
    /// What is drafted for a context of so many tokens; none: nothing is known yet.
    made: Option<(u32, Drafts)>,
}

impl Drafter {
    /// Copies of the token mask of its generator, with that of the generator itself: another model that drafts has one
    /// in its options, and one in its own generator.
    pub(crate) const fn n_masks(&self) -> usize {
        match self.source {
            Source::NGrams(_) => 1,
            Source::Model(_) => MODEL_MASKS,
        }
    }

    /// One that looks n-grams up.
    pub(crate) fn of_n_grams() -> Self {
        Self::new(Source::NGrams(Box::new(NGrams::new())))
    }

    /// One that asks another model.
    pub(crate) const fn of_model() -> Self {
        Self::new(Source::Model(0))
    }

    const fn new(source: Source) -> Self {
        Self {
            pace: Pace::FIRST,
            taken: Pace::FIRST,
            source,
            made: None,
        }
    }

    /// What it takes, in bytes.
    pub(crate) const fn n_bytes(&self) -> usize {
        match self.source {
            Source::NGrams(_) => NGrams::N_BYTES,
            Source::Model(_) => size_of::<Self>(),
        }
    }

    /// Whether it asks another model.
    pub(crate) const fn asks(&self) -> bool {
        matches!(self.source, Source::Model(_))
    }

    /// The drafts for a context of `length` tokens, at most `room`; `last` gives so many of its last tokens. It may be
    /// asked for what is never computed: that changes nothing.
    pub(crate) fn make(
        &mut self,
        length: u32,
        room: u32,
        last: impl FnOnce(u32) -> Vec<u32>,
    ) -> Drafts {
        let made = match self.made.take() {
            Some((of, made)) if of == length => made,
            _ => self.draft(length, last),
        };
        let (_, made) = self.made.insert((length, made));
        match made {
            Drafts::Made(drafts) => {
                Drafts::Made(drafts.iter().copied().take(room as usize).collect())
            }
            Drafts::Wanted(n) if room > 0 => Drafts::Wanted(room.min(*n)),
            Drafts::Wanted(_) => Drafts::NONE,
        }
    }

    fn draft(&mut self, length: u32, last: impl FnOnce(u32) -> Vec<u32>) -> Drafts {
        if let Source::NGrams(grams) = &mut self.source {
            grams.follow(length, last);
        }
        if self.pace.rest > 0 {
            return Drafts::NONE;
        }
        match &self.source {
            Source::NGrams(grams) => Drafts::Made(grams.look_up(self.pace.n_drafts)),
            Source::Model(_) => Drafts::Wanted(self.pace.n_drafts),
        }
    }

    /// Another model is told of a context of `length` tokens: it knows so many of the first already.
    pub(crate) fn tell(&mut self, length: u32) -> u32 {
        match &mut self.source {
            Source::NGrams(_) => length,
            Source::Model(n_known) => std::mem::replace(n_known, length).min(length),
        }
    }

    /// Whether it surely has no drafts for the token behind the next one: one that is drafted for ends no rest.
    pub(crate) const fn rests(&self) -> bool {
        self.pace.rest > 1
    }

    /// Tokens were drawn for a pass: of so many drafts so many among them. What a step is drafted depends on such turns
    /// alone, and not on how often somebody looked ahead.
    pub(crate) fn turn(&mut self, n_drafted: u32, n_accepted: u32) {
        self.pace.turn(n_drafted, n_accepted);
        self.made = None;
    }

    /// The program took a result.
    pub(crate) const fn keep(&mut self) {
        self.taken = self.pace;
    }

    /// What came since the program took a result does not count.
    pub(crate) fn undo(&mut self) {
        self.pace = self.taken;
        self.forget();
    }

    /// The tokens of the context are other ones.
    pub(crate) fn forget(&mut self) {
        self.made = None;
        match &mut self.source {
            Source::NGrams(grams) => grams.forget(),
            Source::Model(n_known) => *n_known = 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::ngrams::{RUNS, WINDOW};
    use super::*;

    fn make(drafter: &mut Drafter, tokens: &[u32], room: u32) -> Vec<u32> {
        let last = |n: u32| tokens[tokens.len() - n as usize..].to_vec();
        match drafter.make(tokens.len() as u32, room, last) {
            Drafts::Made(drafts) => drafts,
            Drafts::Wanted(n) => panic!("{n} drafts are asked for"),
        }
    }

    // rows: RS-074
    #[test]
    fn what_stood_behind_the_last_tokens_is_drafted_and_the_longer_run_decides() {
        let mut drafter = Drafter::of_n_grams();
        drafter.pace.n_drafts = 4;
        let tokens = [1, 2, 3, 4, 5, 60, 61, 9, 3, 4, 5, 70, 71, 1, 2, 3, 4, 5];
        assert_eq!(make(&mut drafter, &tokens, 8), [60, 61, 9, 3]);
        assert_eq!(make(&mut drafter, &tokens, 2), [60, 61]);
        let mut drafter = Drafter::of_n_grams();
        assert_eq!(make(&mut drafter, &tokens[..11], 8), [60, 61]);
        // A text that repeats itself does so for as long as is asked.
        drafter.pace.n_drafts = 5;
        drafter.forget();
        assert_eq!(make(&mut drafter, &[7, 8, 7, 8, 7], 8), [8, 7, 8, 7, 8]);
        assert_eq!(make(&mut Drafter::of_n_grams(), &[1, 2], 8), [0; 0]);
        assert_eq!(make(&mut Drafter::of_n_grams(), &[], 8), [0; 0]);
    }

    // rows: RS-074
    #[test]
    fn drafts_that_are_never_drawn_become_rare() {
        let mut drafter = Drafter::of_n_grams();
        let mut tokens = vec![7; 10];
        let mut n_drafted = 0;
        for _ in 0..10_000 {
            let drafts = make(&mut drafter, &tokens, 8);
            assert_eq!(make(&mut drafter, &tokens, 8), drafts);
            n_drafted += drafts.len();
            drafter.turn(drafts.len() as u32, 0);
            tokens.push(7);
        }
        assert!(n_drafted < 60, "{n_drafted}");
        drafter.turn(1, 1);
        assert_eq!(drafter.pace.n_drafts, 2);
    }

    // rows: RS-074
    #[test]
    fn looking_ahead_ends_no_rest() {
        let mut drafter = Drafter::of_n_grams();
        let tokens = [7; 10];
        assert_eq!(make(&mut drafter, &tokens, 8), [7, 7]);
        drafter.turn(2, 0);
        drafter.keep();
        for _ in 0..5 {
            assert_eq!(make(&mut drafter, &tokens, 8), [0; 0]);
            drafter.undo();
        }
        drafter.turn(0, 0);
        assert_eq!(make(&mut drafter, &tokens, 8), [7]);
    }

    proptest! {
        /// Whatever was asked before, and however far the context came in between, drafts are those that a naive search
        /// finds.
        // rows: RS-074
        #[test]
        fn a_naive_search_finds_the_same(tokens in prop::collection::vec(0u32..2, 0..60), cuts in prop::collection::vec(0usize..60, 0..6)) {
            let mut drafter = Drafter::of_n_grams();
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|&cut| cut <= tokens.len()).collect();
            cuts.sort_unstable();
            for cut in cuts {
                let tokens = &tokens[..cut];
                let found = make(&mut drafter, tokens, 8);
                let search = |run: usize| {
                    let last = tokens.get(tokens.len().checked_sub(run)?..)?;
                    (run..tokens.len()).rev().find(|&behind| &tokens[behind - run..behind] == last)
                };
                let behind = RUNS.into_iter().find_map(search);
                let expected = behind.map_or(Vec::new(), |behind| {
                    tokens[behind..].iter().cycle().take(FIRST_DRAFTS as usize).copied().collect()
                });
                prop_assert_eq!(found, expected);
            }
        }
    }

    // rows: RS-074
    #[test]
    fn memory_is_bounded() {
        let mut drafter = Drafter::of_n_grams();
        let mut tokens: Vec<u32> = (0..20_000).collect();
        for n in 1..=tokens.len() {
            make(&mut drafter, &tokens[..n], 8);
        }
        tokens.extend(15_000..15_010);
        assert_eq!(make(&mut drafter, &tokens, 8), [15_010, 15_011]);
        let Source::NGrams(grams) = &drafter.source else {
            panic!("it looks n-grams up");
        };
        assert!(grams.held_bytes() <= drafter.n_bytes());
    }

    // rows: RS-074
    #[test]
    fn another_model_is_asked_for_as_much_and_told_what_it_does_not_know() {
        let mut drafter = Drafter::of_model();
        let last = |_: u32| panic!("nothing is looked up");
        assert_eq!(drafter.make(10, 8, last), Drafts::Wanted(2));
        assert_eq!(drafter.make(10, 1, last), Drafts::Wanted(1));
        assert_eq!(drafter.make(10, 0, last), Drafts::NONE);
        assert_eq!((drafter.tell(10), drafter.tell(13)), (0, 10));
        drafter.turn(2, 2);
        assert_eq!(drafter.make(13, 8, last), Drafts::Wanted(4));
        drafter.turn(4, 0);
        assert_eq!(drafter.make(14, 8, last), Drafts::NONE);
        assert_eq!(drafter.make(14, 8, last), Drafts::NONE);
        drafter.turn(0, 0);
        assert_eq!(drafter.make(15, 8, last), Drafts::Wanted(2));
        drafter.undo();
        assert_eq!(drafter.make(14, 8, last), Drafts::Wanted(2));
        assert_eq!(drafter.tell(14), 0);
    }

    // rows: RS-074
    #[test]
    fn many_tokens_that_come_at_once_are_followed() {
        // Fewer than are remembered, and more.
        for n_at_once in [WINDOW - 1, WINDOW + 1] {
            let mut drafter = Drafter::of_n_grams();
            let mut tokens: Vec<u32> = (0..4 * WINDOW as u32).collect();
            for n in (WINDOW..tokens.len()).step_by(n_at_once) {
                make(&mut drafter, &tokens[..n], 8);
                let Source::NGrams(grams) = &drafter.source else {
                    panic!("it looks n-grams up");
                };
                assert!(grams.held_bytes() <= drafter.n_bytes());
            }
            let last = tokens.len() as u32 - 10;
            tokens.extend(last - 10..last);
            assert_eq!(make(&mut drafter, &tokens, 8), [last, last + 1]);
        }
    }

    /// What a shorter context no longer says is not drafted, nor what stands before more tokens than are remembered.
    // rows: RS-074
    #[test]
    fn a_context_that_cannot_be_followed_is_read_anew() {
        let before: [u32; 5] = [1, 2, 3, 60, 61];
        let shorter = vec![9, 1, 2, 3];
        let mut longer = before.to_vec();
        longer.resize(before.len() + WINDOW, 7);
        longer.extend([1, 2, 3]);
        for after in [shorter, longer] {
            let mut drafter = Drafter::of_n_grams();
            make(&mut drafter, &before, 8);
            assert_eq!(make(&mut drafter, &after, 8), [0; 0]);
        }
    }

    // rows: RS-074
    #[test]
    fn nothing_is_forgotten_before_there_is_more_than_fits() {
        let first: [u32; 5] = [1, 2, 3, 60, 61];
        for (n, expected) in [(2 * WINDOW, vec![60, 61]), (2 * WINDOW + 1, Vec::new())] {
            let mut tokens = vec![7; n];
            tokens[..5].copy_from_slice(&first);
            tokens[n - 3..].copy_from_slice(&first[..3]);
            let mut drafter = Drafter::of_n_grams();
            for end in [WINDOW, 2 * WINDOW] {
                make(&mut drafter, &tokens[..end], 8);
            }
            assert_eq!(make(&mut drafter, &tokens, 8), expected, "of {n} tokens");
        }
    }
}
