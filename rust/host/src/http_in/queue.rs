//! The requests that wait for one program.

#![expect(
    unreachable_pub,
    reason = "the generated bindings re-export the types behind handles, which must be public for that"
)]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use pie_core::ErrorCode;
use tokio::sync::oneshot;
use wasmtime_wasi::p2::Pollable as _;

use super::answer::Tally;
use super::incoming::{ArrivedRequest, Asking, IncomingRequest, no_answer};
use crate::Error;
use crate::budget::Account;
use crate::futures::{Awaited as _, Future, Operation};
use crate::sync::lock;

type Answer = Result<Option<IncomingRequest>, Error>;

/// The queue between a server and a program that serves HTTP. A request goes to one call of the program, in the order
/// in which they came; one whose client has gone goes to none.
#[derive(Debug)]
pub struct RequestQueue {
    /// Requests that may wait.
    most: usize,
    /// Who pays for them.
    account: Account,
    /// Of the requests that the program has taken.
    tally: Arc<Tally>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<IncomingRequest>,
    /// Calls of the program that wait for one.
    calls: VecDeque<oneshot::Sender<Answer>>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    /// What waits is still taken, and no more comes.
    Ending,
    /// The program has ended.
    Closed,
}

impl State {
    /// Gives a request to the call that waits longest; back where none does.
    fn hand(&mut self, mut request: IncomingRequest) -> Option<IncomingRequest> {
        while let Some(call) = self.calls.pop_front() {
            match call.send(Ok(Some(request))) {
                Ok(()) => return None,
                Err(Ok(Some(refused))) => request = refused,
                // It gives back what it was given.
                Err(_) => return None,
            }
        }
        Some(request)
    }
}

impl RequestQueue {
    /// A queue of at most so many requests that wait, which are charged to `account`.
    pub fn new(most: usize, account: Account) -> Arc<Self> {
        Arc::new(Self {
            most,
            account,
            tally: Arc::default(),
            state: Mutex::default(),
        })
    }

    /// Adds a request.
    ///
    /// # Errors
    /// `limit-http-requests` where too many wait, `limit-engine-memory` where the user of the program has no room for
    /// it, `http-no-answer` once the program has ended.
    pub fn enter(&self, arrived: ArrivedRequest) -> Result<Asking, Error> {
        let (request, asking) = IncomingRequest::open(arrived, &self.account)?;
        self.enter_again(request)?;
        Ok(asking)
    }

    /// Adds a request that another instance has not taken.
    ///
    /// # Errors
    /// `limit-http-requests` where too many wait, `http-no-answer` once the program has ended.
    pub fn enter_again(&self, request: IncomingRequest) -> Result<(), Error> {
        let mut state = lock(&self.state);
        if state.phase != Phase::Open {
            return Err(no_answer());
        }
        let Some(request) = state.hand(request) else {
            return Ok(());
        };
        let left: VecDeque<_> = std::mem::take(&mut state.waiting);
        state.waiting = left.into_iter().filter(|one| !one.is_gone()).collect();
        if state.waiting.len() >= self.most {
            return Err(Error::new(
                ErrorCode::LimitHttpRequests,
                format!(
                    "{} requests wait for the program, the most that server.http_queue allows; come back later, or raise the limit",
                    self.most
                ),
            ));
        }
        state.waiting.push_back(request);
        Ok(())
    }

    /// True while the program may take requests.
    pub fn is_open(&self) -> bool {
        lock(&self.state).phase == Phase::Open
    }

    /// No more requests come: the program takes those that wait, and is told so then.
    pub fn end(&self) {
        let mut state = lock(&self.state);
        if state.phase == Phase::Open {
            state.phase = Phase::Ending;
        }
        for call in state.calls.drain(..) {
            // A call that is gone needs no answer.
            drop(call.send(Ok(None)));
        }
    }

    /// The program has ended: whoever has asked gets back what waits.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        state.phase = Phase::Closed;
        let left = (
            std::mem::take(&mut state.waiting),
            std::mem::take(&mut state.calls),
        );
        drop(state);
        let (waiting, calls) = left;
        drop(calls);
        for request in waiting {
            request.give_back();
        }
    }

    /// True where the program has taken requests, and has answered none of them though their clients waited.
    pub(crate) fn has_only_failed(&self) -> bool {
        self.tally.has_only_failed()
    }

    /// The next request; none when no more come.
    pub(crate) fn next(self: &Arc<Self>) -> Future<NextRequest> {
        let source = NextRequest(Some(self.clone()));
        let mut state = lock(&self.state);
        while let Some(request) = state.waiting.pop_front() {
            if !request.is_gone() {
                return Future::settled(source, Ok(Some(request)));
            }
        }
        if state.phase != Phase::Open {
            return Future::settled(source, Ok(None));
        }
        let (sender, receiver) = oneshot::channel();
        state.calls.retain(|call| !call.is_closed());
        state.calls.push_back(sender);
        Future::new(source, receiver)
    }
}

impl RequestQueue {
    /// Waits for the next request; none when no more come.
    pub(crate) async fn taken(self: &Arc<Self>) -> Option<IncomingRequest> {
        let mut next = self.next();
        loop {
            next.ready().await;
            match next.take() {
                Some(Ok(request)) => return request,
                Some(Err(_)) => return None,
                None => {}
            }
        }
    }
}

/// A wait for the next request, as the source of a future.
#[derive(Debug)]
pub struct NextRequest(Option<Arc<RequestQueue>>);

