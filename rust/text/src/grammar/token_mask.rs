//! Which tokens may follow a text.

/// Which tokens may follow: a bit each, the lowest bit of the first word for token 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenMask {
    words: Vec<u32>,
    n_tokens: u32,
}

impl TokenMask {
    /// These words, as many as the tokens need.
    pub(super) fn new(mut words: Vec<u32>, n_tokens: u32) -> Self {
        words.resize((n_tokens as usize).div_ceil(32), 0);
        Self { words, n_tokens }
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

    /// As alternating run lengths, of tokens that may not follow first. What lies behind the last run may not.
    pub fn runs(&self) -> Vec<u32> {
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
        if token < self.n_tokens
            && let Some(word) = self.words.get_mut(token as usize / 32)
        {
            *word |= 1 << (token % 32);
        }
    }

    /// Forbids a token.
    pub(super) fn forbid(&mut self, token: u32) {
        if let Some(word) = self.words.get_mut(token as usize / 32) {
            *word &= !(1 << (token % 32));
        }
    }
}
