//! How often values of which size were seen.

/// Sizes that are told apart: values of up to so many binary digits, the last one with all above.
const N_SIZES: usize = 40;

/// How often values were seen, by their number of binary digits: with powers of two as bounds a count costs a few
/// instructions, and the same bounds serve widths, tokens and microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: [u64; N_SIZES],
    sum: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: [0; N_SIZES],
            sum: 0,
            max: 0,
        }
    }
}

impl Histogram {
    pub(super) fn count(&mut self, value: u64) {
        let size = (u64::BITS - value.leading_zeros()) as usize;
        if let Some(count) = self.counts.get_mut(size.min(N_SIZES - 1)) {
            *count += 1;
        }
        self.sum = self.sum.saturating_add(value);
        self.max = self.max.max(value);
    }

    /// `counts()[d]` values had `d` binary digits: they were less than 2^d, and at least 2^(d-1) for d > 0. It ends
    /// with the largest.
    pub fn counts(&self) -> &[u64] {
        let n = self.counts.iter().rposition(|&count| count > 0);
        self.counts.get(..n.map_or(0, |n| n + 1)).unwrap_or(&[])
    }

    /// Values that were counted.
    pub fn n(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// All values together.
    pub const fn sum(&self) -> u64 {
        self.sum
    }

    /// The largest value; 0 without any.
    pub const fn max(&self) -> u64 {
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::Histogram;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|&value| histogram.count(value));
        histogram
    }

    #[test]
    fn values_are_counted_by_their_binary_digits() {
        let cases: [(&[u64], &[u64]); 5] = [
            (&[], &[]),
            (&[0, 0], &[2]),
            (&[1], &[0, 1]),
            (&[0, 1, 2, 3, 4, 7, 8], &[1, 1, 2, 2, 1]),
            (&[32], &[0, 0, 0, 0, 0, 0, 1]),
        ];
        for (values, counts) in cases {
            let histogram = of(values);
            assert_eq!(histogram.counts(), counts, "{values:?}");
            assert_eq!(histogram.n(), values.len() as u64);
            assert_eq!(histogram.sum(), values.iter().sum::<u64>());
            assert_eq!(histogram.max(), values.iter().copied().max().unwrap_or(0));
        }
    }

    #[test]
    fn the_largest_values_share_the_last_place() {
        let histogram = of(&[u64::MAX, 1 << 60, 1]);
        assert_eq!(histogram.counts().len(), 40);
        assert_eq!(histogram.counts().last(), Some(&2));
        assert_eq!((histogram.sum(), histogram.max()), (u64::MAX, u64::MAX));
    }
}
