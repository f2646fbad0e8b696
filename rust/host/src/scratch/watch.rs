//! Work on files that does not come back, as on the disk of another machine that no longer answers. No thread can be
//! taken from the system that it waits for.
//!
//! | work that has a turn | what becomes of it |
//! |---|---|
//! | ends within `runtime.fs_stall_s` | its turn goes to whoever is next |
//! | lasts longer | it is stalled: calls of its user are refused, and its turn is given to others |
//! | ends after that | nobody waits for it; calls of its user are done again |
//!
//! No more turns are given away so than there are, and so at most twice as many threads as turns hang. Where they all
//! do, whoever has waited for as long is refused as well. Nobody watches but those who wait, since nobody else cares.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pie_core::ErrorCode;
use tokio::time::timeout_at;

use crate::Error;
use crate::program::fair_turns::FairTurn;
use crate::sync::lock;

/// The work on files of a host that is under way.
#[derive(Debug)]
pub(super) struct Watch {
    /// How long work may last.
    patience: Duration,
    /// Turns that may be given away.
    most_given: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the next.
    next: u64,
    working: BTreeMap<u64, Working>,
}

#[derive(Debug)]
struct Working {
    user: Arc<str>,
    since: Instant,
    /// None once it was given away.
    turn: Option<FairTurn>,
}

/// Work that is under way, until this is dropped.
#[derive(Debug)]
pub(super) struct UnderWay {
    watch: Arc<Watch>,
    number: u64,
}

impl Watch {
    /// Of work that may last for `patience`, where so many turns may be given away.
    pub(super) fn new(patience: Duration, most_given: usize) -> Arc<Self> {
        Arc::new(Self {
            patience,
            most_given,
            state: Mutex::default(),
        })
    }

    /// Work of `user` begins, which has a turn.
    pub(super) fn begin(self: &Arc<Self>, turn: FairTurn, user: &Arc<str>) -> UnderWay {
        self.begin_at(turn, user, Instant::now())
    }

    fn begin_at(self: &Arc<Self>, turn: FairTurn, user: &Arc<str>, since: Instant) -> UnderWay {
        let mut state = lock(&self.state);
        let number = state.next;
        state.next += 1;
        let working = Working {
            user: user.clone(),
            since,
            turn: Some(turn),
        };
        state.working.insert(number, working);
        UnderWay {
            watch: self.clone(),
            number,
        }
    }

    /// Waits for something that work on files may hold up.
    ///
    /// # Errors
    /// `files-stalled` where work of `user` has stalled, and where any has and it was waited for as long.
    pub(super) async fn waiting<T>(
        &self,
        user: &str,
        awaited: impl Future<Output = T>,
    ) -> Result<T, Error> {
        let since = Instant::now();
        let mut awaited = pin!(awaited);
        loop {
            let look_at = self.look(user, since, Instant::now())?;
            if let Ok(done) = timeout_at(look_at.into(), awaited.as_mut()).await {
                return Ok(done);
            }
        }
    }

    /// Gives away the turns of work that has stalled; returns when to look again, for one of `user` who has waited
    /// since then.
    ///
    /// # Errors
    /// As [`Watch::waiting`].
    fn look(&self, user: &str, since: Instant, now: Instant) -> Result<Instant, Error> {
        let (mut is_any, mut is_own) = (false, false);
        let (mut given, mut look_at) = (Vec::new(), now + self.patience);
        let mut state = lock(&self.state);
        let has_none = |working: &&Working| working.turn.is_none();
        let mut n_given = state.working.values().filter(has_none).count();
        for working in state.working.values_mut() {
            let due = working.since + self.patience;
            if due > now {
                look_at = look_at.min(due);
                continue;
            }
            is_any = true;
            is_own |= *working.user == *user;
            if n_given < self.most_given
                && let Some(turn) = working.turn.take()
            {
                n_given += 1;
                tracing::warn!(
                    user = &*working.user,
                    "work on files has not ended for {} s; its turn is given to others",
                    self.patience.as_secs_f64()
                );
                given.push(turn);
            }
        }
        drop(state);
        // Whoever is next gets them, which takes locks of its own.
        drop(given);
        let waited = since + self.patience;
        if is_own || (is_any && waited <= now) {
            return Err(self.stalled(is_own));
        }
        Ok(if waited > now {
            look_at.min(waited)
        } else {
            look_at
        })
    }

