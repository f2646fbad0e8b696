//! Turns at something scarce, shared fairly between users: a user who has used less of it comes before one who has used
//! more.
//!
//! What a user has used is the time of the turns held, of which a half is forgotten each minute; what a user has waited
//! since the last turn counts against it. So who has used ten seconds goes behind those who have used none and asked up
//! to ten seconds later, and not behind whatever new users come after them. Of those who have used about as much, each
//! gets a turn in the order in which they asked. One user never holds all turns, so that whoever
//! comes next finds one; and a turn that has been held for long can ask whether somebody waits who has used less
//! ([`FairTurn::is_due`]).

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pie_core::ErrorCode;
use tokio::sync::oneshot;

use crate::Error;
use crate::sync::lock;

/// Turns that may be waited for at once, where nothing else bounds them.
const ROOM: Room = Room {
    of_user: 256,
    of_all: 1024,
};
/// Where more wait, it would take long to look for those who have given up: they are passed over when they come next.
const MANY: usize = 1024;
/// The time in which a half of what was used is forgotten.
const HALF_LIFE_S: f64 = 60.0;
/// Seconds that do not count as a difference between two users.
const GRAIN_S: f64 = 0.05;
/// Users whose use is remembered; beyond, the half that has used the least is forgotten.
const MAX_USERS: usize = 4096;

/// A bounded number of turns at once, given to users by what they have used.
#[derive(Debug)]
pub(crate) struct FairTurns {
    state: Mutex<State>,
}

/// How many turns may be waited for at once.
#[derive(Clone, Copy, Debug)]
struct Room {
    of_user: usize,
    of_all: usize,
}

#[derive(Debug)]
struct State {
    n_free: usize,
    room: Room,
    /// Turns that one user holds at most.
    most_of_user: usize,
    n_waiting: usize,
    /// The users who wait; of those who have used as much, the first is next.
    users: VecDeque<Waiting>,
    /// Turns that each user holds.
    held: HashMap<Arc<str>, usize>,
    used: Used,
}

/// A user who waits for turns.
#[derive(Debug)]
struct Waiting {
    user: Arc<str>,
    /// Since when, or since the last turn.
    since: Instant,
    waiters: VecDeque<Waiter>,
}

type Waiter = oneshot::Sender<FairTurn>;

/// The seconds that users have used lately.
#[derive(Debug, Default)]
struct Used(HashMap<Arc<str>, (f64, Instant)>);

/// A turn; dropping it gives it to whoever is next.
#[derive(Debug)]
pub(crate) struct FairTurn {
    /// None once it has been given back.
    turns: Option<Arc<FairTurns>>,
    user: Arc<str>,
    since: Instant,
}

impl FairTurns {
    /// `n` turns at once, of which one user holds all but one; the only one, where there is no other.
    pub(crate) fn new(n: usize) -> Arc<Self> {
        Self::with_room(n, ROOM)
    }

    /// The same, for what is bounded elsewhere: nobody who waits is refused.
    pub(crate) fn with_any_room(n: usize) -> Arc<Self> {
        let room = Room {
            of_user: usize::MAX,
            of_all: usize::MAX,
        };
        Self::with_room(n, room)
    }

    fn with_room(n: usize, room: Room) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                n_free: n,
                room,
                most_of_user: n.saturating_sub(1).max(1),
                n_waiting: 0,
                users: VecDeque::new(),
                held: HashMap::new(),
                used: Used::default(),
            }),
        })
    }

    /// Waits for a turn of `user`. Dropping the future gives the place up.
    ///
    /// # Errors
    /// `limit-queue` where too many wait.
    pub(crate) async fn take(self: &Arc<Self>, user: &str) -> Result<FairTurn, Error> {
        let receiver = lock(&self.state).wait(user)?;
        self.give();
        receiver.await.map_err(Error::internal)
    }

    /// Gives what is free to those who are next.
    fn give(self: &Arc<Self>) {
        loop {
            let mut state = lock(&self.state);
            let Some((user, waiter)) = state.next() else {
                return;
            };
            drop(state);
            let turn = FairTurn {
                turns: Some(self.clone()),
                user,
                since: Instant::now(),
            };
            // The turn of a waiter that has gone is free again.
            if let Err(mut turn) = waiter.send(turn) {
                turn.turns = None;
                lock(&self.state).free(&turn.user);
            }
        }
    }
}

