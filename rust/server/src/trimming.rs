//! Memory that clients made the server hold is given back to the system when they have disconnected: the allocator
//! would keep tens of megabytes of what large messages and uploads were, and of what lay between them.

use std::sync::Arc;
use std::time::Duration;

use pie_host::{Budget, Purpose, give_back_freed};
use tokio::time::{MissedTickBehavior, interval};

/// How often it is looked what is held.
const PERIOD: Duration = Duration::from_secs(1);
/// Bytes that are worth it: giving back takes milliseconds, and who allocates next pays for new pages.
const WORTH_BYTES: u64 = 4 << 20;
/// What lies in the allocator's hands in large pieces, and comes from clients. The memories of programs do not.
const LARGE: [Purpose; 3] = [Purpose::Frame, Purpose::Answer, Purpose::Upload];

/// Gives memory back whenever much less is held than before, and when the last program has ended; for ever.
/// What nobody has used for a while is forgotten before.
pub(crate) async fn give_back(budget: Arc<Budget>, forget_unused: impl Fn()) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut watched = Watched::default();
    loop {
        ticks.tick().await;
        forget_unused();
        if watched.is_worth_it(
            held_bytes(&budget, &LARGE),
            held_bytes(&budget, &[Purpose::Guest]),
        ) {
            // It waits for the locks of the allocator, which no thread of the connections should do. Where it fails,
            // memory stays.
            drop(tokio::task::spawn_blocking(give_back_freed).await);
        }
    }
}

/// What was seen since memory was last given back.
#[derive(Default)]
struct Watched {
    /// The most that large pieces took, in bytes.
    most: u64,
    /// Whether programs ran.
    had_guests: bool,
    /// Whether none ran when it was looked last.
    was_idle: bool,
}

impl Watched {
    /// Whether to give memory back now, with so many bytes held in large pieces and by the memories of programs.
    ///
    /// A program that ends leaves free pieces between those of others. While programs come and go those are used again;
    /// once none has run for a period nobody pays for fresh pages soon.
    fn is_worth_it(&mut self, large: u64, guests: u64) -> bool {
        self.most = self.most.max(large);
        let is_idle = guests == 0;
        let are_gone = is_idle && self.was_idle && self.had_guests;
        self.was_idle = is_idle;
        self.had_guests |= !is_idle;
        let is_worth_it = are_gone || self.most - large >= WORTH_BYTES;
        if is_worth_it {
            (self.most, self.had_guests) = (large, !is_idle);
        }
        is_worth_it
    }
}

fn held_bytes(budget: &Arc<Budget>, purposes: &[Purpose]) -> u64 {
    let usage = budget.usage();
    let by_purpose = usage.values().flat_map(|usage| usage.by_purpose());
    by_purpose
        .filter(|(purpose, _)| purposes.contains(purpose))
        .map(|(_, n_bytes)| n_bytes)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_told_by_purpose() {
        let budget = Budget::new(1 << 30, None);
        let account = budget.account("a");
        let _guest = account.charge(Purpose::Guest, 1000).unwrap();
        let _frame = account.charge(Purpose::Frame, 10).unwrap();
        let _upload = budget.account("b").charge(Purpose::Upload, 5).unwrap();
        assert_eq!(held_bytes(&budget, &LARGE), 15);
        assert_eq!(held_bytes(&budget, &[Purpose::Guest]), 1000);
    }

    #[test]
    fn memory_is_given_back_once_after_large_pieces_were_freed() {
        let mut watched = Watched::default();
        assert!(!watched.is_worth_it(WORTH_BYTES, 7));
        assert!(watched.is_worth_it(0, 7));
        assert!(!watched.is_worth_it(0, 7));
        assert!(!watched.is_worth_it(WORTH_BYTES - 1, 7));
        assert!(!watched.is_worth_it(0, 7));
    }

    #[test]
    fn memory_is_given_back_once_when_no_program_has_run_for_a_period() {
        let mut watched = Watched::default();
        let seen = [7, 0, 7, 0, 0, 0, 7, 0, 0].map(|guests| watched.is_worth_it(0, guests));
        assert_eq!(
            seen,
            [false, false, false, false, true, false, false, false, true]
        );
    }

    #[test]
    fn a_server_where_nothing_ran_gives_nothing_back() {
        let mut watched = Watched::default();
        assert!(!(0..3).any(|_| watched.is_worth_it(0, 0)));
    }
}
