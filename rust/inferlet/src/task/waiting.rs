//! Waiting on the engine: the one file that knows what a pollable is.

use std::cell::Cell;
use std::time::Duration;

use super::executor::{self, Deadlock, Event, EventSource, Reactor};
use crate::Result;
use crate::bindings::pie::core::forward::{self, FuturePassOutput};
use crate::bindings::pie::core::futures::{FutureBlob, FutureString, FutureUnit};
use crate::bindings::pie::core::generation::{self, FutureOutput, FutureText, FutureTokens};
use crate::bindings::pie::core::http::{self, FutureHead, FuturePart, FutureWritten};
use crate::bindings::pie::core::http_server::{FutureGone, FutureRequest, IncomingRequest};
use crate::bindings::pie::core::messaging::FutureMessage;
use crate::bindings::pie::core::types::Error;
use crate::bindings::wasi::clocks::monotonic_clock::subscribe_duration;
use crate::bindings::wasi::io::poll::{Pollable, poll};
use crate::stdout::flush_output;

/// What the engine answers later: ready when its pollable is.
pub(crate) trait HostFuture {
    /// What it answers with.
    type Value;

    /// Where its readiness shows. A child of the future: to be dropped before it.
    fn pollable(&self) -> Pollable;

    /// The answer, once; none until it is ready.
    fn get(&self) -> Option<std::result::Result<Self::Value, Error>>;
}

macro_rules! host_future {
    ($future:ty, $value:ty) => {
        impl HostFuture for $future {
            type Value = $value;

            fn pollable(&self) -> Pollable {
                self.pollable()
            }

            fn get(&self) -> Option<std::result::Result<Self::Value, Error>> {
                self.get()
            }
        }
    };
}

host_future!(FutureUnit, ());
host_future!(FutureString, String);
host_future!(FutureBlob, Vec<u8>);
host_future!(FutureMessage, Option<String>);
host_future!(FutureOutput, generation::Output);
host_future!(FuturePassOutput, forward::PassOutput);
host_future!(FutureTokens, Vec<u32>);
host_future!(FutureText, String);
host_future!(FutureHead, http::Head);
host_future!(FuturePart, Option<Vec<u8>>);
host_future!(FutureWritten, ());
host_future!(FutureRequest, Option<IncomingRequest>);
host_future!(FutureGone, ());

/// The answer of a future of the engine. Dropping this drops the future, which cancels what it waits for.
pub(crate) async fn answer<F: HostFuture>(future: F) -> Result<F::Value> {
    loop {
        event(future.pollable()).await;
        if let Some(answer) = future.get() {
            return Ok(answer?);
        }
    }
}

/// The answer of a future of the engine. The whole program waits for it, with all its tasks.
pub(crate) fn block_for<F: HostFuture>(future: F) -> Result<F::Value> {
    flush_output();
    loop {
        future.pollable().block();
        if let Some(answer) = future.get() {
            return Ok(answer?);
        }
    }
}

/// As [`answer`], of a future whose answer is often there at once: then nothing is waited for.
pub(crate) async fn answer_soon<F: HostFuture>(future: F) -> Result<F::Value> {
    if may_go_on()
        && let Some(answer) = future.get()
    {
        return Ok(answer?);
    }
    answer(future).await
}

thread_local! {
    /// Answers that were taken since others could last run.
    static TAKEN_AT_ONCE: Cell<u32> = const { Cell::new(0) };
}

/// Whether an answer that is there may be taken before other tasks of the program run. In a row some may: a task that
/// finds one at every turn would never let the others run.
pub(crate) fn may_go_on() -> bool {
    const MOST: u32 = 64;
    let taken = TAKEN_AT_ONCE.get() + 1;
    TAKEN_AT_ONCE.set(taken % MOST);
    taken < MOST
}

/// Done once `duration` has passed. The clock of the engine counts nanoseconds in 64 bits: 584 years are for ever.
pub(crate) async fn elapsed(duration: Duration) {
    event(subscribe_duration(
        u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
    ))
    .await;
}

/// Runs a future to its end.
pub(crate) fn block_on<F: Future>(future: F) -> std::result::Result<F::Output, Deadlock> {
    executor::block_on(reactor(), &Engine, future)
}

/// Done once the pollable is ready. It is dropped as soon as nobody waits for it any more.
fn event(pollable: Pollable) -> Event<'static, Pollable> {
    Event::new(reactor(), pollable)
}

/// The events of this thread's program. An instance has one thread and lives as long as its program.
fn reactor() -> &'static Reactor<Pollable> {
    thread_local! {
        static REACTOR: &'static Reactor<Pollable> = Box::leak(Box::new(Reactor::new()));
    }
    REACTOR.with(|reactor| *reactor)
}

/// The pollables of the engine.
struct Engine;

impl EventSource for Engine {
    type Pollable = Pollable;

    fn wait(&self, pollables: &[&Pollable]) -> Vec<u32> {
        flush_output();
        if let [one] = pollables {
            // Most programs wait for one thing, which costs less than a list of one.
            one.block();
            return vec![0];
        }
        poll(pollables)
    }

    fn look(&self, pollables: &[&Pollable]) -> Vec<u32> {
        // A list with one that is ready from the start makes `poll` answer at once; its own index is past the last.
        let at_once = subscribe_duration(0);
        poll(&[pollables, &[&at_once]].concat())
    }
}
