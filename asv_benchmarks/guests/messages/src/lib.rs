//! Programs that send each other messages, and time them.

use std::time::Instant;

use inferlet::messaging::{self, Subscription};
use inferlet::prelude::*;
use inferlet::session;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Work {
    /// Pushes a message and waits for the answer, so often. Returns half of the median time in nanoseconds.
    Ping { n: usize, bytes: usize },
    /// Answers so many messages.
    Pong { n: usize },
    /// Pushes so many messages.
    Produce { n: usize, bytes: usize },
    /// Pulls so many messages. Returns the nanoseconds from the first to the last.
    Consume { n: usize },
    /// Broadcasts so many messages.
    Broadcast { n: usize, bytes: usize },
    /// Hears so many broadcasts. Returns the nanoseconds from the first to the last.
    Listen { n: usize },
}

#[inferlet::main]
async fn main(work: Work) -> Result<u64> {
    match work {
        Work::Ping { n, bytes } => ping(n, &"x".repeat(bytes)).await,
        Work::Pong { n } => {
            for _ in 0..n {
                let message = pulled("ping").await?;
                messaging::push("pong", &message)?;
            }
            Ok(0)
        }
        Work::Produce { n, bytes } => {
            let message = "x".repeat(bytes);
            for _ in 0..n {
                messaging::push("work", &message)?;
            }
            Ok(0)
        }
        Work::Consume { n } => {
            session::send("ready");
            pulled("work").await?;
            let first = Instant::now();
            for _ in 1..n {
                pulled("work").await?;
            }
            Ok(nanoseconds(first))
        }
        Work::Broadcast { n, bytes } => {
            let message = "x".repeat(bytes);
            for _ in 0..n {
                messaging::broadcast("news", &message)?;
            }
            Ok(0)
        }
        Work::Listen { n } => {
            let sub = messaging::subscribe("news");
            session::send("ready");
            heard(&sub).await?;
            let first = Instant::now();
            for _ in 1..n {
                heard(&sub).await?;
            }
            Ok(nanoseconds(first))
        }
    }
}

async fn ping(n: usize, message: &str) -> Result<u64> {
    let mut halves = Vec::with_capacity(n);
    for _ in 0..n {
        let sent = Instant::now();
        messaging::push("ping", message)?;
        pulled("pong").await?;
        halves.push(nanoseconds(sent) / 2);
    }
    halves.sort_unstable();
    Ok(halves[n / 2])
}

async fn pulled(topic: &str) -> Result<String> {
    let message = messaging::pull(topic).wait_async().await;
    message.ok_or_else(|| format!("there is no message of {topic}"))
}

async fn heard(sub: &Subscription) -> Result<String> {
    let message = sub.get_async().await;
    message.ok_or_else(|| "the subscription has ended".to_owned())
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
