//! The requests of programs that use `wasi:http` themselves. Nothing is followed here: a redirect is an answer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use pie_core::ErrorCode;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use wasmtime_wasi_http::{Error as WasiError, RequestOptions, WasiBody, WasiHttpHooks};

use super::config::HttpLimits;
use super::connection::Network;
use super::failure::{Fault, for_wasi};
use super::held::{Admission, HeldNetwork};
use super::hop::Hop;
use super::pace::too_long;
use super::received::Received;
use super::request::{self, Timeouts};
use super::target::Target;
use crate::Error;
use crate::budget::Charge;

/// Bytes that one write to the body of a request carries.
pub(crate) const CHUNK_BYTES: usize = 64 << 10;
/// Writes that wait until the server takes them; the system interface has a place for one more.
pub(crate) const CHUNKS: usize = 1;

type Io = Box<dyn Future<Output = Result<(), WasiError>> + Send>;
type Answered = Result<(Response<WasiBody>, Io), WasiError>;

impl WasiHttpHooks for HeldNetwork {
    fn set_host_header(&mut self) -> bool {
        // It stands in the request when that is sent.
        false
    }

    fn p2_outgoing_body_buffer_chunks(&mut self) -> usize {
        CHUNKS
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        CHUNK_BYTES
    }

    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _sent: Box<dyn Future<Output = Result<(), WasiError>> + Send>,
    ) -> Box<dyn Future<Output = Answered> + Send> {
        let options = options.unwrap_or_default();
        let limits = self.limits.within(&Timeouts {
            connect: options.connect_timeout,
            first_byte: options.first_byte_timeout,
            idle: options.between_bytes_timeout,
            whole: None,
        });
        let begun = self.admit().and_then(|admission| {
            Ok(Begun {
                network: self.network.clone(),
                end: Instant::now() + limits.whole,
                limits,
                admission,
                _charges: (self.charge_request()?, self.sending.take()),
            })
        });
        let refusals = self.refusals.clone();
        Box::new(async move {
            let sent = match begun {
                Ok(begun) => begun.send(request).await,
                Err(error) => Err(error),
            };
            let (begun, parts, received) = sent.map_err(|error| {
                refusals.note(&error);
                for_wasi(&error)
            })?;
            let (sender, receiver) = mpsc::channel(1);
            let io: Io = Box::new(async move {
                let outcome = begun.pump(received, &sender).await;
                if let Err(error) = outcome {
                    refusals.note(&error);
                    // A program that no longer reads needs no answer.
                    drop(sender.send(Err(for_wasi(&error))).await);
                }
                Ok(())
            });
            let body = Arriving(receiver).boxed_unsync();
            Ok((Response::from_parts(parts, body), io))
        })
    }
}

/// A request that has its place.
struct Begun {
    network: Arc<Network>,
    limits: HttpLimits,
    end: Instant,
    admission: Admission,
    _charges: (Charge, Option<Charge>),
}

impl Begun {
    async fn send(
        self,
        request: Request<WasiBody>,
    ) -> Result<(Self, response::Parts, Received), Error> {
        let (parts, body) = request.into_parts();
        let target = Target::parse(&parts.uri.to_string())?;
        let hop = Hop {
            network: &self.network,
            place: &self.admission.place,
            limits: &self.limits,
            target: &target,
            method: request::method(parts.method.as_str())?,
            headers: parts.headers,
        };
        let body = body.map_err(|error| {
            let message = format!("the program broke the body of its request off: {error}");
            Fault(Error::new(ErrorCode::InvalidArgument, message))
        });
        let sent = timeout_at(self.end, hop.send(body.boxed_unsync())).await;
        let at = target.place();
        let (parts, received) = sent.unwrap_or_else(|_| Err(self.over(&at)))?;
        Ok((self, parts, received))
    }

    /// Hands on the body of an answer.
    async fn pump(
        &self,
        mut received: Received,
        to: &mpsc::Sender<Result<Bytes, WasiError>>,
    ) -> Result<(), Error> {
        let pumping = async {
            while let Some(part) = received.next().await? {
                if to.send(Ok(part)).await.is_err() {
                    break;
                }
            }
            Ok::<(), Error>(())
        };
        let pumped = timeout_at(self.end, pumping).await;
        pumped.unwrap_or_else(|_| Err(self.over("the server")))
    }

    fn over(&self, at: &str) -> Error {
        too_long(at, "all of it", "limits.http_s", self.limits.whole)
    }
}

/// The body of an answer, as it arrives.
struct Arriving(mpsc::Receiver<Result<Bytes, WasiError>>);

impl Body for Arriving {
    type Data = Bytes;
    type Error = WasiError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, WasiError>>> {
        self.0
            .poll_recv(context)
            .map(|part| part.map(|part| part.map(Frame::data)))
    }
}
