//! The threads that serve connections, and the part of each user in them: whoever makes them work much waits for
//! others, and others do not wait for them.
//!
//! | a user has lately used | their tasks run |
//! |---|---|
//! | little | whenever a thread is free |
//! | more than [`FREE`], which fades by [`FADING`] | one at a time, in turns with all such users on [`N_BUSY`] threads |
//!
//! A task gives its thread back after a turn ([`TimeSlice`]), so what others wait for is a turn of each user who
//! begins, and none of those who run on. The right to run is held while a task runs and no longer: one that waits for
//! its client keeps nobody from anything.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::sync::lock;

/// Threads that serve connections; programs run on those of the host.
pub(crate) const N_THREADS: usize = 2;
/// Those of them that busy users have together. The others are for everybody else, and for clients that come.
const N_BUSY: usize = N_THREADS - 1;
/// Tasks that a thread runs between two looks at the sockets: with so many turns in between, what comes is seen within
/// a few milliseconds.
pub(crate) const LOOK_EVERY_TASKS: u32 = 8;
/// How long a task keeps a thread.
const TURN: Duration = Duration::from_micros(500);
/// What a user may use at once without waiting for others: a few turns.
const FREE: Duration = Duration::from_millis(2);
/// The part of a thread that a user may use for ever without waiting for others. The count of what they used falls by
/// so much.
const FADING: f64 = 1.0 / 64.0;
/// Users whose parts are known when they come again.
const MOST_KNOWN: usize = 1024;

/// Parts by the names of their users.
type Known = VecDeque<(String, Arc<Part>)>;

/// What busy users have of the threads.
#[derive(Clone, Debug)]
pub(crate) struct Threads {
    busy: Arc<Semaphore>,
    /// The parts of users who connected last, by name, the latest at the end: who leaves and comes again has used what
    /// it used before.
    known: Arc<Mutex<Known>>,
}

impl Threads {
    pub(crate) fn new() -> Self {
        Self {
            busy: Arc::new(Semaphore::new(N_BUSY)),
            known: Arc::default(),
        }
    }

    /// The part of a user.
    pub(crate) fn part(&self, user: &str) -> Arc<Part> {
        let mut known = lock(&self.known);
        let at = known.iter().position(|(name, _)| name == user);
        let part = match at.and_then(|at| known.remove(at)) {
            Some((_, part)) => part,
            None => Arc::new(Part {
                used: Mutex::default(),
                own: Arc::new(Semaphore::new(1)),
                busy: self.busy.clone(),
            }),
        };
        let now = Instant::now();
        known.retain(|(_, part)| Arc::strong_count(part) > 1 || part.is_used(now));
        if known.len() >= MOST_KNOWN {
            known.pop_front();
        }
        known.push_back((user.to_owned(), part.clone()));
        part
    }
}

/// The part of one user.
#[derive(Debug)]
pub(crate) struct Part {
    used: Mutex<Used>,
    /// Whoever has it is the one task of the user that waits among those of others, or runs.
    own: Arc<Semaphore>,
    /// Of all busy users.
    busy: Arc<Semaphore>,
}

/// What a user has used lately.
#[derive(Debug, Default)]
struct Used {
    time: Duration,
    /// When that was.
    at: Option<Instant>,
}

impl Used {
    fn fade(&mut self, now: Instant) {
        let since = self
            .at
            .map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        self.time = self.time.saturating_sub(since.mul_f64(FADING));
        self.at = Some(self.at.map_or(now, |at| at.max(now)));
    }
}

/// The right of a busy user's task to run.
type Right = (OwnedSemaphorePermit, OwnedSemaphorePermit);

impl Part {
    /// The work of a task of this user.
    pub(crate) fn doing<F: Future>(self: &Arc<Self>, work: F) -> Doing<F> {
        Doing {
            part: self.clone(),
            work: Box::pin(work),
            waiting: None,
        }
    }

