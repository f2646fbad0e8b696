//! How long a batch takes, as learned from those that ran.
//!
//! The time of a batch is taken to be a sum: something for the batch itself, for each sequence, for each token, and for
//! each pair of a token and one that it sees. The four prices are a least-squares fit in which what was seen long ago
//! counts less (a Kalman filter whose state is the prices). No token depends on it.

/// By how much the times of equal batches differ, relative to them.
const NOISE: f64 = 0.3;
/// How many times as doubtful a time is that is longer than expected. Other threads of the machine may have run in
/// between. A higher price would allow longer batches, which take more of the time of those threads. So the prices are
/// those of a machine with nothing else to do, as far as batches show them.
const DOUBT: f64 = 4.0;
/// By how much a price changes from batch to batch, relative to itself, or to a part of what it is taken to be at
/// first.
const DRIFT: f64 = 0.05;
const PART: f64 = 0.25;
/// What a batch, a sequence, a token and a pair are taken to cost at first, relative to each other. Most of a small
/// batch is then the batch itself, and most of a large one its tokens: where all batches are alike, less in them is
/// taken to be less time, so that it is tried.
const AT_FIRST: [f64; 4] = [32.0, 4.0, 1.0, 1.0 / 512.0];
/// How far from that a price may be, relative to it.
const UNSURE: f64 = 2.0;
/// A batch that took longer than so many times what was expected counts as one that took that long: so that one hiccup
/// is soon forgotten.
const MOST_SURPRISING: f64 = 4.0;

/// What a batch computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    n_sequences: u32,
    n_tokens: u32,
    /// Pairs of a token and one that it sees.
    n_pairs: u64,
}

impl Work {
    /// Adds `n` tokens of a sequence behind `n_before`.
    pub(crate) const fn add(&mut self, n_before: u32, n: u32) {
        self.n_sequences += 1;
        self.n_tokens += n;
        let (n_before, n) = (n_before as u64, n as u64);
        self.n_pairs += n * n_before + n * (n + 1) / 2;
    }

    /// What the prices are multiplied with.
    const fn counts(&self) -> [f64; 4] {
        [
            1.0,
            self.n_sequences as f64,
            self.n_tokens as f64,
            self.n_pairs as f64,
        ]
    }
}

/// Nanoseconds for a batch, a sequence, a token and a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Prices([f64; 4]);

impl Prices {
    #[cfg(test)]
    pub(crate) const fn new(batch: f64, sequence: f64, token: f64, pair: f64) -> Self {
        Self([batch, sequence, token, pair])
    }

    /// Whether any batch was seen.
    pub(crate) fn are_known(&self) -> bool {
        self.0.iter().any(|&price| price > 0.0)
    }

    /// Nanoseconds of a batch.
    pub(crate) fn batch(&self, work: &Work) -> f64 {
        dot(&self.0, &work.counts())
    }

    /// Nanoseconds of a batch beside its sequences.
    pub(crate) const fn base(&self) -> f64 {
        self.0[0]
    }

    /// Nanoseconds of `n` tokens of a sequence behind `n_before`.
    pub(crate) fn sequence(&self, n_before: u32, n: u32) -> f64 {
        let mut work = Work::default();
        work.add(n_before, n);
        self.batch(&work) - self.base()
    }

    /// The most tokens of a sequence behind `n_before` that take no longer than so many nanoseconds.
    pub(crate) fn n_within(&self, n_before: u32, ns: f64) -> u32 {
        let [_, sequence, token, pair] = self.0;
        let left = ns - sequence;
        if left <= 0.0 {
            return 0;
        }
        // pair / 2 n^2 + linear n = left, solved without a difference of numbers that are nearly the same.
        let linear = token + pair * (f64::from(n_before) + 0.5);
        let n = 2.0 * left / (linear + (linear * linear + 2.0 * pair * left).sqrt());
        // What costs nothing has no bound: the conversion saturates.
        n as u32
    }
}

/// The prices, and how sure they are.
#[derive(Debug, Default)]
pub(crate) struct Cost {
    pub(crate) prices: Prices,
    /// Of the prices; 0 on its diagonal where no batch told anything of one.
    covariance: [[f64; 4]; 4],
}

impl Cost {
    /// A batch took so long.
    pub(crate) fn learn(&mut self, work: &Work, took_ns: u64) {
        let counts = work.counts();
        let expected = self.prices.batch(work);
        let mut took = (took_ns as f64).max(1.0);
        if expected > 0.0 {
            took = took.min(expected * MOST_SURPRISING);
        }
        let unit = took / dot(&AT_FIRST, &counts);
        for (index, _) in counts.iter().enumerate().filter(|&(_, &count)| count > 0.0) {
            let first = AT_FIRST[index] * unit;
            let variance = &mut self.covariance[index][index];
            let change = if *variance > 0.0 {
                DRIFT * self.prices.0[index].max(PART * first)
            } else {
                UNSURE * first
            };
            *variance += change * change;
        }
        let spread = self.covariance.map(|row| dot(&row, &counts));
        let doubt = if expected > 0.0 && took > expected {
            DOUBT
        } else {
            1.0
        };
        let noise = NOISE * took * doubt;
        let variance = dot(&spread, &counts) + noise * noise;
        let surprise = (took - expected) / variance;
        for (price, gain) in self.prices.0.iter_mut().zip(spread) {
            *price = (*price + gain * surprise).max(0.0);
        }
        for (row, gain) in self.covariance.iter_mut().zip(spread) {
            for (entry, other) in row.iter_mut().zip(spread) {
                *entry -= gain * other / variance;
            }
        }
        if !self.prices.0.iter().all(|price| price.is_finite()) {
            *self = Self::default();
        }
    }
}

