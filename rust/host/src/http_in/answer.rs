//! The answer of a program to a request: its head at once, its body in parts, of which one waits.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use pie_core::ErrorCode;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use super::gone::{Client, Gone};
use crate::Error;
use crate::budget::{Account, Charge, Purpose};
use crate::futures::Future;
use crate::network::upload::Written;

/// Bytes that are handed on at once. Whoever sends them keeps a copy, for which nobody is charged: of a long part it
/// has one piece at a time, and the rest stays here, charged, until the client takes more.
const PIECE_BYTES: usize = 32 << 10;

/// A part of the body on its way.
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
        self.tell(Err(client_gone()));
    }
}

/// The body of an answer, for whoever sends it to the client. Dropping it tells the program that the client has gone.
pub struct AnswerBody {
    /// None where the answer has no body.
    parts: Option<mpsc::Receiver<Part>>,
    /// What is left of the part that is being handed on.
    rest: Option<Part>,
    is_whole: Arc<AtomicBool>,
    _client: Client,
}

impl fmt::Debug for AnswerBody {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AnswerBody").finish_non_exhaustive()
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = &mut *self;
        let Some(parts) = &mut this.parts else {
            return Poll::Ready(None);
        };
        let part = match this.rest.take() {
            Some(rest) => Some(rest),
            None => ready!(parts.poll_recv(context)),
        };
        let Some(mut part) = part else {
            return Poll::Ready(match this.is_whole.load(Ordering::Acquire) {
                true => None,
                false => Some(Err(broken_off())),
            });
        };
        let n_bytes = part.bytes.len().min(PIECE_BYTES);
        let piece = part.bytes.split_to(n_bytes);
        if part.bytes.is_empty() {
            part.tell(Ok(()));
        } else {
            this.rest = Some(part);
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.parts.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match self.parts {
            Some(_) => SizeHint::default(),
            None => SizeHint::with_exact(0),
        }
    }
}

/// How many requests a program has taken, and how many of them it has failed to answer.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    n_taken: AtomicU64,
    n_failed: AtomicU64,
}

impl Tally {
    /// True where the program has taken requests, and has failed to answer each of them. A request whose client has
    /// gone does not count as failed.
    pub(crate) fn has_only_failed(&self) -> bool {
        let n_taken = self.n_taken.load(Ordering::Relaxed);
        n_taken > 0 && n_taken == self.n_failed.load(Ordering::Relaxed)
    }
}

/// Where a program writes its answer.
#[derive(Debug)]
pub(crate) struct Answering {
    /// The answer to a HEAD has no body.
    is_head: bool,
    /// None once it has answered.
    asked: Option<oneshot::Sender<Response<AnswerBody>>>,
    gone: Arc<Gone>,
    body: BodyState,
    account: Account,
    /// That of the program that has taken the request; none while it waits.
    tally: Option<Arc<Tally>>,
}

/// How far the body of an answer has come.
///
/// | state | `respond` | `write` | `finish` |
/// |---|---|---|---|
/// | before the head | one of the next two | refused | refused |
/// | open | refused | open | complete |
/// | left out | refused | taken and dropped | complete |
/// | complete, or given up | refused | refused | complete |
#[derive(Debug)]
enum BodyState {
    BeforeHead,
    Open {
        parts: mpsc::Sender<Part>,
        is_whole: Arc<AtomicBool>,
    },
    /// The status or the method of the request allows none.
    LeftOut,
    Complete,
}

impl Answering {
    /// The answer to a request; what comes of it is the head, with the body.
    pub(crate) fn new(
        method: &Method,
        gone: Arc<Gone>,
        account: Account,
    ) -> (Self, oneshot::Receiver<Response<AnswerBody>>) {
        let (asked, answered) = oneshot::channel();
        let answering = Self {
            is_head: *method == Method::HEAD,
            asked: Some(asked),
            gone,
            body: BodyState::BeforeHead,
            account,
            tally: None,
        };
        (answering, answered)
    }

    /// A program has taken the request: what becomes of the answer counts in its tally.
    pub(super) fn count_in(&mut self, tally: &Arc<Tally>) {
        tally.n_taken.fetch_add(1, Ordering::Relaxed);
        self.tally = Some(tally.clone());
    }