impl NextRequest {
    /// That of a program to which nobody sends any.
    pub(crate) fn refused(error: Error) -> Future<Self> {
        Future::settled(Self(None), Err(error))
    }
}

impl Operation for NextRequest {
    type Raw = Option<IncomingRequest>;
    type Answer = Option<IncomingRequest>;

    fn finish(&mut self, mut request: Option<IncomingRequest>) -> Result<Self::Answer, Error> {
        if let (Some(queue), Some(request)) = (&self.0, &mut request) {
            request.answering.count_in(&queue.tally);
        }
        Ok(request)
    }

    /// A wait that was given up takes none.
    fn abandon(&mut self, answer: Option<Answer>) {
        let (Some(queue), Some(Ok(Some(request)))) = (&self.0, answer) else {
            return;
        };
        let mut state = lock(&queue.state);
        if state.phase == Phase::Closed {
            drop(state);
            request.give_back();
        } else if let Some(request) = state.hand(request) {
            state.waiting.push_front(request);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};
    use http_body_util::{BodyExt, Empty};

    use super::*;
    use crate::budget::Budget;
    use crate::futures::Awaited;
    use crate::http_in::incoming::Outcome;

    fn arrived(url: &str) -> ArrivedRequest {
        ArrivedRequest {
            method: Method::GET,
            url: url.to_owned(),
            headers: HeaderMap::new(),
            remote_address: "127.0.0.1".to_owned(),
            body: Empty::new().map_err(|never| match never {}).boxed_unsync(),
        }
    }

    fn queue(most: usize) -> Arc<RequestQueue> {
        RequestQueue::new(most, Budget::new(16 << 20, None).account("ada"))
    }

    fn taken(queue: &Arc<RequestQueue>) -> IncomingRequest {
        queue.next().take().unwrap().unwrap().unwrap()
    }

    #[tokio::test]
    async fn requests_come_in_order_and_those_of_clients_who_have_gone_do_not() {
        let queue = queue(3);
        let _first = queue.enter(arrived("http://a/1")).unwrap();
        drop(queue.enter(arrived("http://a/2")).unwrap());
        let _third = queue.enter(arrived("http://a/3")).unwrap();
        let _fourth = queue.enter(arrived("http://a/4")).unwrap();
        let error = queue.enter(arrived("http://a/5")).unwrap_err();
        assert_eq!(error.code, ErrorCode::LimitHttpRequests);
        let urls: Vec<_> = (0..3).map(|_| taken(&queue).head.url).collect();
        assert_eq!(urls, ["http://a/1", "http://a/3", "http://a/4"]);
    }

    #[tokio::test]
    async fn a_wait_that_is_given_up_loses_nothing() {
        let queue = queue(1);
        let (first, second) = (queue.next(), queue.next());
        drop(first);
        let _asking = queue.enter(arrived("http://a/1")).unwrap();
        // The request was handed to the second, which nobody asks.
        drop(second);
        assert_eq!(taken(&queue).head.url, "http://a/1");
    }

    #[tokio::test]
    async fn a_queue_that_ends_gives_what_waits_and_then_none() {
        let queue = queue(1);
        let asking = queue.enter(arrived("http://a/1")).unwrap();
        queue.end();
        assert!(!queue.is_open());
        let request = taken(&queue);
        assert!(queue.next().take().unwrap().unwrap().is_none());
        assert!(queue.enter(arrived("http://a/2")).is_err());
        drop(request);
        let error = asking.answer().await.unwrap_err();
        assert_eq!(error.code, ErrorCode::HttpNoAnswer);
    }

    #[tokio::test]
    async fn what_waits_for_a_program_that_ends_gets_no_answer() {
        let budget = Budget::new(16 << 20, None);
        let queue = RequestQueue::new(2, budget.account("ada"));
        let asking = queue.enter(arrived("http://a/1")).unwrap();
        queue.close();
        assert_eq!(
            asking.answer().await.unwrap_err().code,
            ErrorCode::HttpNoAnswer
        );
        assert!(queue.enter(arrived("http://a/2")).is_err());
        assert_eq!(budget.held_bytes(), 0);
    }

    #[tokio::test]
    async fn a_program_that_has_answered_none_of_its_requests_has_failed() {
        let queue = queue(2);
        let asking = queue.enter(arrived("http://a/1")).unwrap();
        assert!(!queue.has_only_failed());
        drop(taken(&queue));
        assert!(queue.has_only_failed());
        assert!(asking.answer().await.is_err());
        // A second one is answered.
        let asking = queue.enter(arrived("http://a/2")).unwrap();
        let mut request = taken(&queue);
        request.answering.respond(204, HeaderMap::new()).unwrap();
        request.answering.finish().unwrap();
        assert!(asking.answer().await.is_ok() && !queue.has_only_failed());
    }

    #[tokio::test]
    async fn what_was_not_taken_goes_to_another_instance_once() {
        let budget = Budget::new(16 << 20, None);
        let [first, second] = [(); 2].map(|()| RequestQueue::new(2, budget.account("ada")));
        let asking = first.enter(arrived("http://a/1")).unwrap();
        first.close();
        let Ok(Outcome::NotTaken(request, asked)) = asking.outcome().await else {
            panic!("it was not taken");
        };
        second.enter_again(request).unwrap();
        second.close();
        let error = asked.answer().await.unwrap_err();
        assert_eq!(error.code, ErrorCode::HttpNoAnswer);
        assert_eq!(budget.held_bytes(), 0);
    }
}
