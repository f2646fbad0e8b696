//! Many producers and many pullers that die at every point: each message is delivered once, queued, or refused and
//! counted.
//!
//! `PIE_BUS_MESSAGES=10000000 cargo test --release -p pie-host --test host storm -- --nocapture` sends more than
//! `make test` does.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pie_host::{Account, Budget, Bus, BusLimits, BusSettingNames, ErrorCode};

const N_PRODUCERS: u64 = 64;
const N_PULLERS: u64 = 64;
/// How many messages there are without the variable.
const N_MESSAGES: u64 = 100_000;
const TOPIC: &str = "storm";

/// Few enough that pushes wait, and some in vain.
const LIMITS: BusLimits = BusLimits {
    message_bytes: 100,
    queue_messages: 100,
    queue_bytes: 10_000,
    user_bytes: 1 << 20,
    subscription_messages: 1,
    subscription_bytes: 1,
    topics: 1,
    subscriptions: 1,
    names: BusSettingNames::PLAIN,
};

struct Storm {
    bus: Bus,
    budget: Arc<Budget>,
    account: Account,
    n_refused: AtomicU64,
    n_deaths: AtomicU64,
    /// What each puller has taken, as (producer, number).
    taken: Vec<Mutex<Vec<(u64, u64)>>>,
}

/// Numbers from a seed, by splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % most
    }
}

impl Storm {
    fn new() -> Arc<Self> {
        let budget = Budget::new(64 << 20, None);
        Arc::new(Self {
            bus: Bus::new(LIMITS, Duration::from_millis(1), Duration::from_secs(3600)),
            account: budget.account("ada"),
            budget,
            n_refused: AtomicU64::new(0),
            n_deaths: AtomicU64::new(0),
            taken: (0..N_PULLERS).map(|_| Mutex::default()).collect(),
        })
    }

    async fn produce(&self, producer: u64, n_messages: u64) {
        for number in 0..n_messages {
            let text = format!("{producer} {number}");
            if let Err(error) = self.bus.push(&self.account, TOPIC, text).await {
                assert_eq!(error.code, ErrorCode::QueueFull, "{error}");
                self.n_refused.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Pulls without end. One pull in four dies: before it asks, while it waits, or, where others were fast, when a
    /// message has been promised to it.
    async fn pull(&self, puller: u64) {
        let mut random = Random(puller);
        loop {
            let mut pull = pin!(self.bus.pull(&self.account, TOPIC));
            let text = match random.below(12) {
                0 => None,
                n_turns @ 1..=2 => tokio::select! {
                    biased;
                    text = &mut pull => Some(text),
                    () = turns(n_turns) => None,
                },
                _ => Some(pull.await),
            };
            match text {
                Some(text) => lock(&self.taken[puller as usize]).push(numbers(&text.unwrap())),
                None => {
                    self.n_deaths.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// Takes what is left in the queue; gives how much it was.
    async fn drain(&self) -> u64 {
        let n_left = self.bus.stats().n_queued;
        for _ in 0..n_left {
            let text = self.bus.pull(&self.account, TOPIC).await;
            lock(&self.taken[0]).push(numbers(&text.unwrap()));
        }
        n_left
    }

    /// Every puller has got the messages of each producer in order; returns how many there were, each of them once.
    fn check_taken(&self, n_each: u64) -> u64 {
        let mut is_taken = vec![false; (N_PRODUCERS * n_each) as usize];
        for taken in &self.taken {
            let mut last = vec![None; N_PRODUCERS as usize];
            for (producer, number) in lock(taken).iter().copied() {
                let before = last[producer as usize].replace(number);
                assert!(before < Some(number), "{producer}: {before:?}, {number}");
                let place = (producer * n_each + number) as usize;
                assert!(!is_taken[place], "{producer} {number} was delivered twice");
                is_taken[place] = true;
            }
        }
        is_taken.iter().filter(|is_taken| **is_taken).count() as u64
    }
}

/// Lets others run, so often.
async fn turns(n: u64) {
    for _ in 0..n {
        tokio::task::yield_now().await;
    }
}

/// The producer and the number of a message.
fn numbers(text: &str) -> (u64, u64) {
    let (producer, number) = text.split_once(' ').unwrap();
    (producer.parse().unwrap(), number.parse().unwrap())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

fn n_messages() -> u64 {
    let given = std::env::var("PIE_BUS_MESSAGES").ok();
    given.map_or(N_MESSAGES, |text| text.parse().unwrap())
}

#[test]
fn in_a_storm_every_message_is_delivered_once_queued_or_refused() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_time()
        .worker_threads(4)
        .build()
        .unwrap();
    let (storm, began) = (Storm::new(), Instant::now());
    let n_each = n_messages().div_ceil(N_PRODUCERS);
    let n_left = runtime.block_on(async {
        let pullers: Vec<_> = (0..N_PULLERS)
            .map(|puller| {
                let storm = storm.clone();
                tokio::spawn(async move { storm.pull(puller).await })
            })
            .collect();
        let producers: Vec<_> = (0..N_PRODUCERS)
            .map(|producer| {
                let storm = storm.clone();
                tokio::spawn(async move { storm.produce(producer, n_each).await })
            })
            .collect();
        for producer in producers {
            producer.await.unwrap();
        }
        for puller in pullers {
            puller.abort();
            assert!(puller.await.unwrap_err().is_cancelled());
        }
        storm.drain().await
    });
    let n_taken = storm.check_taken(n_each);
    let stats = storm.bus.stats();
    let n_refused = storm.n_refused.load(Ordering::Relaxed);
    assert_eq!(n_taken + n_refused, N_PRODUCERS * n_each);
    assert_eq!(
        (stats.n_pushed, stats.n_pulled, stats.n_refused),
        (n_taken, n_taken, n_refused)
    );
    assert_eq!((stats.n_queued, stats.n_waiting_pulls), (0, 0));
    assert_eq!(storm.budget.held_bytes(), 0);
    println!(
        "{} messages in {:.1} s: {n_taken} delivered once, {n_left} of them from the queue at the end; {n_refused} refused and counted; {} pulls died",
        N_PRODUCERS * n_each,
        began.elapsed().as_secs_f64(),
        storm.n_deaths.load(Ordering::Relaxed)
    );
}
