//! The end of a child, as its parent waits for it.

#![expect(
    unreachable_pub,
    reason = "the generated bindings re-export the types behind handles, which must be public for that"
)]

use std::sync::{Arc, Mutex};

use pie_core::ErrorCode;
use tokio::sync::oneshot;

use crate::Error;
use crate::event::{Event, Failure};
use crate::futures::{Future, Operation, WaitsFor};
use crate::stepped_charge::SteppedCharge;
use crate::sync::lock;

/// How a process ends, for all who wait for that.
#[derive(Debug)]
pub(crate) struct ProcessEnding(Mutex<State>);

#[derive(Debug)]
struct State {
    /// The last event; none while the process lives.
    last: Option<Arc<Event>>,
    waiters: Vec<oneshot::Sender<Result<Arc<Event>, Error>>>,
    /// What the last event is charged with.
    holding: SteppedCharge,
}

impl ProcessEnding {
    /// That of a process that begins; what it leaves is charged to `holding`.
    pub(crate) fn new(holding: SteppedCharge) -> Self {
        Self(Mutex::new(State {
            last: None,
            waiters: Vec::new(),
            holding,
        }))
    }

    /// The process has ended with `last`, or with an error where there is no room for that.
    pub(crate) fn settle(&self, last: Arc<Event>) {
        let mut state = lock(&self.0);
        let last = match state.holding.set(last.payload_bytes()) {
            Ok(()) => last,
            Err(error) => Arc::new(Event::Error(error.into())),
        };
        state.last = Some(last.clone());
        for waiter in state.waiters.drain(..) {
            // A waiter that is gone needs no answer.
            drop(waiter.send(Ok(last.clone())));
        }
    }

    /// True once the process has ended.
    #[cfg(test)]
    pub(crate) fn is_settled(&self) -> bool {
        lock(&self.0).last.is_some()
    }

    /// Waits for the end of process `pid`.
    pub(crate) fn wait(self: &Arc<Self>, pid: u64) -> Future<Ended> {
        let ended = Ended {
            pid,
            _ending: self.clone(),
        };
        Future::new(ended, self.heard())
    }

    /// What hears of the end.
    pub(crate) fn heard(&self) -> oneshot::Receiver<Result<Arc<Event>, Error>> {
        let (sender, receiver) = oneshot::channel();
        let mut state = lock(&self.0);
        match &state.last {
            // The receiver is at hand, so that it arrives.
            Some(last) => drop(sender.send(Ok(last.clone()))),
            None => {
                state.waiters.retain(|waiter| !waiter.is_closed());
                state.waiters.push(sender);
            }
        }
        receiver
    }
}

/// A wait for the end of a process, as the source of a future.
#[derive(Debug)]
pub struct Ended {
    pid: u64,
    /// What is heard is charged as long as the program has not taken it.
    _ending: Arc<ProcessEnding>,
}

impl Operation for Ended {
    type Raw = Arc<Event>;
    type Answer = String;

    fn finish(&mut self, last: Arc<Event>) -> Result<String, Error> {
        match &*last {
            Event::Return(value) => Ok(value.clone()),
            Event::Error(failure) => Err(error_of(self.pid, failure)),
            other => Err(Error::internal(format!("{other:?} ended a process"))),
        }
    }

    fn abandon(&mut self, _: Option<Result<Arc<Event>, Error>>) {}

    fn waits_for(&self) -> Option<WaitsFor> {
        Some(WaitsFor::End(self.pid))
    }
}

/// The error that a parent gets for how process `pid` failed.
fn error_of(pid: u64, failure: &Failure) -> Error {
    let code = failure.code.as_deref().and_then(ErrorCode::from_name);
    let details = serde_json::json!({
        "pid": pid,
        "kind": failure.kind,
        "traceback": failure.traceback,
    });
    Error {
        code: code.unwrap_or(ErrorCode::ProgramError),
        message: failure.message.clone(),
        details: details.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, Purpose};
    use crate::futures::Awaited;

    fn ending(most_bytes: u64) -> Arc<ProcessEnding> {
        ending_within(&Budget::new(16 << 20, Some(most_bytes)))
    }

    fn ending_within(budget: &Arc<Budget>) -> Arc<ProcessEnding> {
        let holding = SteppedCharge::new(budget.account("").empty(Purpose::Queue));
        Arc::new(ProcessEnding::new(holding))
    }

    #[test]
    fn all_who_wait_hear_of_it_before_and_after() {
        let ending = ending(1 << 20);
        let (mut early, gone) = (ending.wait(7), ending.wait(7));
        drop(gone);
        assert!(early.take().is_none() && !ending.is_settled());
        ending.settle(Event::Return("1".to_owned()).into());
        let mut late = ending.wait(7);
        assert_eq!(early.take().unwrap().unwrap(), "1");
        assert_eq!(late.take().unwrap().unwrap(), "1");
    }

    #[test]
    fn a_failure_is_an_error_with_what_is_known_of_it() {
        let ending = ending(1 << 20);
        let failure = Failure {
            kind: "ValueError".to_owned(),
            code: Some("program-error".to_owned()),
            message: "no".to_owned(),
            traceback: "main.py:3".to_owned(),
        };
        ending.settle(Event::Error(failure).into());
        let error = ending.wait(7).take().unwrap().unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            (ErrorCode::ProgramError, "no")
        );
        let details: serde_json::Value = serde_json::from_str(&error.details).unwrap();
        let expected =
            serde_json::json!({"pid": 7, "kind": "ValueError", "traceback": "main.py:3"});
        assert_eq!(details, expected);
    }

    #[test]
    fn a_value_is_charged_while_somebody_can_take_it() {
        let budget = Budget::new(16 << 20, None);
        let ending = ending_within(&budget);
        let wait = ending.wait(7);
        ending.settle(Event::Return("x".repeat(1 << 20)).into());
        drop(ending);
        assert!(budget.held_bytes() >= 1 << 20);
        drop(wait);
        assert_eq!(budget.held_bytes(), 0);
    }

    #[test]
    fn a_value_without_room_is_an_error() {
        let ending = ending(64 << 10);
        ending.settle(Event::Return("x".repeat(1 << 20)).into());
        let error = ending.wait(7).take().unwrap().unwrap_err();
        assert_eq!(error.code, ErrorCode::LimitEngineMemory);
    }
}
