//! The body of a request that a program sends in parts.

#![expect(
    unreachable_pub,
    reason = "the generated bindings re-export the types behind handles, which must be public for that"
)]

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use pie_core::ErrorCode;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use super::failure::Fault;
use super::held::HeldNetwork;
use super::sent::{SentBody, too_many};
use crate::Error;
use crate::budget::Charge;
use crate::futures::Operation;

/// Where a program writes the body of its request.
#[derive(Debug)]
pub(crate) struct Upload {
    /// None once the body is complete.
    parts: Option<mpsc::Sender<Part>>,
    n_bytes: u64,
}

/// A part on its way.
#[derive(Debug)]
struct Part {
    bytes: Bytes,
    _charge: Charge,
    /// None once it was told of.
    taken: Option<oneshot::Sender<Result<(), Error>>>,
}

impl Part {
    fn tell(&mut self, how: Result<(), Error>) {
        if let Some(taken) = self.taken.take() {
            // A program that no longer waits for it needs no answer.
            drop(taken.send(how));
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.tell(Err(ended()));
    }
}

impl Upload {
    /// One, and the body that comes of it.
    pub(crate) fn new() -> (Self, SentBody) {
        let (sender, receiver) = mpsc::channel(1);
        let upload = Self {
            parts: Some(sender),
            n_bytes: 0,
        };
        (upload, Streamed(receiver).boxed_unsync())
    }

    /// Hands on the next part; what it gives says when the server has taken it. `failure` is why the request failed.
    ///
    /// # Errors
    /// `limit-http-bytes`, `limit-engine-memory`, `invalid-argument`, and why the request failed.
    pub(crate) fn write(
        &mut self,
        held: &HeldNetwork,
        part: Vec<u8>,
        failure: impl FnOnce() -> Option<Error>,
    ) -> Result<oneshot::Receiver<Result<(), Error>>, Error> {
        let most = held.limits.sent_bytes;
        let n_bytes = self.n_bytes.saturating_add(part.len() as u64);
        if n_bytes > most {
            return Err(too_many(most));
        }
        let Some(parts) = &self.parts else {
            return Err(invalid(
                "the body of the request is complete; write before finishing it",
            ));
        };
        let (sender, receiver) = oneshot::channel();
        let part = Part {
            _charge: held.charge(part.len() as u64)?,
            bytes: Bytes::from(part),
            taken: Some(sender),
        };
        match parts.try_send(part) {
            Ok(()) => {
                self.n_bytes = n_bytes;
                Ok(receiver)
            }
            Err(TrySendError::Full(_)) => Err(invalid(
                "a part of the body was not taken yet; await its write before the next one",
            )),
            Err(TrySendError::Closed(_)) => Err(failure().unwrap_or_else(ended)),
        }
    }

    /// There are no more parts.
    pub(crate) fn finish(&mut self) {
        self.parts = None;
    }
}

/// The body that is made of parts.
struct Streamed(mpsc::Receiver<Part>);

impl Body for Streamed {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        self.0.poll_recv(context).map(|part| {
            let mut part = part?;
            part.tell(Ok(()));
            Some(Ok(Frame::data(std::mem::take(&mut part.bytes))))
        })
    }
}

/// A wait until a part was taken, as the source of a future.
#[derive(Debug)]
pub struct Written;

impl Operation for Written {
    type Raw = ();
    type Answer = ();

    fn finish(&mut self, (): ()) -> Result<(), Error> {
        Ok(())
    }

    fn abandon(&mut self, _: Option<Result<(), Error>>) {}
}

/// The error of a write to a request whose body comes whole.
pub(crate) fn not_streamed() -> Error {
    invalid("the request has no body in parts; begin it with one")
}

fn ended() -> Error {
    let message =
        "the server answered, or the request ended, before it had all of the body; read the answer";
    Error::new(ErrorCode::HttpProtocol, message)
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorCode::InvalidArgument, message)
}
