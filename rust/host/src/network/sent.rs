//! Bodies of requests, on their way out.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use pie_core::ErrorCode;

use super::failure::Fault;
use super::pace::Progress;
use crate::Error;

/// The body of a request.
pub(crate) type SentBody = UnsyncBoxBody<Bytes, Fault>;

/// A body whose bytes are counted, and which says how far it has come.
pub(crate) struct Counted {
    inner: SentBody,
    n_bytes: u64,
    most: u64,
    progress: Progress,
}

impl Counted {
    pub(crate) const fn new(inner: SentBody, most: u64, progress: Progress) -> Self {
        Self {
            inner,
            n_bytes: 0,
            most,
            progress,
        }
    }
}

impl Body for Counted {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        self.progress.moved(polled.is_pending());
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            let length = frame.data_ref().map_or(0, Bytes::len);
            self.n_bytes = self.n_bytes.saturating_add(length as u64);
            if self.n_bytes > self.most {
                return Poll::Ready(Some(Err(Fault(too_many(self.most)))));
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The error of a body that is longer than it may be.
pub(crate) fn too_many(most: u64) -> Error {
    Error::new(
        ErrorCode::LimitHttpBytes,
        format!(
            "the body of the request has more than limits.http_sent_bytes = {most} bytes; send less, or raise the limit"
        ),
    )
}
