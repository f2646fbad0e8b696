//! Drafts that the engine makes by itself: what stood behind the last tokens where they stood before.
//!
//! The last tokens of a context are looked up among those before them, the longer run first (prompt look-up decoding).
//! An index of a fixed size remembers where a run of tokens stood last, so that a look-up costs the same however long
//! the context is. Drafts follow from the tokens and from what came of the drafts before, and from nothing else: so it
//! does not depend on time or load how many tokens a step accepts.
//!
//! Drafts that are all drawn make the next ones longer. Where none is drawn the next ones are shorter, and looked for
//! after a rest that becomes longer each time: a text that repeats nothing costs next to nothing.

/// Tokens that are remembered at least; twice as many at most.
const WINDOW: usize = 4096;
/// Tokens that have to stand alike, the longer run first.
const RUNS: [usize; 2] = [5, 3];
/// Places of an index, by the hash of a run. Of two runs with one hash the later one is found.
const N_PLACES: usize = 8192;
/// The most tokens that are drafted at once.
const MAX_DRAFTS: u32 = 8;
/// Tokens that are drafted first.
const FIRST_DRAFTS: u32 = 2;
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
            self.last_rest = (2 * self.last_rest + 1).min(MAX_REST);
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

/// Makes the drafts of a generator.
#[derive(Debug)]
pub(crate) struct Drafter {
    pace: Pace,
    /// The same when the program last took a result: what was cancelled since does not count.
    taken: Pace,
    /// The last tokens of the context.
    tokens: Vec<u32>,
    /// Tokens of the context, with those that are not remembered.
    length: u32,
    /// Of each run of tokens, where the token behind it stands, counted from 1; 0: nowhere.
    places: [Vec<u32>; RUNS.len()],
    /// Runs that end before this token are in the index.
    n_indexed: usize,
    /// What was made for a context of `length` tokens; none: nothing yet.
    made: Option<Vec<u32>>,
}

impl Drafter {
    /// What one takes, in bytes.
    pub(crate) const N_BYTES: usize = (2 * WINDOW + RUNS.len() * N_PLACES) * size_of::<u32>();

    pub(crate) fn new() -> Self {
        Self {
            pace: Pace::FIRST,
            taken: Pace::FIRST,
            tokens: Vec::new(),
            length: 0,
            places: std::array::from_fn(|_| Vec::new()),
            n_indexed: 0,
            made: None,
        }
    }

    /// The drafts for a context of `length` tokens, at most `room`; `last` gives so many of its last tokens. It may be
    /// asked for what is never computed: that changes nothing.
    pub(crate) fn make(
        &mut self,
        length: u32,
        room: u32,
        last: impl FnOnce(u32) -> Vec<u32>,
    ) -> Vec<u32> {
        if self.made.is_none() || length != self.length {
            self.follow(length, last);
            self.made = Some(self.look_up());
        }
        let mut drafts = self.made.clone().unwrap_or_default();
        drafts.truncate(room as usize);
        drafts
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
        self.tokens.clear();
        (self.length, self.n_indexed, self.made) = (0, 0, None);
        for places in &mut self.places {
            places.clear();
        }
    }

    /// Remembers the tokens that came.
    fn follow(&mut self, length: u32, last: impl FnOnce(u32) -> Vec<u32>) {
        let n_new = length.checked_sub(self.length);
        let n_new = n_new.filter(|&n| n as usize <= WINDOW && !self.tokens.is_empty());
        if let Some(n_new) = n_new {
            self.make_room(n_new as usize);
            self.tokens.extend(last(n_new));
        } else {
            self.forget();
            let n = length.min(WINDOW as u32);
            self.tokens.reserve_exact(2 * WINDOW);
            self.tokens.extend(last(n));
        }
        self.length = length;
        let end = self.tokens.len().saturating_sub(1);
        for (run, places) in RUNS.into_iter().zip(&mut self.places) {
            places.resize(N_PLACES, 0);
            for behind in self.n_indexed.max(run - 1) + 1..=end {
                if let Some(place) = places.get_mut(hash(&self.tokens[behind - run..behind])) {
                    *place = behind as u32;
                }
            }
        }
        self.n_indexed = end;
    }