impl FairTurn {
    /// Whether it should be given up for somebody else: it was held for `patience`, and a user who has used less waits.
    pub(crate) fn is_due(&self, patience: Duration) -> bool {
        let held = self.since.elapsed();
        let Some(turns) = self.turns.as_ref().filter(|_| held >= patience) else {
            return false;
        };
        let mut state = lock(&turns.state);
        state.forget_gone();
        let now = Instant::now();
        let used = state.used.at(&self.user, now) + held.as_secs_f64();
        state.n_free == 0
            && state.users.iter().any(|Waiting { user, .. }| {
                *user != self.user && state.may_hold(user) && state.used.at(user, now) < used
            })
    }
}

impl State {
    fn wait(&mut self, user: &str) -> Result<oneshot::Receiver<FairTurn>, Error> {
        if self.n_waiting <= MANY {
            self.forget_gone();
        }
        let place = self.users.iter().position(|waiting| &*waiting.user == user);
        let n_of_user = place.map_or(0, |place| self.users[place].waiters.len());
        let Room { of_user, of_all } = self.room;
        if n_of_user >= of_user || self.n_waiting >= of_all {
            return Err(Error::new(
                ErrorCode::LimitQueue,
                format!(
                    "{n_of_user} calls of this user and {} in all wait for their turns, of at most {of_user} and {of_all}; \
                     come back when some are done",
                    self.n_waiting
                ),
            ));
        }
        let (sender, receiver) = oneshot::channel();
        match place {
            Some(place) => self.users[place].waiters.push_back(sender),
            None => self.users.push_back(Waiting {
                user: user.into(),
                since: Instant::now(),
                waiters: [sender].into(),
            }),
        }
        self.n_waiting += 1;
        Ok(receiver)
    }

    fn may_hold(&self, user: &str) -> bool {
        self.held.get(user).copied().unwrap_or_default() < self.most_of_user
    }

    /// Takes the next waiter out, and a turn for it.
    fn next(&mut self) -> Option<(Arc<str>, Waiter)> {
        if self.n_free == 0 {
            return None;
        }
        let now = Instant::now();
        let cost = |waiting: &Waiting| {
            let waited = now.saturating_duration_since(waiting.since).as_secs_f64();
            ((self.used.at(&waiting.user, now) - waited) / GRAIN_S).floor()
        };
        let (place, _) = self
            .users
            .iter()
            .enumerate()
            .filter(|(_, waiting)| self.may_hold(&waiting.user))
            .min_by(|(_, one), (_, other)| cost(one).total_cmp(&cost(other)))?;
        let Waiting {
            user, mut waiters, ..
        } = self.users.remove(place)?;
        let next = waiters.pop_front()?;
        self.n_waiting -= 1;
        if !waiters.is_empty() {
            self.users.push_back(Waiting {
                user: user.clone(),
                since: now,
                waiters,
            });
        }
        self.n_free -= 1;
        *self.held.entry(user.clone()).or_default() += 1;
        Some((user, next))
    }

    /// Takes a turn of a user back.
    fn free(&mut self, user: &str) {
        self.n_free += 1;
        if let Some(n) = self.held.get_mut(user) {
            *n -= 1;
            if *n == 0 {
                self.held.remove(user);
            }
        }
    }