    /// Whether something is left of what its user has used.
    fn is_used(&self, now: Instant) -> bool {
        let mut used = lock(&self.used);
        used.fade(now);
        !used.time.is_zero()
    }

    fn is_busy(&self, now: Instant) -> bool {
        let mut used = lock(&self.used);
        used.fade(now);
        used.time > FREE
    }

    fn add(&self, since: Instant) {
        let now = Instant::now();
        let mut used = lock(&self.used);
        used.fade(now);
        // What is remembered is bounded, so that whoever was busy for long is forgiven as soon as others.
        let time = used.time + now.saturating_duration_since(since);
        used.time = time.min(2 * FREE);
    }

    /// Waits for the right to run, first among the tasks of the user, then among the users. None once there are no
    /// threads any more.
    async fn right(self: Arc<Self>) -> Option<Right> {
        let own = self.own.clone().acquire_owned().await.ok()?;
        let busy = self.busy.clone().acquire_owned().await.ok()?;
        Some((own, busy))
    }

    fn right_at_once(&self) -> Option<Right> {
        let own = self.own.clone().try_acquire_owned().ok()?;
        let busy = self.busy.clone().try_acquire_owned().ok()?;
        Some((own, busy))
    }
}

/// Work that is done as the part of its user allows.
pub(crate) struct Doing<F> {
    part: Arc<Part>,
    work: Pin<Box<F>>,
    /// Waits for the right to run.
    waiting: Option<Pin<Box<dyn Future<Output = Option<Right>> + Send>>>,
}

impl<F: Future> Future for Doing<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        let began = Instant::now();
        let mut right = None;
        if let Some(waiting) = &mut this.waiting {
            right = ready!(waiting.as_mut().poll(context));
            this.waiting = None;
        } else if this.part.is_busy(began) {
            right = this.part.right_at_once();
            if right.is_none() {
                let waiting = this.waiting.insert(Box::pin(this.part.clone().right()));
                right = ready!(waiting.as_mut().poll(context));
                this.waiting = None;
            }
        }
        let began = Instant::now();
        let done = this.work.as_mut().poll(context);
        this.part.add(began);
        drop(right);
        done
    }
}

/// The time slice of long work: tells when its turn is over.
#[derive(Debug)]
pub(crate) struct TimeSlice {
    turn: Duration,
    began: Instant,
}

impl TimeSlice {
    pub(crate) fn new() -> Self {
        Self::of(TURN)
    }

    /// A slice of another length.
    pub(crate) fn of(turn: Duration) -> Self {
        Self {
            turn,
            began: Instant::now(),
        }
    }

    /// Lets others have their turn, where this one has been long enough. Work that waited meanwhile does so once too
    /// often.
    pub(crate) async fn pause(&mut self) {
        if self.began.elapsed() >= self.turn {
            to_the_end().await;
            self.began = Instant::now();
        }
    }
}

