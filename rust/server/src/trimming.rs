//! What clients made the server hold goes back to the system when they have gone: the allocator would keep tens of megabytes of what large
//! messages and uploads were.

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

/// Gives memory back whenever much less is held than before, for ever.
pub(crate) async fn give_back(budget: Arc<Budget>) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut most = 0;
    loop {
        ticks.tick().await;
        let held = held_bytes(&budget);
        most = held.max(most);
        if most - held >= WORTH_BYTES {
            most = held;
            // It waits for the locks of the allocator, which no thread of the connections should do. Where it fails, memory stays.
            drop(tokio::task::spawn_blocking(give_back_freed).await);
        }
    }
}

fn held_bytes(budget: &Arc<Budget>) -> u64 {
    let usage = budget.usage();
    let by_purpose = usage.values().flat_map(|usage| usage.by_purpose());
    by_purpose
        .filter(|(purpose, _)| LARGE.contains(purpose))
        .map(|(_, n_bytes)| n_bytes)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_hold_does_not_count() {
        let budget = Budget::new(1 << 30, None);
        let account = budget.account("a");
        let _guest = account.charge(Purpose::Guest, 1000).unwrap();
        let _frame = account.charge(Purpose::Frame, 10).unwrap();
        let _upload = budget.account("b").charge(Purpose::Upload, 5).unwrap();
        assert_eq!(held_bytes(&budget), 15);
    }
}
