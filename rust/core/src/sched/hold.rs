//! Holding a batch for programs that step by themselves.
//!
//! Programs that are woken by the same batch come back within a moment of each other. Planning as soon as the first is
//! back would leave the others to the next batch, and so on: batches of one. So a batch waits, for a bounded time, for
//! contexts whose program got its answer and usually comes back soon. Nothing that is computed depends on it.
//!
//! A step whose row was computed before its token mask was there goes on when the mask comes. It is waited for in the
//! same way: how soon its masks usually come is what counts.
//!
//! A program comes back for the next step of a generator in any case. For another forward pass it comes back if that is
//! what it usually does, and not where it waits for the passes of others in between: those would be held for nothing.

use crate::ids::{BatchId, ContextId};

/// The contexts that are expected back.
#[derive(Debug)]
pub(crate) struct Hold {
    /// The configured limit; 0 never holds.
    floor_ns: u64,
    /// The smoothed time that a batch runs.
    batch_ns: Option<u64>,
    /// The last batch that ended.
    last_ended: u64,
    expected: Vec<Expected>,
    /// When the batch that is being held could first have run.
    since_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Expected {
    context: ContextId,
    until_ns: u64,
}

/// How soon the program of a context comes back after an answer, or the token mask of a step after its row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Habit {
    /// The smoothed time; none: it never came back.
    usual_ns: Option<u64>,
    answered: Option<Answered>,
    /// When it last came back, no batch had ended that began after its answer.
    is_prompt: bool,
}

/// An answer after which the program has not come back.
#[derive(Clone, Copy, Debug)]
struct Answered {
    at_ns: u64,
    /// The last batch that had begun.
    batch: u64,
}

impl Habit {
    /// The time that its program usually takes.
    pub(crate) const fn usual_ns(&self) -> Option<u64> {
        self.usual_ns
    }

    /// That of a fork, whose program does the same.
    pub(crate) const fn of_fork(&self) -> Self {
        Self {
            answered: None,
            ..*self
        }
    }

    /// The last answer does not count.
    pub(crate) const fn forget(&mut self) {
        self.answered = None;
    }
}

