//! A request and its answer, as the SDKs have them: redirects are followed, and each error has a code.

#![expect(
    unreachable_pub,
    reason = "the generated bindings re-export the types behind handles, which must be public for that"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, response};
use pie_core::ErrorCode;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::config::HttpLimits;
use super::connection::Network;
use super::held::{Admission, HeldNetwork, Refusals};
use super::hop::{Hop, empty, whole};
use super::pace::too_long;
use super::parts::{NextPart, Parts};
use super::received::Received;
use super::redirect::{self, Onward, Redirects};
use super::request::Asked;
use super::running::Running;
use super::sent::SentBody;
use super::target::Target;
use super::upload::{Upload, Written};
use crate::Error;
use crate::budget::Charge;
use crate::futures::{Future, Operation};
use crate::sync::lock;

/// The head of an answer.
#[derive(Clone, Debug)]
pub struct Head {
    /// Its status.
    pub status: u16,
    /// What is said of the status; the standard words where the server says none.
    pub reason: String,
    /// Where it comes from, behind all redirects.
    pub url: String,
    /// Whether there was a redirect.
    pub is_redirected: bool,
    /// Its headers, by names in small letters, in the order in which they came.
    pub headers: HeaderMap,
}

/// The body of a request, as a program gives it.
#[derive(Debug)]
pub(crate) enum GivenBody {
    None,
    Whole(Bytes, Charge),
    Streamed,
}

/// A request that is under way, or was. Dropping it ends it.
#[derive(Debug)]
pub struct Exchange {
    head: Arc<Heard>,
    parts: Arc<Parts>,
    upload: Option<Upload>,
    _charge: Charge,
    /// None once it was cancelled.
    task: Option<Running>,
}

impl Exchange {
    /// Begins a request.
    ///
    /// # Errors
    /// `net-denied` where the operator has not allowed the host, `limit-http-requests`, `limit-http-bytes`,
    /// `limit-engine-memory`.
    pub(crate) fn start(held: &HeldNetwork, asked: Asked, body: GivenBody) -> Result<Self, Error> {
        held.network.check(&asked.target)?;
        let (admission, charge) = (held.admit()?, held.charge_request()?);
        let (head, parts) = (Arc::<Heard>::default(), Arc::<Parts>::default());
        let (upload, body) = match body {
            GivenBody::None => (None, Sent::None),
            GivenBody::Whole(bytes, charge) => (
                None,
                Sent::Whole {
                    bytes,
                    _charge: charge,
                },
            ),
            GivenBody::Streamed => {
                let (upload, body) = Upload::new();
                (Some(upload), Sent::Streamed(Some(body)))
            }
        };
        let way = Way {
            network: held.network.clone(),
            limits: held.limits.within(&asked.timeouts),
            admission,
            head: head.clone(),
            parts: parts.clone(),
            refusals: held.refusals.clone(),
        };
        let task = held.runtime.spawn(way.go(asked, body));
        Ok(Self {
            head,
            parts,
            upload,
            _charge: charge,
            task: Some(task.into()),
        })
    }

    /// Waits for the head of the answer. It may be asked for any number of times.
    pub(crate) fn head(&self) -> Future<HeadCome> {
        self.head.wait()
    }

    /// The next part of the body of the answer; none at its end.
    pub(crate) fn read(&self) -> Future<NextPart> {
        self.parts.next()
    }

    /// Hands on the next part of the body of the request.
    pub(crate) fn write(&mut self, held: &HeldNetwork, part: Vec<u8>) -> Future<Written> {
        let answer = match &mut self.upload {
            Some(upload) => upload.write(held, part, || self.head.failure()),
            None => Err(super::upload::not_streamed()),
        };
        match answer {
            Ok(receiver) => Future::new(Written, receiver),
            Err(error) => {
                held.refusals.note(&error);
                Future::settled(Written, Err(error))
            }
        }
    }

    /// Ends it.
    pub(crate) fn cancel(&mut self) {
        self.upload = None;
        if self.task.take().is_some() {
            let error = Error::new(
                ErrorCode::Cancelled,
                "the request was cancelled by its program; begin another one",
            );
            self.head.settle(Err(error.clone()));
            self.parts.cancel(error);
        }
    }

    /// The body of the request is complete.
    pub(crate) fn finish(&mut self) {
        if let Some(upload) = &mut self.upload {
            upload.finish();
        }
    }
}

/// What is sent as the body.
enum Sent {
    None,
    Whole {
        bytes: Bytes,
        _charge: Charge,
    },
    /// None once a part of it may have been sent.
    Streamed(Option<SentBody>),
}

impl Sent {
    /// What the next server gets of it.
    fn body(&mut self, at: &Target) -> Result<SentBody, Error> {
        match self {
            Self::None => Ok(empty()),
            Self::Whole { bytes, .. } => Ok(whole(bytes.clone())),
            Self::Streamed(body) => body.take().ok_or_else(|| {
                redirect::refused(
                    at,
                    "the body was sent in parts, which are gone; send it whole",
                )
            }),
        }
    }
}

/// A request on its way.
struct Way {
    network: Arc<Network>,
    limits: HttpLimits,
    admission: Admission,
    head: Arc<Heard>,
    parts: Arc<Parts>,
    refusals: Refusals,
}