/// Goes to the end of the queue of tasks at once. `tokio::task::yield_now` would go there only after a look at the
/// sockets, and all tasks that others wake in the meantime would go first.
async fn to_the_end() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Computes for `time`, as a task that has much to do does in one turn.
    fn compute(time: Duration) {
        let began = Instant::now();
        while began.elapsed() < time {
            std::hint::spin_loop();
        }
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(N_THREADS)
            .enable_all()
            .build()
            .unwrap()
    }

    /// The part of a user who is busy for the next hour.
    fn busy(threads: &Threads) -> Arc<Part> {
        let n_known = lock(&threads.known).len();
        let part = threads.part(&n_known.to_string());
        *lock(&part.used) = Used {
            time: 2 * FREE,
            at: Some(Instant::now() + Duration::from_secs(3600)),
        };
        part
    }

    /// Computes in turns until it has had so many.
    async fn go_on(n_turns: usize, mut turn: impl FnMut()) {
        for _ in 0..n_turns {
            turn();
            to_the_end().await;
        }
    }

    #[test]
    fn who_comes_again_has_used_what_it_used_before() {
        let threads = Threads::new();
        let now = Instant::now();
        busy(&threads);
        assert!(threads.part("0").is_busy(now));
        assert!(!threads.part("another").is_busy(now));
        for n in 0..2 * MOST_KNOWN {
            drop(threads.part(&format!("user {n}")));
        }
        assert!(lock(&threads.known).len() <= MOST_KNOWN);
    }

    #[test]
    fn busy_users_leave_a_thread_to_the_others() {
        let threads = Threads::new();
        let (n_at_once, most_at_once) =
            (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let runtime = runtime();
        runtime.block_on(async {
            let mut tasks = Vec::new();
            for _user in 0..4 {
                let part = busy(&threads);
                for _connection in 0..4 {
                    let (n_at_once, most_at_once) = (n_at_once.clone(), most_at_once.clone());
                    let turn = move || {
                        let n = n_at_once.fetch_add(1, Ordering::SeqCst) + 1;
                        most_at_once.fetch_max(n, Ordering::SeqCst);
                        compute(TURN);
                        n_at_once.fetch_sub(1, Ordering::SeqCst);
                    };
                    tasks.push(tokio::spawn(part.doing(go_on(20, turn))));
                }
            }
            for task in tasks {
                task.await.unwrap();
            }
        });
        assert_eq!(most_at_once.load(Ordering::SeqCst), N_BUSY);
    }

    #[test]
    fn busy_users_take_turns_however_many_tasks_they_have() {
        let threads = Threads::new();
        let order = Arc::new(Mutex::new(Vec::new()));
        // One thread, so that the order is always the same.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let held = threads.busy.clone().acquire_owned().await.unwrap();
            let mut tasks = Vec::new();
            for (user, n_tasks) in [("many", 8), ("one", 1)] {
                let part = busy(&threads);
                for _ in 0..n_tasks {
                    let order = order.clone();
                    let turn = move || lock(&order).push(user);
                    tasks.push(tokio::spawn(part.doing(go_on(4, turn))));
                }
            }
            // All wait before the first one runs.
            tokio::time::sleep(Duration::from_millis(50)).await;
            drop(held);
            for task in tasks {
                task.await.unwrap();
            }
        });
        let order = lock(&order);
        let last_of_one = order.iter().rposition(|user| *user == "one").unwrap();
        assert!(last_of_one <= 20, "{order:?}");
    }

    #[test]
    fn a_task_that_waits_holds_up_none_of_its_user() {
        let threads = Threads::new();
        let part = busy(&threads);
        let runtime = runtime();
        runtime.block_on(async {
            let stuck = tokio::spawn(part.doing(std::future::pending::<()>()));
            tokio::spawn(part.doing(go_on(3, || compute(TURN))))
                .await
                .unwrap();
            stuck.abort();
        });
        assert_eq!(
            (
                part.own.available_permits(),
                threads.busy.available_permits()
            ),
            (1, N_BUSY)
        );
    }

    #[test]
    fn what_was_used_fades() {
        let part = Threads::new().part("ada");
        let start = Instant::now();
        assert!(!part.is_busy(start));
        *lock(&part.used) = Used {
            time: 2 * FREE,
            at: Some(start),
        };
        assert!(part.is_busy(start));
        assert!(!part.is_busy(start + 2 * FREE.div_f64(FADING)));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_turn_ends_once_it_was_long_enough() {
        let (mut short, mut long) = (
            TimeSlice::of(Duration::ZERO),
            TimeSlice::of(Duration::from_secs(3600)),
        );
        let is_pending = |turns: &mut TimeSlice| {
            let mut pause = std::pin::pin!(turns.pause());
            let mut context = Context::from_waker(std::task::Waker::noop());
            pause.as_mut().poll(&mut context).is_pending()
        };
        assert!(is_pending(&mut short));
        assert!(!is_pending(&mut long));
        short.pause().await;
    }
}
