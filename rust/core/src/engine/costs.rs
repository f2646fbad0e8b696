//! What computing costs, as seen, so that pages are displaced the cheaper way.

use crate::kv::Displace;

/// Smoothed costs.
#[derive(Debug, Default)]
pub(super) struct Costs {
    /// Of a token in batches that computed many, where most of the time goes into each.
    token_ns: Option<u64>,
    /// Between the ends of two requests.
    request_ns: Option<u64>,
    /// When the last one ended.
    ended_ns: u64,
    /// Of a batch.
    tick_ns: Option<u64>,
}

/// Tokens from which on a batch tells what one costs.
const MANY_TOKENS: u32 = 32;

impl Costs {
    /// A batch computed so many tokens in so long.
    pub(super) fn ran(&mut self, n_tokens: u32, took_ns: u64) {
        if n_tokens >= MANY_TOKENS {
            self.token_ns = Some(blended(self.token_ns, took_ns / u64::from(n_tokens)));
        }
        self.tick_ns = Some(blended(self.tick_ns, took_ns));
    }

    /// What a batch takes; 0 before the first.
    pub(super) fn tick_ns(&self) -> u64 {
        self.tick_ns.unwrap_or(0)
    }

    /// What a token costs; 0 where none was seen.
    pub(super) fn token_ns(&self) -> u64 {
        self.token_ns.unwrap_or(0)
    }

    /// So many requests came to their end with a batch that began at `since_ns`. Time in which nothing ran does not
    /// count.
    pub(super) fn ended(&mut self, n_requests: usize, since_ns: u64, now_ns: u64) {
        if n_requests > 0 {
            let began_ns = self.ended_ns.max(since_ns);
            let seen = now_ns.saturating_sub(began_ns) / n_requests as u64;
            self.request_ns = Some(blended(self.request_ns, seen));
            self.ended_ns = now_ns;
        }
    }

    /// In how many milliseconds the next request ends, as it seems; none where none ended so far.
    pub(super) fn next_end_ms(&self) -> Option<u64> {
        Some(self.request_ns?.div_ceil(1_000_000).max(1))
    }

    /// How a page that is wanted again is displaced best: copied out and in, or computed again.
    pub(super) fn displace(&self, page_size: u32, copy_page_ns: u64) -> Displace {
        let replay_ns = self
            .token_ns
            .map(|token_ns| token_ns.saturating_mul(u64::from(page_size)));
        match replay_ns {
            Some(replay_ns) if replay_ns < copy_page_ns.saturating_mul(2) => Displace::Replay,
            _ => Displace::Copy,
        }
    }
}

/// What is usual, with what was seen last.
fn blended(usual: Option<u64>, seen: u64) -> u64 {
    usual.map_or(seen, |usual| usual - usual / 8 + seen / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_end_is_as_far_away_as_the_last_ones_were_from_each_other() {
        let mut costs = Costs::default();
        assert_eq!(costs.next_end_ms(), None);
        for batch in 1..100 {
            let now_ns = batch * 3_600_000_000_000;
            costs.ended(4, now_ns - 100_000_000, now_ns);
            costs.ended(0, now_ns, now_ns + 1);
        }
        assert_eq!(costs.next_end_ms(), Some(25));
    }

    #[test]
    fn a_batch_takes_as_long_as_the_last_ones_did() {
        let mut costs = Costs::default();
        assert_eq!(costs.tick_ns(), 0);
        costs.ran(1, 800);
        assert_eq!(costs.tick_ns(), 800);
        costs.ran(100, 1600);
        assert_eq!(costs.tick_ns(), 900);
    }

    #[test]
    fn the_cheaper_way_is_taken() {
        let mut costs = Costs::default();
        assert_eq!(costs.displace(16, 1_000_000), Displace::Copy);
        costs.ran(1, 1);
        assert_eq!(costs.displace(16, 1_000_000), Displace::Copy);
        costs.ran(100, 100 * 1000);
        assert_eq!(costs.displace(16, 7_000), Displace::Copy);
        assert_eq!(costs.displace(16, 9_000), Displace::Replay);
    }
}