    /// Answers with a head, whose body follows in parts.
    ///
    /// # Errors
    /// `invalid-argument` for a status that ends no request, and for a second head; `client-gone`.
    pub(crate) fn respond(&mut self, status: u32, headers: HeaderMap) -> Result<(), Error> {
        let parsed = u16::try_from(status)
            .ok()
            .and_then(|status| StatusCode::from_u16(status).ok());
        let status = parsed
            .filter(|parsed| (200..600).contains(&parsed.as_u16()))
            .ok_or_else(|| {
                invalid(&format!(
                    "{status} is not a status of an answer; give one from 200 to 599"
                ))
            })?;
        let Some(asked) = self.asked.take() else {
            return Err(invalid("the request was answered already; answer it once"));
        };
        let is_left_out = self.is_head || matches!(status.as_u16(), 204 | 205 | 304);
        let (parts, received) = mpsc::channel(1);
        let is_whole = Arc::new(AtomicBool::new(false));
        let body = AnswerBody {
            parts: (!is_left_out).then_some(received),
            rest: None,
            is_whole: is_whole.clone(),
            _client: Client::new(self.gone.clone()),
        };
        self.body = match is_left_out {
            true => BodyState::LeftOut,
            false => BodyState::Open { parts, is_whole },
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        // What comes back is dropped, which says that the client has gone.
        asked.send(response).map_err(|_| client_gone())
    }

    /// Hands on the next part of the body; what it gives says when it was taken.
    pub(crate) fn write(&mut self, part: Vec<u8>) -> Future<Written> {
        match self.begin_write(part) {
            Ok(Some(taken)) => Future::new(Written, taken),
            Ok(None) => Future::settled(Written, Ok(())),
            Err(error) => Future::settled(Written, Err(error)),
        }
    }

    fn begin_write(
        &self,
        part: Vec<u8>,
    ) -> Result<Option<oneshot::Receiver<Result<(), Error>>>, Error> {
        let parts = match &self.body {
            BodyState::BeforeHead => {
                return Err(invalid(
                    "the request was not answered yet; respond before writing the body",
                ));
            }
            BodyState::Complete => {
                return Err(invalid(
                    "the body of the answer is complete; write before finishing it",
                ));
            }
            BodyState::LeftOut => return Ok(None),
            BodyState::Open { .. } if part.is_empty() => return Ok(None),
            BodyState::Open { parts, .. } => parts,
        };
        let (sender, taken) = oneshot::channel();
        let part = Part {
            _charge: self.account.charge(Purpose::Queue, part.len() as u64)?,
            bytes: Bytes::from(part),
            taken: Some(sender),
        };
        match parts.try_send(part) {
            Ok(()) => Ok(Some(taken)),
            Err(TrySendError::Full(_)) => Err(invalid(
                "a part of the body was not taken yet; await its write before the next one",
            )),
            Err(TrySendError::Closed(_)) => Err(client_gone()),
        }
    }

    /// The body is complete.
    ///
    /// # Errors
    /// `invalid-argument` before the head.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        match std::mem::replace(&mut self.body, BodyState::Complete) {
            BodyState::BeforeHead => {
                self.body = BodyState::BeforeHead;
                return Err(invalid(
                    "the request was not answered yet; respond before finishing the body",
                ));
            }
            BodyState::Open { is_whole, parts } => {
                is_whole.store(true, Ordering::Release);
                drop(parts);
            }
            BodyState::LeftOut | BodyState::Complete => {}
        }
        Ok(())
    }
}

impl Answering {
    /// There is no answer, or no more of it.
    pub(crate) fn abandon(&mut self) {
        if let BodyState::BeforeHead | BodyState::Open { .. } = self.body {
            // It counts before whoever waits hears of it: a client that has heard goes.
            if let Some(tally) = self.tally.as_ref().filter(|_| !self.gone.is_settled()) {
                tally.n_failed.fetch_add(1, Ordering::Relaxed);
            }
            // Who waits for the rest hears that it is not whole.
            self.body = BodyState::Complete;
        }
        self.asked = None;
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.abandon();
    }
}

/// The error of an answer that nobody takes.
fn client_gone() -> Error {
    Error::new(
        ErrorCode::ClientGone,
        "the client has gone, or its time was over, before it had all of the answer; stop working on it",
    )
}

