//! A program that starts children, and times them.

use std::time::Instant;

use inferlet::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Work {
    /// Ends at once.
    Nothing,
    /// Starts and awaits so many children of that program, one after the other. Returns the nanoseconds that they took.
    Spawn { program: String, n: usize },
}

#[inferlet::main]
async fn main(work: Work) -> Result<u64> {
    let Work::Spawn { program, n } = work else {
        return Ok(0);
    };
    let began = Instant::now();
    for _ in 0..n {
        runtime::spawn(&program, Work::Nothing)?
            .wait::<u64>()
            .await?;
    }
    Ok(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX))
}
