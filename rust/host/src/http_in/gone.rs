//! Whether somebody still wants the answer to a request.

#![expect(
    unreachable_pub,
    reason = "the generated bindings re-export the types behind handles, which must be public for that"
)]

use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use crate::Error;
use crate::futures::{Future, Operation};
use crate::sync::lock;

/// Tells, once, that nobody wants the answer to a request any more: its client has gone, or has all of it.
#[derive(Debug, Default)]
pub(crate) struct Gone(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_gone: bool,
    waiters: Vec<oneshot::Sender<Result<(), Error>>>,
}

impl Gone {
    /// Nobody wants the answer any more. Again it does nothing.
    pub(crate) fn settle(&self) {
        let mut state = lock(&self.0);
        state.is_gone = true;
        for waiter in state.waiters.drain(..) {
            // A waiter that is gone needs no answer.
            drop(waiter.send(Ok(())));
        }
    }

    /// True once nobody wants the answer.
    pub(crate) fn is_settled(&self) -> bool {
        lock(&self.0).is_gone
    }

    /// Waits until nobody wants the answer.
    pub(crate) fn wait(&self) -> Future<ClientGone> {
        let mut state = lock(&self.0);
        if state.is_gone {
            return Future::settled(ClientGone, Ok(()));
        }
        let (sender, receiver) = oneshot::channel();
        state.waiters.retain(|waiter| !waiter.is_closed());
        state.waiters.push(sender);
        Future::new(ClientGone, receiver)
    }
}

/// Somebody who wants the answer to a request, until this is dropped.
#[derive(Debug)]
pub(crate) struct Client(Option<Arc<Gone>>);

impl Client {
    pub(crate) const fn new(gone: Arc<Gone>) -> Self {
        Self(Some(gone))
    }

    /// Somebody else wants the answer from now on.
    pub(crate) fn hand_over(mut self) {
        self.0 = None;
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(gone) = &self.0 {
            gone.settle();
        }
    }
}

/// A wait until nobody wants the answer to a request, as the source of a future.
#[derive(Debug)]
pub struct ClientGone;

impl Operation for ClientGone {
    type Raw = ();
    type Answer = ();

    fn finish(&mut self, (): ()) -> Result<(), Error> {
        Ok(())
    }

    fn abandon(&mut self, _: Option<Result<(), Error>>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::futures::Awaited;

    #[test]
    fn who_waits_hears_of_it_before_and_after() {
        let gone = Arc::new(Gone::default());
        let client = Client::new(gone.clone());
        let mut before = gone.wait();
        assert!(before.take().is_none());
        Client::new(gone.clone()).hand_over();
        assert!(!gone.is_settled());
        drop(client);
        assert!(gone.is_settled());
        assert!(before.take().unwrap().is_ok() && gone.wait().take().unwrap().is_ok());
    }
}
