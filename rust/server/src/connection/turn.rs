//! Turns of the threads that serve connections: what one client sends, however fast, holds up the others by one turn at most.
//!
//! | state | `is_busy` | `share` | next |
//! |---|---|---|---|
//! | the client sends now and then | no | none | after a turn without a rest: busy |
//! | it has sent without a rest for longer than a turn | yes | the user's, while a turn lasts | once it has nothing to say: a rest |

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::places::User;

/// How long one connection goes on handling messages that are there already.
const TURN: Duration = Duration::from_micros(500);
/// How long a busy connection waits for the share of its user. Another one of theirs may have it that cannot go on, so this is no lock.
const PATIENCE: Duration = Duration::from_millis(20);

/// The turn of one connection.
pub(super) struct Turn {
    user: Arc<User>,
    began: Option<Instant>,
    is_busy: bool,
    /// The user's share of the threads.
    share: Option<OwnedSemaphorePermit>,
}

impl Turn {
    pub(super) fn new(user: Arc<User>) -> Self {
        Self {
            user,
            began: None,
            is_busy: false,
            share: None,
        }
    }

    /// A message is about to be handled. A busy connection waits until no other one of its user is at it.
    pub(super) async fn begin(&mut self) {
        if self.began.is_some() {
            return;
        }
        if self.is_busy {
            let share = timeout(PATIENCE, self.user.turns.clone().acquire_owned()).await;
            self.share = share.ok().and_then(Result::ok);
        }
        self.began = Some(Instant::now());
    }

    /// True when others are to get their turn.
    pub(super) fn is_over(&self) -> bool {
        self.began.is_some_and(|began| began.elapsed() >= TURN)
    }

    /// Gives others their turn.
    pub(super) async fn give(&mut self) {
        self.rest();
        self.is_busy = true;
        tokio::task::yield_now().await;
    }

    /// The client has nothing to say.
    pub(super) fn rest(&mut self) {
        self.began = None;
        self.is_busy = false;
        self.share = None;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use pie_host::Budget;
    use tokio::sync::Semaphore;

    use super::*;

    fn user() -> Arc<User> {
        Arc::new(User {
            name: "a".to_owned(),
            account: Budget::new(1 << 30, None).account("a"),
            upload_bytes: AtomicUsize::new(0),
            turns: Arc::new(Semaphore::new(1)),
        })
    }

    /// Goes on until the turn is over, and gives it.
    async fn work(turn: &mut Turn) {
        turn.begin().await;
        while !turn.is_over() {
            turn.begin().await;
        }
        turn.give().await;
    }

    #[tokio::test(flavor = "current_thread")]
    async fn busy_connections_of_a_user_work_one_after_the_other() {
        let user = user();
        let (mut first, mut second) = (Turn::new(user.clone()), Turn::new(user.clone()));
        work(&mut first).await;
        work(&mut second).await;
        first.begin().await;
        assert_eq!(user.turns.available_permits(), 0);
        // The other one goes on without the share in the end.
        second.begin().await;
        assert!(first.share.is_some() && second.share.is_none());
        first.rest();
        assert_eq!(user.turns.available_permits(), 1);
        drop((first, second));
        assert_eq!(user.turns.available_permits(), 1);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn whoever_rests_needs_no_share() {
        let user = user();
        let mut turn = Turn::new(user.clone());
        for _ in 0..3 {
            turn.begin().await;
            turn.rest();
        }
        turn.begin().await;
        assert_eq!(user.turns.available_permits(), 1);
    }
}
