//! What is made once for all who ask: each user waits for a turn of their own, once, and whoever gets the first turn
//! makes it.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::sync::Notify;

use super::fair_turns::{FairTurn, FairTurns};
use crate::Error;
use crate::sync::lock;

/// How long work continues while somebody waits who has used less. The time doubles each time that the work has to
/// begin anew, so that it comes to its end.
const PATIENCE: Duration = Duration::from_secs(1);
/// The most that the patience is doubled.
const MAX_DOUBLINGS: u32 = 16;

/// A turn, and how long it is kept from others.
pub(crate) struct Shift {
    turn: FairTurn,
    patience: Duration,
}

impl Shift {
    /// Whether the work has to be given up for somebody else's; it is begun anew later.
    pub(crate) fn is_over(&self) -> bool {
        self.turn.is_due(self.patience)
    }
}

/// One thing that is made once, however many ask for it (a single flight).
#[derive(Debug)]
pub(crate) struct SingleFlight<T> {
    outcome: OnceLock<Result<T, Error>>,
    is_being_made: AtomicBool,
    /// The users who wait for a turn.
    queued: Mutex<HashSet<String>>,
    n_given_up: AtomicU32,
    changed: Notify,
}

impl<T> Default for SingleFlight<T> {
    fn default() -> Self {
        Self {
            outcome: OnceLock::new(),
            is_being_made: AtomicBool::new(false),
            queued: Mutex::default(),
            n_given_up: AtomicU32::new(0),
            changed: Notify::new(),
        }
    }
}

impl<T> SingleFlight<T> {
    /// What is there.
    pub(crate) fn get(&self) -> Option<&Result<T, Error>> {
        self.outcome.get()
    }

    /// True where it was made, and well.
    pub(crate) fn is_made(&self) -> bool {
        self.get().is_some_and(Result::is_ok)
    }
}

impl<T: Clone> SingleFlight<T> {
    /// Puts something there, where nothing is, and gives what is there.
    pub(crate) fn settle(&self, outcome: Result<T, Error>) -> Result<T, Error> {
        let outcome = self.outcome.get_or_init(|| outcome).clone();
        self.changed.notify_waiters();
        outcome
    }

    /// What is there, or what `make` makes in a turn of `user`; `make` gives none where its shift was over. What
    /// somebody else makes meanwhile is waited for without a turn.
    pub(crate) async fn made<F>(
        &self,
        turns: &Arc<FairTurns>,
        user: &str,
        make: impl Fn(Shift) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Option<Result<T, Error>>>,
    {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(outcome) = self.get() {
                return outcome.clone();
            }
            let queued = if self.is_settling() {
                None
            } else {
                self.queue(user)
            };
            let Some(queued) = queued else {
                changed.await;
                continue;
            };
            let Some(turn) = self.turn(turns, user).await? else {
                continue;
            };
            drop(queued);
            let Some(making) = self.begin() else {
                continue;
            };
            let n_given_up = self.n_given_up.load(Ordering::Relaxed);
            let patience = PATIENCE * (1 << n_given_up.min(MAX_DOUBLINGS));
            match make(Shift { turn, patience }).await {
                Some(outcome) => return self.settle(outcome),
                None => drop(self.n_given_up.fetch_add(1, Ordering::Relaxed)),
            }
            drop(making);
        }
    }

    /// Whether somebody makes it, or has made it.
    fn is_settling(&self) -> bool {
        self.is_being_made.load(Ordering::Acquire) || self.get().is_some()
    }

    /// A turn of `user`; none where somebody else begins to make it before.
    async fn turn(&self, turns: &Arc<FairTurns>, user: &str) -> Result<Option<FairTurn>, Error> {
        let mut turn = pin!(turns.take(user));
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.is_settling() {
                return Ok(None);
            }
            tokio::select! {
                biased;
                () = changed => {}
                turn = &mut turn => return turn.map(Some),
            }
        }
    }

    /// Enters the queue for a user; none where they are in it already.
    fn queue<'a>(&'a self, user: &'a str) -> Option<Queued<'a, T>> {
        let is_new = lock(&self.queued).insert(user.to_owned());
        is_new.then(|| Queued(self, user))
    }

    /// Begins to make it; none where somebody else does.
    fn begin(&self) -> Option<Making<'_, T>> {
        if self.is_being_made.swap(true, Ordering::AcqRel) {
            return None;
        }
        self.changed.notify_waiters();
        Some(Making(self))
    }
}