    /// Forgets the first tokens where so many more, at most `WINDOW`, would be too many.
    fn make_room(&mut self, n_new: usize) {
        if self.tokens.len() + n_new > 2 * WINDOW {
            self.tokens.drain(..self.tokens.len() + n_new - WINDOW);
            self.n_indexed = 0;
            for places in &mut self.places {
                places.clear();
            }
        }
    }

    /// What stood behind the last tokens where they stood before. What ends with them repeats itself.
    fn look_up(&self) -> Vec<u32> {
        if self.pace.rest > 0 {
            return Vec::new();
        }
        let tokens = &self.tokens[..];
        for (run, places) in RUNS.into_iter().zip(&self.places) {
            let Some(start) = tokens.len().checked_sub(run) else {
                continue;
            };
            let (last, place) = (&tokens[start..], places.get(hash(&tokens[start..])));
            let behind = place.map_or(0, |&place| place as usize);
            if behind >= run && tokens.get(behind - run..behind) == Some(last) {
                let found = tokens[behind..].iter().cycle();
                return found.take(self.pace.n_drafts as usize).copied().collect();
            }
        }
        Vec::new()
    }
}

/// The place of a run in an index.
fn hash(run: &[u32]) -> usize {
    let digest = run.iter().fold(0u64, |digest, &token| {
        // The multiplier of Knuth's linear congruential generator MMIX.
        (digest ^ u64::from(token))
            .wrapping_mul(6_364_136_223_846_793_005)
            .rotate_left(29)
    });
    digest as usize % N_PLACES
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn make(drafter: &mut Drafter, tokens: &[u32], room: u32) -> Vec<u32> {
        drafter.make(tokens.len() as u32, room, |n| {
            tokens[tokens.len() - n as usize..].to_vec()
        })
    }

    #[test]
    fn what_stood_behind_the_last_tokens_is_drafted_and_the_longer_run_decides() {
        let mut drafter = Drafter::new();
        drafter.pace.n_drafts = 4;
        let tokens = [1, 2, 3, 4, 5, 60, 61, 9, 3, 4, 5, 70, 71, 1, 2, 3, 4, 5];
        assert_eq!(make(&mut drafter, &tokens, 8), [60, 61, 9, 3]);
        assert_eq!(make(&mut drafter, &tokens, 2), [60, 61]);
        let mut drafter = Drafter::new();
        assert_eq!(make(&mut drafter, &tokens[..11], 8), [60, 61]);
        // A text that repeats itself does so for as long as is asked.
        drafter.pace.n_drafts = 5;
        drafter.forget();
        assert_eq!(make(&mut drafter, &[7, 8, 7, 8, 7], 8), [8, 7, 8, 7, 8]);
        assert_eq!(make(&mut Drafter::new(), &[1, 2], 8), [0; 0]);
        assert_eq!(make(&mut Drafter::new(), &[], 8), [0; 0]);
    }

    #[test]
    fn drafts_that_are_never_drawn_become_rare() {
        let mut drafter = Drafter::new();
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

    #[test]
    fn looking_ahead_ends_no_rest() {
        let mut drafter = Drafter::new();
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
        #[test]
        fn a_naive_search_finds_the_same(tokens in prop::collection::vec(0u32..2, 0..60), cuts in prop::collection::vec(0usize..60, 0..6)) {
            let mut drafter = Drafter::new();
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

    #[test]
    fn memory_is_bounded() {
        let mut drafter = Drafter::new();
        let mut tokens: Vec<u32> = (0..20_000).collect();
        for n in 1..=tokens.len() {
            make(&mut drafter, &tokens[..n], 8);
        }
        tokens.extend(15_000..15_010);
        assert_eq!(make(&mut drafter, &tokens, 8), [15_010, 15_011]);
        let held: usize = drafter.places.iter().map(Vec::capacity).sum();
        assert!((held + drafter.tokens.capacity()) * 4 <= Drafter::N_BYTES);
    }
}
