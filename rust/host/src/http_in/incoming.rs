//! A request as a server hands it over, and as a program holds it.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Response};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use pie_core::ErrorCode;
use tokio::sync::oneshot;

use super::answer::{AnswerBody, Answering};
use super::gone::{Client, ClientGone, Gone};
use crate::Error;
use crate::budget::{Account, Charge, Purpose};
use crate::futures::Future;
use crate::network::parts::{NextPart, Parts};
use crate::network::running::Running;

/// What a request holds beside its headers while it waits or is worked on: parts of both bodies, tasks and tables.
const REQUEST_BYTES: u64 = 64 << 10;
/// How often its headers are held: as they came, and as the program gets them.
const HEADS: u64 = 2;

/// A request as a server has read it.
pub struct ArrivedRequest {
    /// Its method.
    pub method: Method,
    /// The URL that the program sees: absolute, without what names the program.
    pub url: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// The address of the client.
    pub remote_address: String,
    /// Its body, whose errors the program gets.
    pub body: UnsyncBoxBody<Bytes, Error>,
}

impl fmt::Debug for ArrivedRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ArrivedRequest")
            .field("method", &self.method)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// The head of a request.
#[derive(Clone, Debug)]
pub(crate) struct RequestHead {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) remote_address: String,
}

/// A request that a program answers. One that is dropped without an answer gets none.
#[derive(Debug)]
pub struct IncomingRequest {
    pub(crate) head: RequestHead,
    pub(crate) answering: Answering,
    parts: Arc<Parts>,
    gone: Arc<Gone>,
    /// Where it goes once, should nobody take it.
    returns: Option<oneshot::Sender<Self>>,
    /// Reads the body.
    _reading: Running,
    _charge: Charge,
}

impl IncomingRequest {
    /// The request for a program, and the wait of whoever has asked.
    ///
    /// # Errors
    /// `limit-engine-memory`.
    pub(super) fn open(
        arrived: ArrivedRequest,
        account: &Account,
    ) -> Result<(Self, Asking), Error> {
        let ArrivedRequest {
            method,
            url,
            headers,
            remote_address,
            body,
        } = arrived;
        let header_bytes: usize = headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len())
            .sum();
        let n_bytes = REQUEST_BYTES + HEADS * (header_bytes + url.len()) as u64;
        let charge = account.charge(Purpose::Queue, n_bytes)?;
        let (gone, parts) = (Arc::<Gone>::default(), Arc::<Parts>::default());
        let (answering, answered) = Answering::new(&method, gone.clone(), account.clone());
        let reading = tokio::spawn(read(body, parts.clone()));
        let (returns, returned) = oneshot::channel();
        let request = Self {
            head: RequestHead {
                method,
                url,
                headers,
                remote_address,
            },
            answering,
            parts,
            gone: gone.clone(),
            returns: Some(returns),
            _reading: reading.into(),
            _charge: charge,
        };
        let asked = Asked {
            answered,
            client: Client::new(gone),
        };
        Ok((request, Asking { asked, returned }))
    }

    /// The next part of the body; none at its end.
    pub(crate) fn read(&self) -> Future<NextPart> {
        self.parts.next()
    }

    /// Waits until nobody wants the answer.
    pub(crate) fn gone(&self) -> Future<ClientGone> {
        self.gone.wait()
    }

    /// Its parts, for an instance that knows no handle of it: the head, the body, where it is answered, and what has to
    /// be kept meanwhile.
    pub(super) fn into_parts(
        self,
    ) -> (
        RequestHead,
        Arc<Parts>,
        Answering,
        Arc<Gone>,
        RequestResources,
    ) {
        let resources = RequestResources {
            _reading: self._reading,
            _charge: self._charge,
        };
        (self.head, self.parts, self.answering, self.gone, resources)
    }

    /// The program has ended without taking it: whoever has asked gets it back, to ask another instance. The second
    /// time it gets no answer.
    pub(super) fn give_back(mut self) {
        if let Some(returns) = self.returns.take() {
            // A client that has gone asks nobody else.
            drop(returns.send(self));
        }
    }

    /// True once nobody wants the answer.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.is_settled()
    }
}

/// What a request holds beside its parts.
#[derive(Debug)]
pub(crate) struct RequestResources {
    _reading: Running,
    _charge: Charge,
}

/// Hands the body on, part by part.
async fn read(mut body: UnsyncBoxBody<Bytes, Error>, parts: Arc<Parts>) {
    loop {
        match body.frame().await {
            // What stands behind the body is headers, which nobody reads.
            Some(Ok(frame)) => match frame.into_data() {
                Ok(bytes) if !bytes.is_empty() => parts.put(bytes).await,
                _ => {}
            },
            Some(Err(error)) => return parts.end(Err(error)),
            None => return parts.end(Ok(())),
        }
    }
}

/// The wait of whoever has asked. Dropping it tells the program that the client has gone.
#[derive(Debug)]
pub struct Asking {
    asked: Asked,
    returned: oneshot::Receiver<IncomingRequest>,
}

/// What became of a request.
#[derive(Debug)]
pub enum Outcome {
    /// The head of the answer, whose body comes as the program writes it.
    Answered(Response<AnswerBody>),
    /// The program has ended before it took the request, which another instance may answer.
    NotTaken(IncomingRequest, Asked),
}

impl Asking {
    /// Waits for the answer, or for the end of a program that has not taken the request.
    ///
    /// # Errors
    /// `http-no-answer` where the program ends, or drops the request, after it took it.
    pub async fn outcome(self) -> Result<Outcome, Error> {
        let Self {
            mut asked,
            returned,
        } = self;
        tokio::select! {
            biased;
            answered = &mut asked.answered => match answered {
                Ok(response) => Ok(Outcome::Answered(asked.hand_over(response))),
                Err(_) => Err(no_answer()),
            },
            Ok(request) = returned => Ok(Outcome::NotTaken(request, asked)),
        }
    }

    /// Waits for the head of the answer.
    ///
    /// # Errors
    /// `http-no-answer` where the program ends, or drops the request, without answering it.
    pub async fn answer(self) -> Result<Response<AnswerBody>, Error> {
        match self.outcome().await? {
            Outcome::Answered(response) => Ok(response),
            Outcome::NotTaken(request, asked) => {
                drop(request);
                asked.answer().await
            }
        }
    }
}

/// The wait of whoever has asked a second instance. Dropping it tells the program that the client has gone.
#[derive(Debug)]
pub struct Asked {
    answered: oneshot::Receiver<Response<AnswerBody>>,
    client: Client,
}

impl Asked {
    /// Waits for the head of the answer.
    ///
    /// # Errors
    /// `http-no-answer` where the program ends, or drops the request, without answering it.
    pub async fn answer(mut self) -> Result<Response<AnswerBody>, Error> {
        let response = (&mut self.answered).await.map_err(|_| no_answer())?;
        Ok(self.hand_over(response))
    }

    /// The body stands for the client from now on.
    fn hand_over(self, response: Response<AnswerBody>) -> Response<AnswerBody> {
        self.client.hand_over();
        response
    }
}

/// The error of a request that a program did not answer.
pub(super) fn no_answer() -> Error {
    Error::new(
        ErrorCode::HttpNoAnswer,
        "the program ended, or failed, without answering the request; its log says why",
    )
}
