//! Turns at something scarce, in fairness between users: who has asked for less is not kept waiting by who has asked for more.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use pie_core::ErrorCode;
use tokio::sync::oneshot;

use crate::Error;
use crate::sync::lock;

/// Turns that one user may wait for at once, and all users together.
const MAX_WAITING_OF_USER: usize = 64;
const MAX_WAITING: usize = 1024;

/// A bounded number of turns at once; users take them one after the other, each in the order in which they asked.
#[derive(Debug)]
pub(crate) struct Turns {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    n_free: usize,
    n_waiting: usize,
    /// The users who wait, the one whose turn is next first.
    users: VecDeque<(String, VecDeque<oneshot::Sender<Turn>>)>,
}

/// A turn; dropping it gives it to whoever is next.
#[derive(Debug)]
pub(crate) struct Turn(Option<Arc<Turns>>);

impl Turns {
    /// `n` turns at once.
    pub(crate) fn new(n: usize) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                n_free: n,
                n_waiting: 0,
                users: VecDeque::new(),
            }),
        })
    }

    /// Waits for a turn of `user`. Dropping the future gives the place up.
    ///
    /// # Errors
    /// `limit-queue` where too many wait.
    pub(crate) async fn take(self: &Arc<Self>, user: &str) -> Result<Turn, Error> {
        let receiver = {
            let mut state = lock(&self.state);
            state.forget_gone();
            if state.n_free > 0 {
                state.n_free -= 1;
                return Ok(Turn(Some(self.clone())));
            }
            state.wait(user)?
        };
        receiver.await.map_err(Error::internal)
    }
}

#[cfg(test)]
impl Turns {
    /// Turns that a user waits for.
    pub(crate) fn n_waiting_of(&self, user: &str) -> usize {
        let state = lock(&self.state);
        let mut users = state.users.iter();
        users
            .find(|(other, _)| other == user)
            .map_or(0, |(_, waiters)| waiters.len())
    }
}

impl State {
    fn wait(&mut self, user: &str) -> Result<oneshot::Receiver<Turn>, Error> {
        let place = self.users.iter().position(|(other, _)| other == user);
        let n_of_user = place.map_or(0, |place| self.users[place].1.len());
        if n_of_user >= MAX_WAITING_OF_USER || self.n_waiting >= MAX_WAITING {
            return Err(Error::new(
                ErrorCode::LimitQueue,
                format!(
                    "{n_of_user} programs of this user and {} in all wait to be compiled, of at most {MAX_WAITING_OF_USER} and {MAX_WAITING}; come back when some are done",
                    self.n_waiting
                ),
            ));
        }
        let (sender, receiver) = oneshot::channel();
        match place {
            Some(place) => self.users[place].1.push_back(sender),
            None => self.users.push_back((user.to_owned(), [sender].into())),
        }
        self.n_waiting += 1;
        Ok(receiver)
    }

    /// Takes the next waiter out.
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        let (user, mut waiters) = self.users.pop_front()?;
        let next = waiters.pop_front();
        self.n_waiting -= usize::from(next.is_some());
        if !waiters.is_empty() {
            self.users.push_back((user, waiters));
        }
        next
    }

    /// Forgets those who have given up.
    fn forget_gone(&mut self) {
        for (_, waiters) in &mut self.users {
            waiters.retain(|waiter| !waiter.is_closed());
        }
        self.users.retain(|(_, waiters)| !waiters.is_empty());
        self.n_waiting = self.users.iter().map(|(_, waiters)| waiters.len()).sum();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(turns) = self.0.take() else {
            return;
        };
        loop {
            let mut state = lock(&turns.state);
            let Some(next) = state.next() else {
                state.n_free += 1;
                return;
            };
            drop(state);
            // A waiter that has gone gives the turn back, emptied here so that its drop does not pass it on a second time.
            match next.send(Turn(Some(turns.clone()))) {
                Ok(()) => return,
                Err(mut back) => drop(back.0.take()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The users in the order in which they get their turns.
    async fn order(turns: &Arc<Turns>, users: &[&'static str]) -> Vec<&'static str> {
        let first = turns.take("first").await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for &user in users {
            let (turns, order) = (turns.clone(), order.clone());
            let mut waiter = Box::pin(async move {
                let turn = turns.take(user).await.unwrap();
                lock(&order).push(user);
                drop(turn);
            });
            // Each takes its place before the next one asks.
            std::future::poll_fn(|context| {
                assert!(waiter.as_mut().poll(context).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
            waiting.push(tokio::spawn(waiter));
        }
        drop(first);
        for waiter in waiting {
            waiter.await.unwrap();
        }
        Arc::into_inner(order).unwrap().into_inner().unwrap()
    }

    #[tokio::test]
    async fn users_take_turns() {
        let turns = Turns::new(1);
        let got = order(&turns, &["a", "a", "a", "b", "c", "b"]).await;
        assert_eq!(got, ["a", "b", "c", "a", "b", "a"]);
        assert_eq!(lock(&turns.state).n_free, 1);
    }

    #[tokio::test]
    async fn who_gives_up_is_passed_over() {
        let turns = Turns::new(1);
        let first = turns.take("a").await.unwrap();
        {
            let mut gone = Box::pin(turns.take("b"));
            std::future::poll_fn(|context| {
                assert!(gone.as_mut().poll(context).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
        }
        drop(first);
        drop(turns.take("c").await.unwrap());
        assert_eq!(lock(&turns.state).n_free, 1);
    }

    #[tokio::test]
    async fn those_who_wait_are_bounded() {
        let turns = Turns::new(0);
        let mut waiting = Vec::new();
        for _ in 0..MAX_WAITING_OF_USER {
            waiting.push(lock(&turns.state).wait("a").unwrap());
        }
        let error = turns.take("a").await.unwrap_err();
        assert_eq!(error.code, ErrorCode::LimitQueue);
        drop(lock(&turns.state).wait("b").unwrap());
    }
}
