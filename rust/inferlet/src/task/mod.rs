//! Waiting together: futures that overlap, timers, and the executor under `#[inferlet::main]`.
//!
//! A program is one task. Futures that are awaited together share batches in the engine; one that is dropped is
//! cancelled.
//!
//! ```no_run
//! use std::time::Duration;
//! use inferlet::prelude::*;
//! use inferlet::task;
//!
//! # async fn both(one: Generator, other: Generator) -> Result<()> {
//! let (one, other) = task::join(one.collect_text(), other.collect_text()).await;
//! # let generator: Generator = todo!();
//! match task::timeout(Duration::from_secs(2), generator.collect_text()).await {
//!     Some(text) => println!("{}", text?),
//!     None => println!("took too long, and was cancelled"),
//! }
//! # Ok(())
//! # }
//! ```

mod executor;
mod waiting;

use std::pin::pin;
use std::time::Duration;

use futures_util::future;
/// Which of two futures was first, with its value.
pub use futures_util::future::Either;

use crate::{ErrorCode, Result, errors};
pub(crate) use waiting::{answer, answer_soon, block_for, may_go_on};

/// Waits for `duration`; for none of it still lets others run.
pub async fn sleep(duration: Duration) {
    waiting::elapsed(duration).await;
}

/// The value of `future`, or none once `duration` has passed: then the future is dropped, and so cancelled.
pub async fn timeout<F: Future>(duration: Duration, future: F) -> Option<F::Output> {
    match select(future, sleep(duration)).await {
        Either::Left(value) => Some(value),
        Either::Right(()) => None,
    }
}

/// The value of whichever future is ready first, of both the first given. The other is dropped, and so cancelled.
pub async fn select<A: Future, B: Future>(one: A, other: B) -> Either<A::Output, B::Output> {
    match future::select(pin!(one), pin!(other)).await {
        Either::Left((value, _)) => Either::Left(value),
        Either::Right((value, _)) => Either::Right(value),
    }
}

/// Both values, once both futures are done.
pub async fn join<A: Future, B: Future>(one: A, other: B) -> (A::Output, B::Output) {
    future::join(one, other).await
}

/// Every value, in the order of the futures, once all are done.
pub async fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    future::join_all(futures).await
}

/// Runs the program's task to its end.
pub(crate) fn block_on<F: Future>(future: F) -> Result<F::Output> {
    waiting::block_on(future).map_err(|executor::Deadlock| {
        errors::text(
            ErrorCode::Deadlock,
            "the program waits and nothing can wake it: no timer, message or generation is under way; \
             look for a future that only another, finished or never polled, future would wake",
        )
    })
}