impl Hold {
    pub(crate) const fn new(floor_ns: u64) -> Self {
        Self {
            floor_ns,
            batch_ns: None,
            last_ended: 0,
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
    pub(crate) fn ran(&mut self, batch: BatchId, seen_ns: u64) {
        self.last_ended = self.last_ended.max(batch.0);
        self.batch_ns = Some(smoothed(self.batch_ns, seen_ns, self.floor_ns));
    }

    /// The pass of a context was answered, when batches up to this one had begun.
    pub(crate) const fn answered(&self, habit: &mut Habit, batch: u64, now_ns: u64) {
        habit.answered = Some(Answered {
            at_ns: now_ns,
            batch,
        });
    }

    /// A context goes on: its program asks for the next pass, or its token mask came. One that is expected has an
    /// answer.
    pub(crate) fn returned(&mut self, context: ContextId, habit: &mut Habit, now_ns: u64) {
        if habit.answered.is_some() {
            self.forget(context);
            self.seen(habit, now_ns);
        }
    }

    /// The program asks for the next pass, with which the context does not go on yet.
    pub(crate) fn seen(&self, habit: &mut Habit, now_ns: u64) {
        let Some(answered) = habit.answered.take() else {
            return;
        };
        let seen_ns = now_ns.saturating_sub(answered.at_ns);
        habit.usual_ns = Some(smoothed(habit.usual_ns, seen_ns, self.floor_ns));
        habit.is_prompt = self.last_ended <= answered.batch;
    }

    /// A step was answered. It is expected when twice the time that its program usually takes lies within the limit;
    /// one without a history is given half of the limit.
    pub(crate) fn expect(&mut self, context: ContextId, habit: &Habit, now_ns: u64) {
        let limit_ns = self.limit_ns();
        let allowance = habit.usual_ns.map_or(limit_ns / 2, |usual| {
            usual.saturating_mul(2).saturating_add(limit_ns / 16)
        });
        if limit_ns > 0 && allowance <= limit_ns {
            self.expected.push(Expected {
                context,
                until_ns: now_ns.saturating_add(allowance),
            });
        }
    }

    /// A forward pass was answered: the same, where its program was last back without waiting for anybody else's.
    pub(crate) fn expect_pass(&mut self, context: ContextId, habit: &Habit, now_ns: u64) {
        if habit.is_prompt {
            self.expect(context, habit, now_ns);
        }
    }

    /// The context came back, or never will.
    pub(crate) fn forget(&mut self, context: ContextId) {
        self.expected.retain(|expected| expected.context != context);
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
fn smoothed(usual: Option<u64>, seen_ns: u64, limit_ns: u64) -> u64 {
    let seen = seen_ns.min(limit_ns.saturating_mul(16));
    usual.map_or(seen, |usual| usual - usual / 8 + seen / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ContextId = ContextId(1);
    const TWO: ContextId = ContextId(2);

    fn usually(usual_ns: u64) -> Habit {
        Habit {
            usual_ns: Some(usual_ns),
            ..Habit::default()
        }
    }

    #[test]
    fn a_batch_waits_for_those_expected_and_no_longer() {
        let mut hold = Hold::new(1600);
        assert_eq!(hold.until(0), None);
        hold.expect(ONE, &Habit::default(), 100);
        hold.expect(TWO, &usually(100), 100);
        assert_eq!(hold.until(150), Some(900));
        hold.forget(ONE);
        assert_eq!(hold.until(150), Some(400));
        assert_eq!(hold.until(400), None);
    }

    #[test]
    fn those_who_usually_stay_away_are_not_expected() {
        let mut hold = Hold::new(1600);
        hold.expect(ONE, &usually(800), 0);
        assert_eq!(hold.until(0), None);
        let mut never = Hold::new(0);
        never.expect(ONE, &usually(0), 0);
        assert_eq!(never.until(0), None);
    }

    #[test]
    fn a_batch_is_never_held_longer_than_the_limit() {
        let mut hold = Hold::new(1600);
        hold.expect(ONE, &Habit::default(), 0);
        assert_eq!(hold.until(0), Some(800));
        for now in (0..1600).step_by(100) {
            hold.expect(ONE, &Habit::default(), now);
            assert!(hold.until(now).is_some());
        }
        assert_eq!(hold.until(1600), None);
        hold.release();
        assert_eq!(hold.until(1600), Some(2300));
    }

    #[test]
    fn slow_batches_are_held_longer_within_bounds() {
        let mut hold = Hold::new(1600);
        hold.ran(BatchId(1), 100);
        assert_eq!(hold.limit_ns(), 1600);
        let mut slow = Hold::new(1600);
        slow.ran(BatchId(1), 2000);
        assert_eq!(slow.limit_ns(), 4000);
        slow.expect(ONE, &usually(1500), 0);
        assert_eq!(slow.until(0), Some(3250));
        let mut slowest = Hold::new(1600);
        slowest.ran(BatchId(1), u64::MAX);
        assert_eq!(slowest.limit_ns(), 8000);
    }

    #[test]
    fn a_pass_is_expected_where_it_was_last_back_before_a_batch_had_come_and_gone() {
        let (mut hold, mut habit) = (Hold::new(1600), Habit::default());
        hold.expect_pass(ONE, &habit, 0);
        assert_eq!(hold.until(0), None);
        // Batch 2 had begun before batch 1 was answered, and ends before the program is back.
        hold.ran(BatchId(1), 100);
        hold.answered(&mut habit, 2, 0);
        hold.ran(BatchId(2), 100);
        hold.returned(ONE, &mut habit, 100);
        hold.expect_pass(ONE, &habit, 200);
        assert_eq!(hold.until(200), Some(500));
        // Batch 3 begins afterwards: the program was back no sooner than that one had ended.
        hold.answered(&mut habit, 2, 200);
        hold.ran(BatchId(3), 100);
        hold.returned(ONE, &mut habit, 300);
        hold.expect_pass(ONE, &habit, 300);
        assert_eq!(hold.until(300), None);
        // A fork does as its original does.
        hold.expect(TWO, &habit.of_fork(), 300);
        assert_eq!(hold.until(300), Some(600));
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