    fn stalled(&self, is_own: bool) -> Error {
        let whose = if is_own { "of this user" } else { "of others" };
        let message = format!(
            "work on files {whose} has not ended for longer than runtime.fs_stall_s = {} s: the disk under /scratch or a folder of runtime.fs_mounts does not answer; try again when it does, or raise the setting",
            self.patience.as_secs_f64()
        );
        Error::new(ErrorCode::FilesStalled, message)
    }

    /// Work that has not ended.
    #[cfg(test)]
    pub(super) fn n_working(&self) -> usize {
        lock(&self.state).working.len()
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let ended = lock(&self.watch.state).working.remove(&self.number);
        // The turn goes to whoever is next, which takes locks of its own.
        drop(ended);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::fair_turns::FairTurns;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Work that began then.
    async fn begun(
        watch: &Arc<Watch>,
        turns: &Arc<FairTurns>,
        user: &str,
        since: Instant,
    ) -> UnderWay {
        let turn = turns.take(user).await.unwrap();
        watch.begin_at(turn, &user.into(), since)
    }

    /// Whether somebody would get a turn at once.
    async fn is_free(turns: &Arc<FairTurns>) -> bool {
        let mut taking = pin!(turns.take("somebody"));
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(taking.as_mut().poll(context).is_ready())
        })
        .await
    }

    #[tokio::test]
    async fn the_turn_of_work_that_has_stalled_goes_to_others() {
        let (turns, watch) = (FairTurns::with_any_room(2), Watch::new(PATIENCE, 1));
        let start = Instant::now();
        let first = begun(&watch, &turns, "ada", start).await;
        let second = begun(&watch, &turns, "bob", start + PATIENCE / 2).await;
        assert!(!is_free(&turns).await);
        // Nothing has stalled, and it is looked again when something would have.
        assert_eq!(watch.look("ada", start, start).unwrap(), start + PATIENCE);
        let late = start + PATIENCE;
        let refused = watch.look("ada", late, late).unwrap_err();
        assert_eq!(refused.code, ErrorCode::FilesStalled);
        assert!(refused.message.contains("runtime.fs_stall_s = 60 s"));
        assert!(is_free(&turns).await);
        // Others are served, and look when the other work would have stalled.
        assert_eq!(
            watch.look("bob", late, late).unwrap(),
            start + PATIENCE * 3 / 2
        );
        drop(first);
        assert!(watch.look("ada", late, late).is_ok());
        drop(second);
        assert_eq!(watch.n_working(), 0);
    }

    #[tokio::test]
    async fn no_more_turns_are_given_away_than_may_be_and_nobody_waits_for_ever() {
        let (turns, watch) = (FairTurns::with_any_room(3), Watch::new(PATIENCE, 1));
        let start = Instant::now();
        let mut hanging = Vec::new();
        for user in ["ada", "bob", "eve"] {
            hanging.push(begun(&watch, &turns, user, start).await);
        }
        let late = start + PATIENCE;
        assert!(watch.look("grace", late, late).is_ok());
        // The turn that was given away.
        hanging.push(begun(&watch, &turns, "grace", late).await);
        assert!(!is_free(&turns).await);
        // Who has just come waits, and is refused after as long.
        let later = late + PATIENCE;
        assert_eq!(watch.look("heidi", late, late).unwrap(), late + PATIENCE);
        assert!(!is_free(&turns).await);
        let refused = watch.look("heidi", late, later).unwrap_err();
        assert_eq!(refused.code, ErrorCode::FilesStalled);
        assert!(refused.message.contains("of others"));
        drop(hanging);
        assert!(watch.look("heidi", late, later).is_ok());
        assert!(is_free(&turns).await);
    }
}