    /// Forgets those who have given up.
    fn forget_gone(&mut self) {
        for waiting in &mut self.users {
            waiting.waiters.retain(|waiter| !waiter.is_closed());
        }
        self.users.retain(|waiting| !waiting.waiters.is_empty());
        let each = self.users.iter();
        self.n_waiting = each.map(|waiting| waiting.waiters.len()).sum();
    }
}

impl Used {
    /// What a user has used, as seen at a time.
    fn at(&self, user: &str, now: Instant) -> f64 {
        let Some((seconds, then)) = self.0.get(user) else {
            return 0.0;
        };
        seconds * (-now.saturating_duration_since(*then).as_secs_f64() / HALF_LIFE_S).exp2()
    }

    fn add(&mut self, user: &Arc<str>, seconds: f64, now: Instant) {
        let seconds = self.at(user, now) + seconds;
        self.0.insert(user.clone(), (seconds, now));
        if self.0.len() <= MAX_USERS {
            return;
        }
        let mut all: Vec<_> = self.0.drain().collect();
        all.sort_by(|(_, (one, _)), (_, (other, _))| other.total_cmp(one));
        all.truncate(MAX_USERS / 2);
        self.0.extend(all);
    }
}

impl Drop for FairTurn {
    fn drop(&mut self) {
        let Some(turns) = self.turns.take() else {
            return;
        };
        let mut state = lock(&turns.state);
        state.free(&self.user);
        let now = Instant::now();
        let seconds = now.saturating_duration_since(self.since).as_secs_f64();
        state.used.add(&self.user, seconds, now);
        drop(state);
        turns.give();
    }
}

#[cfg(test)]
impl FairTurns {
    /// Turns that a user waits for.
    pub(crate) fn n_waiting_of(&self, user: &str) -> usize {
        let state = lock(&self.state);
        let mut users = state.users.iter();
        users
            .find(|waiting| &*waiting.user == user)
            .map_or(0, |waiting| waiting.waiters.len())
    }