fn broken_off() -> Error {
    Error::new(
        ErrorCode::HttpNoAnswer,
        "the program ended in the middle of its answer; its log says why",
    )
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorCode::InvalidArgument, message)
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;
    use crate::budget::Budget;
    use crate::futures::Awaited;

    fn answering(method: &Method) -> (Answering, oneshot::Receiver<Response<AnswerBody>>) {
        let account = Budget::new(1 << 20, None).account("ada");
        Answering::new(method, Arc::default(), account)
    }

    #[tokio::test]
    async fn a_part_is_taken_when_the_client_takes_it() {
        let (mut answering, answered) = answering(&Method::GET);
        assert!(answering.write(b"early".to_vec()).take().unwrap().is_err());
        answering.respond(201, HeaderMap::new()).unwrap();
        let response = answered.await.unwrap();
        assert_eq!(response.status(), 201);
        let mut body = response.into_body();
        let mut first = answering.write(b"a".to_vec());
        assert!(first.take().is_none());
        let refused = answering.write(b"b".to_vec()).take().unwrap().unwrap_err();
        assert!(refused.message.contains("was not taken yet"));
        let part = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(part, "a");
        assert!(first.take().unwrap().is_ok());
        answering.finish().unwrap();
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn a_long_part_is_charged_until_its_last_piece_is_taken() {
        let budget = Budget::new(16 << 20, None);
        let account = budget.account("ada");
        let (mut answering, answered) = Answering::new(&Method::GET, Arc::default(), account);
        answering.respond(200, HeaderMap::new()).unwrap();
        let mut body = answered.await.unwrap().into_body();
        let mut written = answering.write(vec![7; 2 * PIECE_BYTES + 1]);
        for n_bytes in [PIECE_BYTES, PIECE_BYTES] {
            let piece = body.frame().await.unwrap().unwrap().into_data().unwrap();
            assert_eq!(piece.len(), n_bytes);
            assert!(budget.held_bytes() > 0 && written.take().is_none());
        }
        let piece = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(piece.len(), 1);
        assert!(written.take().unwrap().is_ok());
        assert_eq!(budget.held_bytes(), 0);
        // One that goes in the middle of a part does not have it.
        let mut written = answering.write(vec![7; PIECE_BYTES + 1]);
        body.frame().await.unwrap().unwrap();
        drop(body);
        let error = written.take().unwrap().unwrap_err();
        assert_eq!(error.code, ErrorCode::ClientGone);
        assert_eq!(budget.held_bytes(), 0);
    }

    #[tokio::test]
    async fn an_answer_that_is_dropped_is_not_whole() {
        let (mut answering, answered) = answering(&Method::GET);
        answering.respond(200, HeaderMap::new()).unwrap();
        let mut body = answered.await.unwrap().into_body();
        answering.abandon();
        assert!(answering.respond(200, HeaderMap::new()).is_err());
        let error = body.frame().await.unwrap().unwrap_err();
        assert_eq!(error.code, ErrorCode::HttpNoAnswer);
    }

    #[tokio::test]
    async fn only_what_a_program_has_failed_to_answer_counts_as_that() {
        let taken = |method: &Method| {
            let tally = Arc::<Tally>::default();
            let (mut answering, answered) = answering(method);
            answering.count_in(&tally);
            (tally, answering, answered)
        };
        let (tally, answering, _answered) = taken(&Method::GET);
        assert!(!tally.has_only_failed());
        drop(answering);
        assert!(tally.has_only_failed());
        let (tally, mut answering, answered) = taken(&Method::GET);
        answering.respond(200, HeaderMap::new()).unwrap();
        let _body = answered.await.unwrap().into_body();
        answering.abandon();
        // It counts once.
        drop(answering);
        assert!(tally.has_only_failed());
        let (tally, mut answering, answered) = taken(&Method::GET);
        answering.respond(200, HeaderMap::new()).unwrap();
        let _body = answered.await.unwrap().into_body();
        answering.finish().unwrap();
        drop(answering);
        assert!(!tally.has_only_failed());
        // Its client went before.
        let (tally, mut answering, answered) = taken(&Method::GET);
        answering.respond(200, HeaderMap::new()).unwrap();
        drop(answered.await.unwrap());
        answering.abandon();
        assert!(!tally.has_only_failed());
    }

    #[tokio::test]
    async fn a_client_that_goes_fails_the_writes() {
        let (mut answering, answered) = answering(&Method::GET);
        answering.respond(200, HeaderMap::new()).unwrap();
        let mut waiting = answering.write(b"a".to_vec());
        drop(answered.await.unwrap());
        let error = waiting.take().unwrap().unwrap_err();
        assert_eq!(error.code, ErrorCode::ClientGone);
        let error = answering.write(b"b".to_vec()).take().unwrap().unwrap_err();
        assert_eq!(error.code, ErrorCode::ClientGone);
        assert!(answering.gone.is_settled());
    }

    #[tokio::test]
    async fn what_has_no_body_takes_what_is_written() {
        for (method, status) in [(Method::HEAD, 200), (Method::GET, 204), (Method::GET, 304)] {
            let (mut answering, answered) = answering(&method);
            answering.respond(status, HeaderMap::new()).unwrap();
            let body = answered.await.unwrap().into_body();
            assert!(body.is_end_stream());
            assert!(answering.write(b"a".to_vec()).take().unwrap().is_ok());
            answering.finish().unwrap();
        }
    }

    #[test]
    fn only_what_ends_a_request_is_a_status() {
        for status in [0, 100, 101, 199, 600, 70_000] {
            let (mut answering, _answered) = answering(&Method::GET);
            let error = answering.respond(status, HeaderMap::new()).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidArgument);
        }
    }
}
