//! How users stand to each other in the time of the threads that run programs.
//!
//! Half of that time is promised: each user that has used some of late gets an equal part of it. Who takes more than
//! its part is handed to the background until it has credit again, so that a storm of short programs, none of which
//! computes for long, holds up nobody else's. Nobody is promised anything, or held back, where there is one user.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::sync::lock;

/// The part of the time of the threads that is promised; with more, who has credit would wait long for those who have
/// it too.
const PROMISED: f64 = 0.5;
/// The most credit that is saved up.
const MAX_CREDIT: Duration = Duration::from_millis(20);
/// The most that is owed: what a user did before others came is soon forgotten.
const MAX_DEBT: Duration = Duration::from_millis(200);
/// How long it counts that a user has used time.
const RECENT: Duration = Duration::from_secs(1);
/// How often users are counted.
const COUNT_EVERY: Duration = Duration::from_millis(100);
/// Users beyond whom those are forgotten that have no process and owe nothing.
const MAX_IDLE: usize = 256;

/// All users of a host.
#[derive(Debug)]
pub(crate) struct Standings {
    users: Mutex<HashMap<String, Arc<Standing>>>,
    shared: Arc<Part>,
}

/// What a user is promised, which is the same for all.
#[derive(Debug)]
struct Part {
    began: Instant,
    n_threads: f64,
    /// Nanoseconds of processor time within a second; 0: there is one user.
    ns_per_s: AtomicU64,
    /// Nanoseconds since `began` at which users were counted.
    counted_ns: AtomicU64,
}

/// One user.
#[derive(Debug)]
pub(crate) struct Standing {
    shared: Arc<Part>,
    /// Nanoseconds since the beginning at which it used time last; 0: never.
    spent_ns: AtomicU64,
    /// It owed something when it used time last. As long as it uses none it only earns.
    owed: AtomicBool,
    credit: Mutex<Credit>,
}

#[derive(Debug)]
struct Credit {
    /// Nanoseconds; what is owed is negative.
    ns: f64,
    at: Instant,
}

impl Standings {
    /// Those of a host with so many threads.
    pub(crate) fn new(n_threads: usize) -> Self {
        Self {
            users: Mutex::default(),
            shared: Arc::new(Part {
                began: Instant::now(),
                n_threads: n_threads as f64,
                ns_per_s: AtomicU64::new(0),
                counted_ns: AtomicU64::new(0),
            }),
        }
    }

    /// That of a user.
    pub(crate) fn of(&self, user: &str) -> Arc<Standing> {
        let now = Instant::now();
        let mut users = lock(&self.users);
        if let Some(standing) = users.get(user) {
            return standing.clone();
        }
        if users.len() >= MAX_IDLE {
            users.retain(|_, standing| Arc::strong_count(standing) > 1 || standing.owes_at(now));
        }
        let standing = Arc::new(Standing::new(self.shared.clone(), now));
        users.insert(user.to_owned(), standing.clone());
        standing
    }

    /// Counts the users, where that is due.
    pub(crate) fn count(&self, now: Instant) {
        let now_ns = self.shared.since_began_ns(now);
        let counted_ns = self.shared.counted_ns.load(Ordering::Relaxed);
        if now_ns < counted_ns.saturating_add(COUNT_EVERY.as_nanos() as u64) {
            return;
        }
        self.shared.counted_ns.store(now_ns, Ordering::Relaxed);
        let n_users = lock(&self.users)
            .values()
            .filter(|standing| standing.is_recent(now))
            .count();
        let ns_per_s = match n_users {
            0 | 1 => 0,
            _ => (1e9 * PROMISED * self.shared.n_threads / n_users as f64) as u64,
        };
        self.shared.ns_per_s.store(ns_per_s, Ordering::Relaxed);
    }
}

impl Part {
    fn since_began_ns(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.began).as_nanos()).unwrap_or(u64::MAX)
    }

    /// Whether there is one user, to whom nothing is promised.
    fn is_alone(&self) -> bool {
        self.ns_per_s.load(Ordering::Relaxed) == 0
    }
}

impl Standing {
    fn new(shared: Arc<Part>, now: Instant) -> Self {
        let credit = Credit {
            ns: MAX_CREDIT.as_nanos() as f64,
            at: now,
        };
        Self {
            shared,
            spent_ns: AtomicU64::new(0),
            owed: AtomicBool::new(false),
            credit: Mutex::new(credit),
        }
    }

    /// Its programs have used so much time of the foreground, or of the threads that work on their files.
    pub(crate) fn spend(&self, used: Duration, now: Instant) {
        let now_ns = self.shared.since_began_ns(now).max(1);
        self.spent_ns.store(now_ns, Ordering::Relaxed);
        // Whoever is alone and owes nothing needs no account: every program of the host would wait for its lock.
        if self.shared.is_alone() && !self.owed.load(Ordering::Relaxed) {
            return;
        }
        let mut credit = lock(&self.credit);
        self.earn(&mut credit, now);
        credit.ns -= used.as_nanos() as f64;
        credit.ns = credit.ns.max(-(MAX_DEBT.as_nanos() as f64));
        self.owed.store(credit.ns < 0.0, Ordering::Relaxed);
    }

