//! Holding a batch for programs that step by themselves.
//!
//! Programs that are woken by the same batch come back within a moment of each other. Planning as soon as the first is
//! back would leave the others to the next batch, and so on: batches of one. So a batch waits, for a bounded time, for
//! generators whose program got its answer and usually comes back soon. Nothing that is computed depends on it.

use crate::ids::GeneratorId;

/// The generators that are expected back.
#[derive(Debug)]
pub(crate) struct Hold {
    /// The configured limit; 0 never holds.
    floor_ns: u64,
    /// The smoothed time that a batch runs.
    batch_ns: Option<u64>,
    expected: Vec<Expected>,
    /// When the batch that is being held could first have run.
    since_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Expected {
    generator: GeneratorId,
    until_ns: u64,
}

impl Hold {
    pub(crate) const fn new(floor_ns: u64) -> Self {
        Self {
            floor_ns,
            batch_ns: None,
            expected: Vec::new(),
            since_ns: None,
        }
    }

    /// How long a batch is held at the most: two batches long, since a program that misses a batch waits for the whole
    /// of it and then for its own; within the configured limit and five times that.
    pub(crate) fn limit_ns(&self) -> u64 {
        let pair = self.batch_ns.unwrap_or(0).saturating_mul(2);
        pair.clamp(self.floor_ns, self.floor_ns.saturating_mul(5))
    }

    /// A batch ran for so long.
    pub(crate) fn ran(&mut self, seen_ns: u64) {
        self.batch_ns = Some(smoothed(self.batch_ns, seen_ns, self.floor_ns));
    }

    /// A step was answered. `return_ns` is how long the generator usually takes to come back, if that is known. It is
    /// expected when twice that time lies within the limit; a generator without a history is given half of the limit.
    pub(crate) fn expect(&mut self, generator: GeneratorId, return_ns: Option<u64>, now_ns: u64) {
        let limit_ns = self.limit_ns();
        let allowance = return_ns.map_or(limit_ns / 2, |usual| {
            usual.saturating_mul(2).saturating_add(limit_ns / 16)
        });
        if limit_ns > 0 && allowance <= limit_ns {
            self.expected.push(Expected {
                generator,
                until_ns: now_ns.saturating_add(allowance),
            });
        }
    }

    /// The generator came back, or never will.
    pub(crate) fn forget(&mut self, generator: GeneratorId) {
        self.expected
            .retain(|expected| expected.generator != generator);
    }

    /// Until when a batch that could run waits; none when it runs.
    pub(crate) fn until(&mut self, now_ns: u64) -> Option<u64> {
        self.expected.retain(|expected| expected.until_ns > now_ns);
        let latest = self
            .expected
            .iter()
            .map(|expected| expected.until_ns)
            .max()?;
        let since = *self.since_ns.get_or_insert(now_ns);
        let until = latest.min(since.saturating_add(self.limit_ns()));
        (until > now_ns).then_some(until)
    }

    /// The batch runs.
    pub(crate) const fn release(&mut self) {
        self.since_ns = None;
    }
}

/// A smoothed time after another one was seen: an eighth of the way to it, and no single one counts for more than 16
/// limits, so that one long thought is soon forgotten.
pub(crate) fn smoothed(usual: Option<u64>, seen_ns: u64, limit_ns: u64) -> u64 {
    let seen = seen_ns.min(limit_ns.saturating_mul(16));
    usual.map_or(seen, |usual| usual - usual / 8 + seen / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_waits_for_those_expected_and_no_longer() {
        let mut hold = Hold::new(1600);
        assert_eq!(hold.until(0), None);
        hold.expect(GeneratorId(1), None, 100);
        hold.expect(GeneratorId(2), Some(100), 100);
        assert_eq!(hold.until(150), Some(900));
        hold.forget(GeneratorId(1));
        assert_eq!(hold.until(150), Some(400));
        assert_eq!(hold.until(400), None);
    }

    #[test]
    fn those_who_usually_stay_away_are_not_expected() {
        let mut hold = Hold::new(1600);
        hold.expect(GeneratorId(1), Some(800), 0);
        assert_eq!(hold.until(0), None);
        let mut never = Hold::new(0);
        never.expect(GeneratorId(1), Some(0), 0);
        assert_eq!(never.until(0), None);
    }

    #[test]
    fn a_batch_is_never_held_longer_than_the_limit() {
        let mut hold = Hold::new(1600);
        hold.expect(GeneratorId(1), None, 0);
        assert_eq!(hold.until(0), Some(800));
        for now in (0..1600).step_by(100) {
            hold.expect(GeneratorId(1), None, now);
            assert!(hold.until(now).is_some());
        }
        assert_eq!(hold.until(1600), None);
        hold.release();
        assert_eq!(hold.until(1600), Some(2300));
    }

    #[test]
    fn slow_batches_are_held_longer_within_bounds() {
        let mut hold = Hold::new(1600);
        hold.ran(100);
        assert_eq!(hold.limit_ns(), 1600);
        let mut slow = Hold::new(1600);
        slow.ran(2000);
        assert_eq!(slow.limit_ns(), 4000);
        slow.expect(GeneratorId(1), Some(1500), 0);
        assert_eq!(slow.until(0), Some(3250));
        let mut slowest = Hold::new(1600);
        slowest.ran(u64::MAX);
        assert_eq!(slowest.limit_ns(), 8000);
    }

    #[test]
    fn one_long_pause_is_forgotten() {
        let mut usual = smoothed(Some(50), u64::MAX, 1600);
        assert!(usual > 1600);
        for _ in 0..40 {
            usual = smoothed(Some(usual), 50, 1600);
        }
        assert!(usual < 200, "{usual}");
    }
}
