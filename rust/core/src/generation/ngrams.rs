//! What stood behind the last tokens of a context where they stood before.
//!
//! The last tokens of a context are looked up among those before them, the longer run first (prompt look-up decoding).
//! An index of a fixed size remembers where a run of tokens stood last, so that a look-up costs the same however long
//! the context is.

/// Tokens that are remembered at least; twice as many at most.
pub(super) const WINDOW: usize = 4096;
/// Tokens that have to stand alike, the longer run first.
pub(super) const RUNS: [usize; 2] = [5, 3];
/// Places of an index, by the hash of a run. Of two runs with one hash the later one is found.
const N_PLACES: usize = 8192;

/// The last tokens of a context, with an index of their runs.
#[derive(Debug)]
pub(super) struct NGrams {
    /// The last tokens of the context.
    tokens: Vec<u32>,
    /// Tokens of the context, with those that are not remembered.
    length: u32,
    /// Of each run of tokens, where the token behind it stands, counted from 1; 0: nowhere.
    places: [Vec<u32>; RUNS.len()],
    /// Runs that end before this token are in the index.
    n_indexed: usize,
}

impl NGrams {
    /// What one takes, in bytes.
    pub(super) const N_BYTES: usize = (2 * WINDOW + RUNS.len() * N_PLACES) * size_of::<u32>();

    /// Of a context of which nothing is known.
    pub(super) fn new() -> Self {
        Self {
            tokens: Vec::new(),
            length: 0,
            places: std::array::from_fn(|_| Vec::new()),
            n_indexed: 0,
        }
    }

    /// What its lists have room for, in bytes.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        let places: usize = self.places.iter().map(Vec::capacity).sum();
        (places + self.tokens.capacity()) * size_of::<u32>()
    }

    /// The tokens of the context are other ones.
    pub(super) fn forget(&mut self) {
        self.tokens.clear();
        (self.length, self.n_indexed) = (0, 0);
        for places in &mut self.places {
            places.clear();
        }
    }

    /// Remembers the tokens that came.
    pub(super) fn follow(&mut self, length: u32, last: impl FnOnce(u32) -> Vec<u32>) {
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

    /// `n` tokens that stood behind the last tokens where they stood before. What ends with them repeats itself.
    pub(super) fn look_up(&self, n: u32) -> Vec<u32> {
        let tokens = &self.tokens[..];
        for (run, places) in RUNS.into_iter().zip(&self.places) {
            let Some(start) = tokens.len().checked_sub(run) else {
                continue;
            };
            let (last, place) = (&tokens[start..], places.get(hash(&tokens[start..])));
            let behind = place.map_or(0, |&place| place as usize);
            if behind >= run && tokens.get(behind - run..behind) == Some(last) {
                let found = tokens[behind..].iter().cycle();
                return found.take(n as usize).copied().collect();
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