    /// Whether it has used more than its part, and others have to be thought of.
    pub(crate) fn owes(&self) -> bool {
        self.owed.load(Ordering::Relaxed) && self.owes_at(Instant::now())
    }

    fn owes_at(&self, now: Instant) -> bool {
        let mut credit = lock(&self.credit);
        self.earn(&mut credit, now);
        self.owed.store(credit.ns < 0.0, Ordering::Relaxed);
        credit.ns < 0.0
    }

    fn earn(&self, credit: &mut Credit, now: Instant) {
        let most = MAX_CREDIT.as_nanos() as f64;
        let passed_s = now.saturating_duration_since(credit.at).as_secs_f64();
        credit.ns = match self.shared.ns_per_s.load(Ordering::Relaxed) {
            0 => most,
            ns_per_s => (credit.ns + passed_s * ns_per_s as f64).min(most),
        };
        credit.at = now;
    }

    fn is_recent(&self, now: Instant) -> bool {
        let spent_ns = self.spent_ns.load(Ordering::Relaxed);
        let now_ns = self.shared.since_began_ns(now);
        spent_ns > 0 && now_ns.saturating_sub(spent_ns) < RECENT.as_nanos() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Whether a user owes, after it has used `used` in each of a hundred steps of 10 ms beside others who use
    /// `others`.
    fn owes_beside(n_others: u32, used: Duration, others: Duration) -> bool {
        let standings = Standings::new(2);
        let mut now = Instant::now();
        let one = standings.of("one");
        let rest: Vec<_> = (0..n_others)
            .map(|n| standings.of(&n.to_string()))
            .collect();
        for _ in 0..100 {
            now += 10 * MS;
            one.spend(used, now);
            rest.iter().for_each(|user| user.spend(others, now));
            standings.count(now);
        }
        one.owes_at(now)
    }

    #[test]
    fn alone_a_user_owes_nothing() {
        assert!(!owes_beside(0, 20 * MS, MS));
    }

    #[test]
    fn beside_others_it_owes_what_is_beyond_its_part() {
        // Half of two threads among ten: a tenth of one.
        assert!(!owes_beside(9, MS * 9 / 10, 2 * MS));
        assert!(owes_beside(9, MS * 13 / 10, MS / 100));
    }

    #[test]
    fn what_is_owed_is_forgotten_in_time() {
        let standings = Standings::new(2);
        let (greedy, other) = (standings.of("greedy"), standings.of("other"));
        let mut now = Instant::now() + COUNT_EVERY;
        for _ in 0..100 {
            now += COUNT_EVERY;
            greedy.spend(COUNT_EVERY, now);
            other.spend(MS, now);
            standings.count(now);
        }
        assert!(greedy.owes_at(now));
        assert!(!other.owes_at(now));
        // 200 ms at half a thread.
        assert!(!greedy.owes_at(now + 401 * MS));
    }

    #[test]
    fn what_was_owed_or_used_counts_for_nothing_alone() {
        let standings = Standings::new(2);
        let (greedy, other) = (standings.of("greedy"), standings.of("other"));
        let mut now = Instant::now() + COUNT_EVERY;
        let beside = |now: &mut Instant| {
            for _ in 0..3 {
                *now += COUNT_EVERY;
                greedy.spend(COUNT_EVERY, *now);
                other.spend(MS, *now);
                standings.count(*now);
            }
        };
        let alone = |now: &mut Instant| {
            for _ in 0..20 {
                *now += COUNT_EVERY;
                greedy.spend(MS, *now);
                standings.count(*now);
            }
        };
        beside(&mut now);
        assert!(greedy.owes_at(now));
        alone(&mut now);
        assert!(!greedy.owes_at(now) && !greedy.owes());
        // The first time beside somebody is covered by what every user is credited with.
        now += COUNT_EVERY;
        other.spend(MS, now);
        standings.count(now);
        greedy.spend(MS, now);
        assert!(!greedy.owes_at(now));
        beside(&mut now);
        assert!(greedy.owes_at(now));
    }

    #[test]
    fn those_who_have_gone_and_owe_nothing_are_forgotten() {
        let standings = Standings::new(2);
        let stays = standings.of("stays");
        for n in 0..4 * MAX_IDLE {
            drop(standings.of(&n.to_string()));
        }
        assert!(lock(&standings.users).len() <= MAX_IDLE);
        assert!(Arc::ptr_eq(&stays, &standings.of("stays")));
    }
}