impl Way {
    /// Goes the way to its end, and tells whoever waits how it went.
    async fn go(self, asked: Asked, body: Sent) {
        let at = asked.target.place();
        let most = self.limits.whole;
        let gone = timeout(most, self.exchange(asked, body)).await;
        let gone = gone.unwrap_or_else(|_| Err(too_long(&at, "all of it", "limits.http_s", most)));
        if let Err(error) = &gone {
            // Before anybody wakes: a program asks why as soon as it is told that its request failed.
            self.refusals.note(error);
            self.head.settle(Err(error.clone()));
        }
        self.parts.end(gone);
    }

    async fn exchange(&self, asked: Asked, body: Sent) -> Result<(), Error> {
        let (head, mut received) = self.answer(asked, body).await?;
        self.head.settle(Ok(head));
        while let Some(part) = received.next().await? {
            self.parts.put(part).await;
        }
        Ok(())
    }

    /// Sends the request on until something answers it.
    async fn answer(&self, asked: Asked, mut body: Sent) -> Result<(Head, Received), Error> {
        let redirects = asked.redirects;
        let (mut target, mut method, mut headers) = (asked.target, asked.method, asked.headers);
        for n_redirects in 0..=redirect::MOST {
            let sent = body.body(&target)?;
            let (parts, received) = self.hop(&target, &method, &headers, sent).await?;
            let location = redirect::location(parts.status, &parts.headers, &target)?;
            let location = match (location, redirects) {
                (None, _) | (_, Redirects::Keep) => {
                    return Ok((head(parts, &target, n_redirects > 0), received));
                }
                (Some(location), Redirects::Fail) => {
                    return Err(redirect::refused(
                        &target,
                        format!("to {location:?}, and the program wants no redirect"),
                    ));
                }
                (Some(location), Redirects::Follow) => location,
            };
            let onward = redirect::onward((parts.status, location), &target, &method, headers)?;
            drop(received);
            let Onward {
                target: next,
                method: asked_next,
                headers: kept,
                keeps_body,
            } = onward;
            (target, method, headers) = (next, asked_next, kept);
            if !keeps_body {
                body = Sent::None;
            }
        }
        let why = format!(
            "for the {}th time, of at most {}",
            redirect::MOST + 1,
            redirect::MOST
        );
        Err(redirect::refused(&target, why))
    }

    async fn hop(
        &self,
        target: &Target,
        method: &Method,
        headers: &HeaderMap,
        body: SentBody,
    ) -> Result<(response::Parts, Received), Error> {
        let hop = Hop {
            network: &self.network,
            place: &self.admission.place,
            limits: &self.limits,
            target,
            method: method.clone(),
            headers: headers.clone(),
        };
        hop.send(body).await
    }
}

fn head(mut parts: response::Parts, target: &Target, is_redirected: bool) -> Head {
    let said = parts.extensions.get::<hyper::ext::ReasonPhrase>();
    let said = said.map(|said| {
        said.as_bytes()
            .iter()
            .map(|byte| char::from(*byte))
            .collect()
    });
    let usual = || {
        parts
            .status
            .canonical_reason()
            .unwrap_or_default()
            .to_owned()
    };
    Head {
        status: parts.status.as_u16(),
        reason: said.unwrap_or_else(usual),
        url: target.url().to_owned(),
        is_redirected,
        headers: std::mem::take(&mut parts.headers),
    }
}

/// The head of an answer, for all who wait for it.
#[derive(Debug, Default)]
struct Heard(Mutex<HeardState>);

#[derive(Debug, Default)]
struct HeardState {
    head: Option<Result<Head, Error>>,
    waiters: Vec<oneshot::Sender<Result<Head, Error>>>,
}

impl Heard {
    /// The head has come, or will not. Only the first counts.
    fn settle(&self, head: Result<Head, Error>) {
        let mut state = lock(&self.0);
        let head = state.head.get_or_insert(head).clone();
        for waiter in state.waiters.drain(..) {
            // A waiter that is gone needs no answer.
            drop(waiter.send(head.clone()));
        }
    }

    fn wait(&self) -> Future<HeadCome> {
        let mut state = lock(&self.0);
        if let Some(head) = &state.head {
            return Future::settled(HeadCome, head.clone());
        }
        let (sender, receiver) = oneshot::channel();
        state.waiters.retain(|waiter| !waiter.is_closed());
        state.waiters.push(sender);
        Future::new(HeadCome, receiver)
    }

    /// Why there is no head.
    fn failure(&self) -> Option<Error> {
        let state = lock(&self.0);
        state
            .head
            .as_ref()
            .and_then(|head| head.as_ref().err().cloned())
    }
}

/// A wait for the head of an answer, as the source of a future.
#[derive(Debug)]
pub struct HeadCome;

impl Operation for HeadCome {
    type Raw = Head;
    type Answer = Head;

    fn finish(&mut self, head: Head) -> Result<Head, Error> {
        Ok(head)
    }

    fn abandon(&mut self, _: Option<Result<Head, Error>>) {}
}

/// The longest time that a program can ask for, so that no sum overflows.
pub(crate) fn at_most_a_year(timeout_ms: u64) -> Duration {
    const YEAR_MS: u64 = 365 * 86_400_000;
    Duration::from_millis(timeout_ms.min(YEAR_MS))
}
