//! What a program waits for. One generic future serves every interface.

#![expect(
    unreachable_pub,
    reason = "the generated bindings re-export the types behind handles, which must be public for that"
)]

use std::sync::Arc;
use std::time::Duration;

use pie_core::ErrorCode;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::Pollable;

use crate::Error;
use crate::limits::Limits;

/// What a future waits for where only another program can bring it about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// The end of a process.
    End(u64),
    /// A message of the queue of a topic.
    Message(Arc<str>),
    /// A broadcast of a topic.
    Broadcast(Arc<str>),
}

/// An operation that a future waits for: how its answer is made, and what happens if nobody takes it.
pub trait Operation: Send + 'static {
    /// What arrives when the operation is done.
    type Raw: Send + 'static;
    /// What the program gets.
    type Answer;

    /// Turns what arrived into the answer, when the program takes it.
    ///
    /// # Errors
    /// Those of the operation that was waited for.
    fn finish(&mut self, raw: Self::Raw) -> Result<Self::Answer, Error>;

    /// Something arrived. Where that was not all, what is to come next is waited for in its place, as long as the
    /// program waits, without waking it.
    fn go_on(
        &mut self,
        _arrived: &Result<Self::Raw, Error>,
    ) -> Option<oneshot::Receiver<Result<Self::Raw, Error>>> {
        None
    }

    /// The program dropped the future without taking the answer, which may have arrived; or the answer did not come in
    /// time.
    fn abandon(&mut self, answer: Option<Result<Self::Raw, Error>>);

    /// How long the answer may take; none: any time.
    fn limit(&self, _limits: &Limits) -> Option<Duration> {
        None
    }

    /// What it waits for where only another program can bring it about; none: the engine, a client or time does.
    fn waits_for(&self) -> Option<WaitsFor> {
        None
    }
}

/// What a program holds of something that it waits for.
pub(crate) trait Awaited: Pollable + Sized {
    /// What the program gets.
    type Answer;

    /// The answer, once, after it has arrived.
    fn take(&mut self) -> Option<Result<Self::Answer, Error>>;

    /// The same, whose answer must come within the limit of its operation from now.
    fn within(self, limits: &Limits) -> Self;

    /// As [`Operation::waits_for`].
    fn waits_for(&self) -> Option<WaitsFor>;
}

/// A future of a program. It is ready when its answer has arrived; dropping it before cancels what it waits for.
#[derive(Debug)]
pub struct Future<S: Operation> {
    source: S,
    state: State<S::Raw>,
    deadline: Option<Deadline>,
}

/// Until when an answer must have come.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    at: Instant,
    limit: Duration,
}

#[derive(Debug)]
enum State<T> {
    Waiting(oneshot::Receiver<Result<T, Error>>),
    Ready(Result<T, Error>),
    Taken,
}

impl<S: Operation> Future<S> {
    /// A future whose answer comes through `receiver`.
    pub(crate) fn new(source: S, receiver: oneshot::Receiver<Result<S::Raw, Error>>) -> Self {
        Self {
            source,
            state: State::Waiting(receiver),
            deadline: None,
        }
    }

    /// A future whose answer is there.
    pub(crate) fn settled(source: S, answer: Result<S::Raw, Error>) -> Self {
        Self {
            source,
            state: State::Ready(answer),
            deadline: None,
        }
    }

    /// The error of an answer that did not come by the deadline, which is then given up.
    fn give_up(&mut self, deadline: Deadline) -> Error {
        self.source.abandon(None);
        let limit_s = deadline.limit.as_secs_f64();
        Error::new(
            ErrorCode::LimitPass,
            format!(
                "a pass took longer than {limit_s} s, limits.pass_s; the context is as it was: try again, or raise the limit"
            ),
        )
    }
}

impl<S: Operation> Awaited for Future<S> {
    type Answer = S::Answer;

    fn within(mut self, limits: &Limits) -> Self {
        self.deadline = self.source.limit(limits).map(|limit| Deadline {
            at: Instant::now() + limit,
            limit,
        });
        self
    }

    fn waits_for(&self) -> Option<WaitsFor> {
        self.source.waits_for()
    }

    fn take(&mut self) -> Option<Result<S::Answer, Error>> {
        let answer = match std::mem::replace(&mut self.state, State::Taken) {
            State::Waiting(mut receiver) => match receiver.try_recv() {
                Ok(answer) => match self.source.go_on(&answer) {
                    Some(next) => {
                        self.state = State::Waiting(next);
                        return None;
                    }
                    None => answer,
                },
                Err(oneshot::error::TryRecvError::Empty) => {
                    let late = self.deadline.filter(|it| it.at <= Instant::now());
                    let Some(deadline) = late else {
                        self.state = State::Waiting(receiver);
                        return None;
                    };
                    return Some(Err(self.give_up(deadline)));
                }
                Err(oneshot::error::TryRecvError::Closed) => Err(engine_gone()),
            },
            State::Ready(answer) => answer,
            State::Taken => {
                return Some(Err(Error::new(
                    ErrorCode::FutureTaken,
                    "the answer of this future was taken by an earlier get; keep it instead of asking again",
                )));
            }
        };
        Some(answer.and_then(|raw| self.source.finish(raw)))
    }
}

#[async_trait]
impl<S: Operation> Pollable for Future<S> {
    async fn ready(&mut self) {
        while let State::Waiting(receiver) = &mut self.state {
            let answer = match self.deadline {
                None => Some(receiver.await),
                Some(deadline) => timeout_at(deadline.at, receiver).await.ok(),
            };
            let answer = match (answer, self.deadline) {
                (None, Some(deadline)) => {
                    self.state = State::Ready(Err(self.give_up(deadline)));
                    return;
                }
                (answer, _) => answer
                    .and_then(Result::ok)
                    .unwrap_or_else(|| Err(engine_gone())),
            };
            self.state = match self.source.go_on(&answer) {
                Some(next) => State::Waiting(next),
                None => State::Ready(answer),
            };
        }
    }
}

impl<S: Operation> Drop for Future<S> {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.state, State::Taken) {
            State::Waiting(mut receiver) => {
                receiver.close();
                self.source.abandon(receiver.try_recv().ok());
            }
            State::Ready(answer) => self.source.abandon(Some(answer)),
            State::Taken => {}
        }
    }
}

fn engine_gone() -> Error {
    Error::new(
        ErrorCode::EngineStopped,
        "the engine stopped before this was done; run the program again",
    )
}
