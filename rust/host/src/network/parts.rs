//! Parts of a body between a connection and a program: at most one waits, so that a program that does not read lets the
//! server wait.

#![expect(
    unreachable_pub,
    reason = "the generated bindings re-export the types behind handles, which must be public for that"
)]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::sync::{Notify, oneshot};

use crate::Error;
use crate::futures::{Future, Operation};
use crate::sync::lock;

type Answer = Result<Option<Bytes>, Error>;

/// The parts of the answer to one request.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    state: Mutex<State>,
    /// Rung when the part that waited was taken.
    room: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Bytes>,
    /// How it ended.
    end: Option<Result<(), Error>>,
    readers: VecDeque<oneshot::Sender<Answer>>,
}

impl State {
    /// Gives something to whoever waits longest; back where nobody does.
    fn hand(&mut self, mut answer: Answer) -> Option<Answer> {
        while let Some(reader) = self.readers.pop_front() {
            match reader.send(answer) {
                Ok(()) => return None,
                Err(refused) => answer = refused,
            }
        }
        Some(answer)
    }
}

impl Parts {
    /// Adds a part, once there is room.
    pub(crate) async fn put(&self, part: Bytes) {
        loop {
            let room = self.room.notified();
            if lock(&self.state).waiting.is_empty() {
                break;
            }
            room.await;
        }
        let mut state = lock(&self.state);
        if let Some(Ok(Some(part))) = state.hand(Ok(Some(part))) {
            state.waiting.push_back(part);
        }
    }

    /// There are no more. Only the first end counts.
    pub(crate) fn end(&self, how: Result<(), Error>) {
        let mut state = lock(&self.state);
        let how = state.end.get_or_insert(how).clone();
        while !state.readers.is_empty() {
            state.hand(how.clone().map(|()| None));
        }
    }

    /// What waits is lost, and there are no more.
    pub(crate) fn cancel(&self, error: Error) {
        lock(&self.state).waiting.clear();
        self.end(Err(error));
    }

    /// The next part; none at the end.
    pub(crate) fn next(self: &Arc<Self>) -> Future<NextPart> {
        let mut state = lock(&self.state);
        let source = NextPart(self.clone());
        if let Some(part) = state.waiting.pop_front() {
            self.room.notify_one();
            return Future::settled(source, Ok(Some(part)));
        }
        if let Some(end) = &state.end {
            return Future::settled(source, end.clone().map(|()| None));
        }
        let (sender, receiver) = oneshot::channel();
        state.readers.retain(|reader| !reader.is_closed());
        state.readers.push_back(sender);
        Future::new(source, receiver)
    }
}

/// A wait for the next part, as the source of a future.
#[derive(Debug)]
pub struct NextPart(Arc<Parts>);

impl Operation for NextPart {
    type Raw = Option<Bytes>;
    type Answer = Option<Vec<u8>>;

    fn finish(&mut self, part: Option<Bytes>) -> Result<Option<Vec<u8>>, Error> {
        Ok(part.map(Vec::from))
    }

    /// A wait that was given up loses nothing.
    fn abandon(&mut self, answer: Option<Answer>) {
        if let Some(Ok(Some(part))) = answer {
            let mut state = lock(&self.0.state);
            if let Some(Ok(Some(part))) = state.hand(Ok(Some(part))) {
                state.waiting.push_front(part);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::futures::Awaited;

    #[tokio::test]
    async fn parts_come_in_order_and_one_waits() {
        let parts = Arc::new(Parts::default());
        let putting = tokio::spawn({
            let parts = parts.clone();
            async move {
                for text in ["a", "b", "c"] {
                    parts.put(Bytes::from_static(text.as_bytes())).await;
                }
                parts.end(Ok(()));
            }
        });
        let mut read = Vec::new();
        loop {
            let mut next = parts.next();
            wasmtime_wasi::p2::Pollable::ready(&mut next).await;
            match next.take().unwrap().unwrap() {
                Some(part) => read.push(String::from_utf8(part).unwrap()),
                None => break,
            }
        }
        assert_eq!(read, ["a", "b", "c"]);
        putting.await.unwrap();
        assert!(parts.next().take().unwrap().unwrap().is_none());
    }

    #[tokio::test]
    async fn a_wait_that_is_given_up_loses_nothing() {
        let parts = Arc::new(Parts::default());
        let (first, second) = (parts.next(), parts.next());
        drop(first);
        parts.put(Bytes::from_static(b"x")).await;
        // The part was handed to the second, which nobody asks.
        drop(second);
        assert_eq!(parts.next().take().unwrap().unwrap().unwrap(), b"x");
        let mut waits = parts.next();
        let error = Error::internal("broken");
        parts.end(Err(error));
        assert!(waits.take().unwrap().is_err() && parts.next().take().unwrap().is_err());
    }
}
