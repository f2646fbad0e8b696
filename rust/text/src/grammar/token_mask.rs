//! Which tokens may follow a text.

use std::sync::OnceLock;

/// Which tokens may follow: a bit each, the lowest bit of the first word for token 0.
#[derive(Debug, Clone)]
pub struct TokenMask {
    words: Vec<u32>,
    n_tokens: u32,
    /// As run lengths, once they were asked for, where they are not longer than the words.
    runs: OnceLock<Vec<u32>>,
}

impl PartialEq for TokenMask {
    fn eq(&self, other: &Self) -> bool {
        self.n_tokens == other.n_tokens && self.words == other.words
    }
}

impl Eq for TokenMask {}

impl TokenMask {
    /// These words, as many as the tokens need.
    pub(super) fn new(mut words: Vec<u32>, n_tokens: u32) -> Self {
        words.resize((n_tokens as usize).div_ceil(32), 0);
        Self {
            words,
            n_tokens,
            runs: OnceLock::new(),
        }
    }

    /// The words.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Whether a token may follow.
    pub fn allows(&self, token: u32) -> bool {
        let word = self.words.get(token as usize / 32).copied().unwrap_or(0);
        token < self.n_tokens && word >> (token % 32) & 1 == 1
    }

    /// Whether no token may follow.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The tokens that may follow, where they are no more than `n_most`.
    pub(super) fn listed(&self, n_most: usize) -> Option<Vec<u32>> {
        let n_allowed: u32 = self.words.iter().map(|word| word.count_ones()).sum();
        if n_allowed as usize > n_most {
            return None;
        }
        let mut tokens = Vec::with_capacity(n_allowed as usize);
        for (first, &word) in (0..).step_by(32).zip(&self.words) {
            let mut left = word;
            while left != 0 {
                tokens.push(first + left.trailing_zeros());
                left &= left - 1;
            }
        }
        Some(tokens)
    }

    /// A number that tells it from most others, found in a pass over the words.
    pub(super) fn fingerprint(&self) -> u64 {
        // The multiplier of Knuth's linear congruential generator (MMIX).
        const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
        let mix = |sum: u64, &word: &u32| {
            (sum ^ u64::from(word))
                .wrapping_mul(MULTIPLIER)
                .rotate_left(29)
        };
        self.words.iter().fold(u64::from(self.n_tokens), mix)
    }

    /// The most that it takes, in bytes.
    pub(super) fn max_bytes(&self) -> usize {
        2 * size_of_val(&*self.words) + size_of::<Self>()
    }

    /// As alternating run lengths, of tokens that may not follow first. What lies behind the last run may not.
    pub fn runs(&self) -> Vec<u32> {
        if let Some(runs) = self.runs.get() {
            return runs.clone();
        }
        let runs = self.find_runs();
        if runs.len() <= self.words.len() {
            return self.runs.get_or_init(|| runs).clone();
        }
        runs
    }

    fn find_runs(&self) -> Vec<u32> {
        let mut runs = Vec::new();
        let mut allowed = false;
        let mut start = 0;
        loop {
            // The next token that is not as those before.
            let end = self.next(start, !allowed);
            match end {
                Some(end) => {
                    runs.push(end - start);
                    start = end;
                    allowed = !allowed;
                }
                None => {
                    if allowed {
                        runs.push(self.n_tokens - start);
                    } else if runs.is_empty() {
                        // A list that allows nothing is not the empty one.
                        runs.push(self.n_tokens);
                    }
                    return runs;
                }
            }
        }
    }

    /// The first token from `start` on that is allowed, or is not.
    fn next(&self, start: u32, allowed: bool) -> Option<u32> {
        let mut at = start;
        while at < self.n_tokens {
            let word = self.words.get(at as usize / 32).copied().unwrap_or(0);
            let word = if allowed { word } else { !word } >> (at % 32);
            if word != 0 {
                let found = at + word.trailing_zeros();
                return (found < self.n_tokens).then_some(found);
            }
            at = (at / 32 + 1) * 32;
        }
        None
    }

    /// Allows a token.
    pub(super) fn allow(&mut self, token: u32) {
        self.runs.take();
        if token < self.n_tokens
            && let Some(word) = self.words.get_mut(token as usize / 32)
        {
            *word |= 1 << (token % 32);
        }
    }

    /// Forbids a token.
    pub(super) fn forbid(&mut self, token: u32) {
        self.runs.take();
        if let Some(word) = self.words.get_mut(token as usize / 32) {
            *word &= !(1 << (token % 32));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: RS-138
    #[test]
    fn masks_are_equal_where_their_words_and_their_tokens_are() {
        let mask = |word, n_tokens| TokenMask::new(vec![word], n_tokens);
        assert_eq!(mask(5, 8), mask(5, 8));
        assert_ne!(mask(5, 8), mask(4, 8));
        assert_ne!(mask(5, 8), mask(5, 9));
    }
}
