//! Bodies of answers, as they arrive.

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use pie_core::ErrorCode;
use tokio::time::timeout;

use super::config::HttpLimits;
use super::failure::of_hyper;
use super::pace::too_long;
use super::running::Running;
use crate::Error;

/// The body of an answer, whose connection ends with it.
pub(crate) struct Received {
    body: Incoming,
    /// Who answers.
    at: String,
    n_bytes: u64,
    limits: HttpLimits,
    _connection: Running,
}

impl Received {
    /// That of an answer whose head has arrived.
    ///
    /// # Errors
    /// `limit-http-bytes` where the head says that it is too long.
    pub(crate) fn new(
        body: Incoming,
        at: String,
        limits: HttpLimits,
        connection: Running,
    ) -> Result<Self, Error> {
        if body.size_hint().lower() > limits.received_bytes {
            return Err(too_many(&at, limits.received_bytes));
        }
        Ok(Self {
            body,
            at,
            n_bytes: 0,
            limits,
            _connection: connection,
        })
    }

    /// The next bytes; none at the end.
    ///
    /// # Errors
    /// `limit-http-time`, `limit-http-bytes`, `http-protocol`.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let Ok(frame) = timeout(self.limits.idle, self.body.frame()).await else {
                let what = "the next part of the answer";
                return Err(too_long(
                    &self.at,
                    what,
                    "limits.http_idle_s",
                    self.limits.idle,
                ));
            };
            let Some(frame) = frame else {
                return Ok(None);
            };
            let frame =
                frame.map_err(|error| of_hyper(&self.at, &error, self.limits.header_bytes))?;
            // What stands behind the body is headers, which nobody reads.
            let Ok(bytes) = frame.into_data() else {
                continue;
            };
            self.n_bytes = self.n_bytes.saturating_add(bytes.len() as u64);
            if self.n_bytes > self.limits.received_bytes {
                return Err(too_many(&self.at, self.limits.received_bytes));
            }
            if !bytes.is_empty() {
                return Ok(Some(bytes));
            }
        }
    }
}

fn too_many(at: &str, most: u64) -> Error {
    Error::new(
        ErrorCode::LimitHttpBytes,
        format!(
            "the answer of {at} has more than limits.http_received_bytes = {most} bytes; ask for less, or raise the limit"
        ),
    )
}