fn dot(a: &[f64; 4], b: &[f64; 4]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn work(sequences: &[(u32, u32)]) -> Work {
        let mut work = Work::default();
        for &(n_before, n) in sequences {
            work.add(n_before, n);
        }
        work
    }

    /// Batches of all kinds, of which each takes as long as the prices say.
    fn teach(cost: &mut Cost, prices: &Prices, n_batches: u32) {
        for batch in 0..n_batches {
            let n_decodes = [1, 7, 30, 3][batch as usize % 4];
            let mut sequences = vec![(batch * 37 % 500, 1); n_decodes];
            if batch % 3 > 0 {
                sequences.push((batch * 91 % 1500, 16 + batch * 13 % 200));
            }
            let work = work(&sequences);
            cost.learn(&work, prices.batch(&work) as u64);
        }
    }

    #[test]
    fn what_batches_take_is_learned() {
        let prices = Prices::new(400_000.0, 30_000.0, 50_000.0, 100.0);
        let mut cost = Cost::default();
        assert!(!cost.prices.are_known());
        teach(&mut cost, &prices, 300);
        for sequences in [&[(0, 1)][..], &[(100, 1); 20], &[(0, 1), (1000, 100)]] {
            let (expected, estimated) = (
                prices.batch(&work(sequences)),
                cost.prices.batch(&work(sequences)),
            );
            assert!(
                (0.5..2.0).contains(&(estimated / expected)),
                "{sequences:?}: {estimated} for {expected}"
            );
        }
        // The machine is busy from now on.
        let slower = Prices(prices.0.map(|price| price * 3.0));
        teach(&mut cost, &slower, 300);
        let one = work(&[(0, 1), (500, 64)]);
        let (expected, estimated) = (slower.batch(&one), cost.prices.batch(&one));
        assert!(
            (0.5..2.0).contains(&(estimated / expected)),
            "{estimated} for {expected}"
        );
    }

    /// Only batches of one kind were seen: a smaller one is estimated to be shorter, not to be all overhead.
    #[test]
    fn what_is_alike_is_not_taken_for_overhead() {
        for full in [vec![(0, 512)], vec![(40, 1); 256], vec![(1500, 32); 16]] {
            let mut cost = Cost::default();
            for _ in 0..50 {
                cost.learn(&work(&full), 500_000_000);
            }
            let small = cost.prices.batch(&work(&[(0, 1), (0, 1)]));
            assert!(
                (1.0..50e6).contains(&small),
                "{small} for two rows, where {full:?} takes 500 ms"
            );
        }
    }

    #[test]
    fn one_hiccup_is_soon_forgotten() {
        let prices = Prices::new(400_000.0, 30_000.0, 50_000.0, 100.0);
        let mut cost = Cost::default();
        teach(&mut cost, &prices, 100);
        cost.learn(&work(&[(0, 1)]), u64::MAX);
        assert!(cost.prices.batch(&work(&[(0, 1)])) < 4.0 * prices.batch(&work(&[(0, 1)])));
        teach(&mut cost, &prices, 20);
        assert!(cost.prices.batch(&work(&[(0, 1)])) < 1.5 * prices.batch(&work(&[(0, 1)])));
    }

    proptest! {
        /// Whatever the times are, prices are never negative, and the number of tokens that fit is the greatest that
        /// does.
        #[test]
        fn prices_are_prices(
            batches in prop::collection::vec((prop::collection::vec((0u32..1 << 24, 0u32..1 << 20), 0..6), any::<u64>()), 1..40),
            n_before in 0u32..1 << 24, ns in 0u64..1 << 50,
        ) {
            let mut cost = Cost::default();
            for (sequences, took_ns) in batches {
                cost.learn(&work(&sequences), took_ns);
                prop_assert!(cost.prices.0.iter().all(|&price| price.is_finite() && price >= 0.0), "{:?}", cost);
            }
            let ns = ns as f64;
            let n = cost.prices.n_within(n_before, ns);
            if n > 0 && n < 1 << 20 {
                prop_assert!(cost.prices.sequence(n_before, n) <= ns * (1.0 + 1e-6));
                prop_assert!(cost.prices.sequence(n_before, n + 1) >= ns * (1.0 - 1e-6));
            }
        }
    }
}