/// The wait of a user for a turn; where it ends without one, another launch of theirs waits on.
struct Queued<'a, T>(&'a SingleFlight<T>, &'a str);

impl<T> Drop for Queued<'_, T> {
    fn drop(&mut self) {
        lock(&self.0.queued).remove(self.1);
        self.0.changed.notify_waiters();
    }
}

/// Ends with the work, also where that is given up.
struct Making<'a, T>(&'a SingleFlight<T>);

impl<T> Drop for Making<'_, T> {
    fn drop(&mut self) {
        self.0.is_being_made.store(false, Ordering::Release);
        self.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    /// Lets a future wait for what it waits for.
    async fn pending<F: Future + Unpin>(future: &mut F) {
        std::future::poll_fn(|context| {
            assert!(std::pin::Pin::new(&mut *future).poll(context).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
    }

    #[tokio::test]
    async fn it_is_made_once_and_nobody_holds_a_turn_for_it_meanwhile() {
        let (turns, flight) = (FairTurns::new(2), SingleFlight::<u32>::default());
        let (finish, finished) = oneshot::channel();
        let finished = Mutex::new(Some(finished));
        let mut first = Box::pin(flight.made(&turns, "a", |shift| {
            let finished = lock(&finished).take();
            async move {
                let value = finished.unwrap().await.unwrap();
                drop(shift);
                Some(Ok(value))
            }
        }));
        pending(&mut first).await;
        let mut second =
            Box::pin(flight.made(&turns, "b", |_| async { panic!("it is made already") }));
        pending(&mut second).await;
        assert_eq!(turns.n_waiting_of("b"), 0);
        drop(turns.take("c").await.unwrap());
        finish.send(7).unwrap();
        assert_eq!(first.await.unwrap(), 7);
        assert_eq!(second.await.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_user_waits_for_one_turn_however_often_they_ask() {
        let (turns, flight) = (FairTurns::new(1), SingleFlight::<u32>::default());
        let busy = turns.take("b").await.unwrap();
        let ask = || Box::pin(flight.made(&turns, "a", |_| async { Some(Ok(1)) }));
        let (mut first, mut second) = (ask(), ask());
        pending(&mut first).await;
        pending(&mut second).await;
        assert_eq!(turns.n_waiting_of("a"), 1);
        drop(first);
        pending(&mut second).await;
        assert_eq!(turns.n_waiting_of("a"), 1);
        drop(busy);
        assert_eq!(second.await.unwrap(), 1);
    }

    #[tokio::test]
    async fn what_is_given_up_is_made_by_who_waits() {
        let (turns, flight) = (FairTurns::new(1), SingleFlight::<u32>::default());
        let mut first = Box::pin(flight.made(&turns, "a", |shift| async move {
            let _shift = shift;
            std::future::pending().await
        }));
        pending(&mut first).await;
        let mut second = Box::pin(flight.made(&turns, "b", |_| async { Some(Ok(2)) }));
        pending(&mut second).await;
        drop(first);
        assert_eq!(second.await.unwrap(), 2);
    }

    #[tokio::test]
    async fn a_shift_that_is_over_leaves_the_turn_to_others_and_gets_another_one() {
        let (turns, flight) = (FairTurns::new(1), SingleFlight::<u32>::default());
        let tries = AtomicU32::new(0);
        let made = flight.made(&turns, "a", |shift| {
            let n = tries.fetch_add(1, Ordering::Relaxed);
            drop(shift);
            async move { (n == 2).then_some(Ok(n)) }
        });
        assert_eq!(made.await.unwrap(), 2);
        assert_eq!(flight.n_given_up.load(Ordering::Relaxed), 2);
    }
}
