//! What a client tells a process: a bounded, ordered queue of messages.

#![expect(
    unreachable_pub,
    reason = "the generated bindings re-export the types behind handles, which must be public for that"
)]

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use pie_core::ErrorCode;
use tokio::sync::oneshot;

use crate::Error;
use crate::interface::futures::Source;
use crate::sync::lock;

/// The queue between a client and the `receive` calls of a program. A message goes to exactly one of them, in the order of the calls.
#[derive(Debug)]
pub(crate) struct Mailbox {
    capacity: usize,
    message_bytes: usize,
    state: Mutex<State>,
    room: Condvar,
}

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<String>,
    waiters: VecDeque<oneshot::Sender<Result<String, Error>>>,
    closed: bool,
}

impl Mailbox {
    /// A queue of at most `capacity` messages of at most `message_bytes` each.
    pub(crate) fn new(capacity: usize, message_bytes: usize) -> Self {
        Self {
            capacity,
            message_bytes,
            state: Mutex::default(),
            room: Condvar::new(),
        }
    }

    /// Adds a message.
    ///
    /// # Errors
    /// `limit-message` for one that is too long, `limit-queue` when too many wait, `session-closed` after `close`.
    pub(crate) fn send(&self, message: String) -> Result<(), Error> {
        if message.len() > self.message_bytes {
            return Err(Error::new(
                ErrorCode::LimitMessage,
                format!(
                    "a message of {} bytes is longer than message_bytes = {}; send it in parts",
                    message.len(),
                    self.message_bytes
                ),
            ));
        }
        let mut state = lock(&self.state);
        if state.closed {
            return Err(Error::new(
                ErrorCode::SessionClosed,
                "the input of the process was closed; nothing can be sent to it",
            ));
        }
        let mut message = Ok(message);
        while let Some(waiter) = state.waiters.pop_front() {
            match waiter.send(message) {
                Ok(()) => return Ok(()),
                // Its receiver was dropped: the message is for the next one.
                Err(back) => message = back,
            }
        }
        if state.messages.len() >= self.capacity {
            return Err(Error::new(
                ErrorCode::LimitQueue,
                format!(
                    "{} messages wait for the program, the most that its queue holds; send more after it has received some",
                    self.capacity
                ),
            ));
        }
        state.messages.extend(message);
        Ok(())
    }

    /// Waits at most `timeout` until a message can be added, or will never be; false when the time is over.
    pub(crate) fn wait_for_room(&self, timeout: Duration) -> bool {
        let full = |state: &mut State| !state.closed && state.messages.len() >= self.capacity;
        let waited = self
            .room
            .wait_timeout_while(lock(&self.state), timeout, full);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// The client has gone: after what waits, every `receive` answers `session-closed`.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        self.room.notify_all();
        for waiter in state.waiters.drain(..) {
            // A waiter that is gone needs no answer.
            drop(waiter.send(Err(disconnected())));
        }
    }

    /// The place of one `receive` call in the queue.
    pub(crate) fn receive(&self) -> oneshot::Receiver<Result<String, Error>> {
        let (sender, receiver) = oneshot::channel();
        let mut state = lock(&self.state);
        let answer = match state.messages.pop_front() {
            Some(message) => {
                self.room.notify_one();
                Ok(message)
            }
            None if state.closed => Err(disconnected()),
            None => {
                state.waiters.retain(|waiter| !waiter.is_closed());
                state.waiters.push_back(sender);
                return receiver;
            }
        };
        // The receiver is at hand, so that the answer arrives.
        drop(sender.send(answer));
        receiver
    }

    /// Puts a message back in front that a cancelled `receive` was given.
    fn give_back(&self, message: String) {
        let mut state = lock(&self.state);
        let mut message = Ok(message);
        while let Some(waiter) = state.waiters.pop_front() {
            match waiter.send(message) {
                Ok(()) => return,
                Err(back) => message = back,
            }
        }
        if let Ok(message) = message {
            state.messages.push_front(message);
        }
    }
}

/// One `receive` call as the source of a future: cancelling it loses no message.
#[derive(Debug)]
pub struct Receive(pub(crate) Arc<Mailbox>);

impl Source for Receive {
    type Raw = String;
    type Answer = String;

    fn finish(&mut self, raw: String) -> Result<String, Error> {
        Ok(raw)
    }

    fn abandon(&mut self, answer: Option<Result<String, Error>>) {
        if let Some(Ok(message)) = answer {
            self.0.give_back(message);
        }
    }
}

fn disconnected() -> Error {
    Error::new(
        ErrorCode::SessionClosed,
        "the client has disconnected; no further message will come",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mailbox() -> Mailbox {
        Mailbox::new(2, 10)
    }

    #[tokio::test]
    async fn messages_come_in_order_to_the_calls_in_order() {
        let mailbox = mailbox();
        let (first, second) = (mailbox.receive(), mailbox.receive());
        mailbox.send("a".to_owned()).unwrap();
        mailbox.send("b".to_owned()).unwrap();
        assert_eq!(first.await.unwrap().unwrap(), "a");
        assert_eq!(second.await.unwrap().unwrap(), "b");
    }

    #[tokio::test]
    async fn a_call_that_is_gone_is_passed_over() {
        let mailbox = mailbox();
        drop(mailbox.receive());
        let second = mailbox.receive();
        mailbox.send("a".to_owned()).unwrap();
        assert_eq!(second.await.unwrap().unwrap(), "a");
    }

    #[tokio::test]
    async fn what_was_given_back_comes_first() {
        let mailbox = mailbox();
        mailbox.send("b".to_owned()).unwrap();
        mailbox.give_back("a".to_owned());
        assert_eq!(mailbox.receive().await.unwrap().unwrap(), "a");
        assert_eq!(mailbox.receive().await.unwrap().unwrap(), "b");
    }

    #[tokio::test]
    async fn after_a_disconnect_what_waits_is_still_received() {
        let mailbox = mailbox();
        mailbox.send("a".to_owned()).unwrap();
        mailbox.close();
        assert_eq!(mailbox.receive().await.unwrap().unwrap(), "a");
        assert_eq!(
            mailbox.receive().await.unwrap().unwrap_err().code,
            ErrorCode::SessionClosed
        );
        assert_eq!(
            mailbox.send("b".to_owned()).unwrap_err().code,
            ErrorCode::SessionClosed
        );
    }

    #[test]
    fn the_queue_is_bounded_and_says_so() {
        let mailbox = mailbox();
        mailbox.send("a".to_owned()).unwrap();
        mailbox.send("b".to_owned()).unwrap();
        assert_eq!(
            mailbox.send("c".to_owned()).unwrap_err().code,
            ErrorCode::LimitQueue
        );
        assert_eq!(
            mailbox.send("x".repeat(11)).unwrap_err().code,
            ErrorCode::LimitMessage
        );
    }
}