    /// Makes a user one who has used so many seconds.
    pub(crate) fn use_up(&self, user: &str, seconds: f64) {
        lock(&self.state)
            .used
            .add(&user.into(), seconds, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts a user into the queue, and gives what waits.
    async fn queued(
        turns: &Arc<FairTurns>,
        user: &'static str,
    ) -> std::pin::Pin<Box<impl Future<Output = Result<FairTurn, Error>> + use<>>> {
        let turns = turns.clone();
        let mut waiter = Box::pin(async move { turns.take(user).await });
        std::future::poll_fn(|context| {
            assert!(waiter.as_mut().poll(context).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        waiter
    }

    /// The users in the order in which they get their turns.
    async fn order(turns: &Arc<FairTurns>, users: &[&'static str]) -> Vec<&'static str> {
        let first = turns.take("first").await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for &user in users {
            // Each takes its place before the next one asks.
            let waiter = queued(turns, user).await;
            let order = order.clone();
            waiting.push(tokio::spawn(async move {
                let turn = waiter.await.unwrap();
                lock(&order).push(user);
                drop(turn);
            }));
        }
        drop(first);
        for waiter in waiting {
            waiter.await.unwrap();
        }
        Arc::into_inner(order).unwrap().into_inner().unwrap()
    }

    #[tokio::test]
    async fn users_take_turns() {
        let turns = FairTurns::new(1);
        let got = order(&turns, &["a", "a", "a", "b", "c", "b"]).await;
        assert_eq!(got, ["a", "b", "c", "a", "b", "a"]);
        assert_eq!(lock(&turns.state).n_free, 1);
    }

    #[tokio::test]
    async fn who_has_used_more_waits_for_those_who_have_used_less() {
        let turns = FairTurns::new(1);
        turns.use_up("a", 30.0);
        turns.use_up("b", 5.0);
        let got = order(&turns, &["a", "a", "b", "b", "c", "c"]).await;
        assert_eq!(got, ["c", "c", "b", "b", "a", "a"]);
    }

    /// Names that nobody has heard of have used nothing, and anybody can make them up.
    #[tokio::test]
    async fn who_has_waited_as_long_as_it_has_used_comes_before_new_users() {
        let turns = FairTurns::new(1);
        turns.use_up("honest", 10.0);
        let first = turns.take("first").await.unwrap();
        let honest = queued(&turns, "honest").await;
        let (early, late) = (queued(&turns, "new 1").await, queued(&turns, "new 2").await);
        // The honest user asked 8 s before the first new one, and 12 s before the second.
        let ago = |seconds| {
            Instant::now()
                .checked_sub(Duration::from_secs(seconds))
                .unwrap()
        };
        for (waiting, seconds) in lock(&turns.state).users.iter_mut().zip([20, 12, 8]) {
            waiting.since = ago(seconds);
        }
        drop(first);
        let early = early.await.unwrap();
        drop(early);
        drop(honest.await.unwrap());
        drop(late.await.unwrap());
        assert_eq!(lock(&turns.state).n_free, 1);
    }

    #[tokio::test]
    async fn one_user_leaves_a_turn_to_the_others() {
        let turns = FairTurns::new(2);
        let first = turns.take("a").await.unwrap();
        let second = queued(&turns, "a").await;
        let other = turns.take("b").await.unwrap();
        drop(first);
        drop(second.await.unwrap());
        drop(other);
        assert_eq!(lock(&turns.state).n_free, 2);
        assert!(lock(&turns.state).held.is_empty());
    }

    #[tokio::test]
    async fn a_turn_is_due_when_somebody_who_has_used_less_waits() {
        let turns = FairTurns::new(1);
        turns.use_up("greedy", 9.0);
        turns.use_up("greedier", 90.0);
        let turn = turns.take("greedy").await.unwrap();
        let is_due = || {
            (
                turn.is_due(Duration::ZERO),
                turn.is_due(Duration::from_secs(3600)),
            )
        };
        let same = queued(&turns, "greedy").await;
        let more = queued(&turns, "greedier").await;
        assert_eq!(is_due(), (false, false));
        let less = queued(&turns, "modest").await;
        assert_eq!(is_due(), (true, false));
        drop(less);
        assert_eq!(is_due(), (false, false));
        drop((same, more));
    }

    #[test]
    fn what_was_used_is_forgotten_and_bounded() {
        let (mut used, start) = (Used::default(), Instant::now());
        used.add(&"a".into(), 8.0, start);
        let later = start + Duration::from_secs(120);
        assert!((used.at("a", later) - 2.0).abs() < 1e-9);
        for n in 0..2 * MAX_USERS {
            used.add(&format!("{n}").into(), 0.001, later);
        }
        assert!(used.0.len() <= MAX_USERS);
        assert!((used.at("a", later) - 2.0).abs() < 1e-9);
    }

    #[tokio::test]
    async fn who_gives_up_is_passed_over() {
        let turns = FairTurns::new(1);
        let first = turns.take("a").await.unwrap();
        drop(queued(&turns, "b").await);
        drop(first);
        drop(turns.take("c").await.unwrap());
        assert_eq!(lock(&turns.state).n_free, 1);
    }

    #[tokio::test]
    async fn those_who_wait_are_bounded() {
        let turns = FairTurns::new(0);
        let mut waiting = Vec::new();
        for _ in 0..ROOM.of_user {
            waiting.push(lock(&turns.state).wait("a").unwrap());
        }
        let error = turns.take("a").await.unwrap_err();
        assert_eq!(error.code, ErrorCode::LimitQueue);
        drop(lock(&turns.state).wait("b").unwrap());
    }

    #[test]
    fn where_something_else_bounds_them_nobody_is_refused() {
        let turns = FairTurns::with_any_room(0);
        let waiting: Vec<_> = (0..3 * MANY)
            .map(|_| lock(&turns.state).wait("a").unwrap())
            .collect();
        drop(waiting);
        drop(lock(&turns.state).wait("b").unwrap());
    }
}
