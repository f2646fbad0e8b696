//! What a client tells a process: bounded, ordered queues, one of messages and one of files.

#![expect(
    unreachable_pub,
    reason = "the generated bindings re-export the types behind handles, which must be public for that"
)]

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use pie_core::ErrorCode;
use tokio::sync::oneshot;

use super::queue::Capacity;
use crate::Error;
use crate::futures::{Future, Operation};
use crate::stepped_charge::SteppedCharge;
use crate::sync::lock;

/// What `receive` says once the client has gone.
pub(crate) const DISCONNECTED: &str = "the client has disconnected; no further message will come";
/// The same in a child, which never had one.
pub(crate) const NO_CLIENT: &str = "this program was started by another one and has no client, so that no message will come; it gets values by its input, which the parent gives to `spawn`, and by a topic: `messaging.pull` takes what the parent pushes";

/// What one message carries.
pub trait Payload: AsRef<[u8]> + std::fmt::Debug + Send + 'static {
    /// What people call such messages: one, and several.
    const NAMES: [&'static str; 2];
}

impl Payload for String {
    const NAMES: [&'static str; 2] = ["message", "messages"];
}

impl Payload for Vec<u8> {
    const NAMES: [&'static str; 2] = ["file", "files"];
}

/// The queue between a client and the `receive` calls of a program. A message goes to exactly one of them, in the order
/// of the calls.
#[derive(Debug)]
pub(crate) struct Mailbox<P> {
    capacity: Capacity,
    message_bytes: usize,
    state: Mutex<State<P>>,
    room: Condvar,
}

/// A message with its place among all that were sent.
#[derive(Debug)]
pub struct Message<P> {
    number: u64,
    payload: P,
}

#[derive(Debug)]
struct State<P> {
    /// In the order of their numbers.
    messages: VecDeque<Message<P>>,
    waiters: VecDeque<oneshot::Sender<Result<Message<P>, Error>>>,
    n_sent: u64,
    /// Messages that the program has not taken, and their bytes: those in the queue, and those that answered a
    /// `receive` whose future still holds them.
    n_untaken: usize,
    untaken_bytes: usize,
    /// What they are charged with.
    holding: SteppedCharge,
    /// Why no more will come; none while some may.
    closed: Option<&'static str>,
}

impl<P: Payload> Mailbox<P> {
    /// A queue of messages of at most `message_bytes` each, charged to `holding`.
    pub(crate) fn new(capacity: Capacity, message_bytes: usize, holding: SteppedCharge) -> Self {
        Self {
            capacity,
            message_bytes,
            state: Mutex::new(State {
                messages: VecDeque::new(),
                waiters: VecDeque::new(),
                n_sent: 0,
                n_untaken: 0,
                untaken_bytes: 0,
                holding,
                closed: None,
            }),
            room: Condvar::new(),
        }
    }

    /// Adds a message.
    ///
    /// # Errors
    /// `limit-message` for one that is too long, `limit-queue` when too many or too long ones wait,
    /// `limit-engine-memory` where the user of the process has no room for it, `session-closed` after `close`.
    pub(crate) fn send(&self, payload: P) -> Result<(), Error> {
        let n_bytes = payload.as_ref().len();
        let [one, several] = P::NAMES;
        if n_bytes > self.message_bytes {
            return Err(Error::new(
                ErrorCode::LimitMessage,
                format!(
                    "a {one} of {n_bytes} bytes is longer than message_bytes = {}; send it in parts",
                    self.message_bytes
                ),
            ));
        }
        let mut state = lock(&self.state);
        if state.closed.is_some() {
            return Err(Error::new(
                ErrorCode::SessionClosed,
                "the input of the process was closed; nothing can be sent to it",
            ));
        }
        if self.is_full(&state) {
            return Err(Error::new(
                ErrorCode::LimitQueue,
                format!(
                    "{} {several} of {} bytes wait for the program, whose queue is full at queue_events = {} or queue_bytes = {}; send more after it has received some",
                    state.n_untaken,
                    state.untaken_bytes,
                    self.capacity.entries,
                    self.capacity.bytes
                ),
            ));
        }
        let held_bytes = state.untaken_bytes + n_bytes;
        state.holding.set(held_bytes)?;
        let number = state.n_sent;
        state.n_sent += 1;
        state.n_untaken += 1;
        state.untaken_bytes += n_bytes;
        state.deliver(Message { number, payload });
        Ok(())
    }

    fn is_full(&self, state: &State<P>) -> bool {
        state.n_untaken >= self.capacity.entries || state.untaken_bytes >= self.capacity.bytes
    }

    /// Waits at most `timeout` until a message can be added, or will never be; false when the time is over.
    pub(crate) fn wait_for_room(&self, timeout: Duration) -> bool {
        let full = |state: &mut State<P>| state.closed.is_none() && self.is_full(state);
        let waited = self
            .room
            .wait_timeout_while(lock(&self.state), timeout, full);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// The client has gone, or there never was one: after what waits, every `receive` answers `session-closed` with
    /// `why`. The first reason stays.
    pub(crate) fn close(&self, why: &'static str) {
        let mut state = lock(&self.state);
        let why = *state.closed.get_or_insert(why);
        self.room.notify_all();
        for waiter in state.waiters.drain(..) {
            // A waiter that is gone needs no answer.
            drop(waiter.send(Err(closed(why))));
        }
    }

    /// The program has gone: what waits for it is dropped, and nothing more can be sent.
    pub(crate) fn discard(&self) {
        self.close(DISCONNECTED);
        let mut state = lock(&self.state);
        state.messages = VecDeque::new();
        state.holding.shrink(0);
    }

    /// The place of one `receive` call in the queue.
    fn receive(&self) -> oneshot::Receiver<Result<Message<P>, Error>> {
        let (sender, receiver) = oneshot::channel();
        let mut state = lock(&self.state);
        let answer = match (state.messages.pop_front(), state.closed) {
            (Some(message), _) => Ok(message),
            (None, Some(why)) => Err(closed(why)),
            (None, None) => {
                state.waiters.retain(|waiter| !waiter.is_closed());
                state.waiters.push_back(sender);
                return receiver;
            }
        };
        // The receiver is at hand, so that the answer arrives.
        drop(sender.send(answer));
        receiver
    }

    /// The program has taken a message: there is room for another.
    fn take(&self, message: Message<P>) -> P {
        let mut state = lock(&self.state);
        state.n_untaken -= 1;
        state.untaken_bytes -= message.payload.as_ref().len();
        let held_bytes = state.untaken_bytes;
        state.holding.shrink(held_bytes);
        self.room.notify_all();
        message.payload
    }

    /// Takes a message back that a cancelled `receive` was given.
    fn give_back(&self, message: Message<P>) {
        lock(&self.state).deliver(message);
    }
}

impl<P> State<P> {
    /// Gives a message to the first `receive` that waits, or to its place in the queue.
    fn deliver(&mut self, message: Message<P>) {
        let mut message = Ok(message);
        while let Some(waiter) = self.waiters.pop_front() {
            match waiter.send(message) {
                Ok(()) => return,
                // Its receiver was dropped: the message is for the next one.
                Err(back) => message = back,
            }
        }
        if let Ok(message) = message {
            let place = self
                .messages
                .partition_point(|other| other.number < message.number);
            self.messages.insert(place, message);
        }
    }
}

/// One `receive` call as the source of a future: cancelling it loses no message.
#[derive(Debug)]
pub struct Receive<P>(Arc<Mailbox<P>>);

/// The future of one `receive` call.
pub(crate) fn receive<P: Payload>(mailbox: &Arc<Mailbox<P>>) -> Future<Receive<P>> {
    Future::new(Receive(mailbox.clone()), mailbox.receive())
}

impl<P: Payload> Operation for Receive<P> {
    type Raw = Message<P>;
    type Answer = P;

    fn finish(&mut self, message: Message<P>) -> Result<P, Error> {
        Ok(self.0.take(message))
    }

    fn abandon(&mut self, answer: Option<Result<Message<P>, Error>>) {
        if let Some(Ok(message)) = answer {
            self.0.give_back(message);
        }
    }
}

fn closed(why: &'static str) -> Error {
    Error::new(ErrorCode::SessionClosed, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, Purpose};
    use crate::futures::Awaited;

    fn mailbox() -> Arc<Mailbox<String>> {
        let capacity = Capacity {
            entries: 3,
            bytes: 20,
        };
        let budget = Budget::new(16 << 20, None);
        let holding = SteppedCharge::new(budget.account("").empty(Purpose::Queue));
        Arc::new(Mailbox::new(capacity, 10, holding))
    }

    fn send(mailbox: &Mailbox<String>, message: &str) -> Result<(), ErrorCode> {
        mailbox.send(message.to_owned()).map_err(|error| error.code)
    }

    /// What a `receive` has got, if anything.
    fn got(mut future: Future<Receive<String>>) -> Option<Result<String, ErrorCode>> {
        future
            .take()
            .map(|answer| answer.map_err(|error| error.code))
    }

    fn text(text: &str) -> Option<Result<String, ErrorCode>> {
        Some(Ok(text.to_owned()))
    }

    #[test]
    fn messages_come_in_order_to_the_calls_in_order() {
        let mailbox = mailbox();
        let (first, second) = (receive(&mailbox), receive(&mailbox));
        send(&mailbox, "a").unwrap();
        send(&mailbox, "b").unwrap();
        assert_eq!(got(second), text("b"));
        assert_eq!(got(first), text("a"));
        assert_eq!(got(receive(&mailbox)), None);
    }

    #[test]
    fn a_call_that_is_gone_is_passed_over() {
        let mailbox = mailbox();
        drop(receive(&mailbox));
        let second = receive(&mailbox);
        send(&mailbox, "a").unwrap();
        assert_eq!(got(second), text("a"));
    }

    #[test]
    fn what_was_given_back_takes_its_place_again() {
        for first_drop in [0, 1] {
            let mailbox = mailbox();
            let mut calls = vec![receive(&mailbox), receive(&mailbox)];
            for message in ["a", "b", "c"] {
                send(&mailbox, message).unwrap();
            }
            drop(calls.remove(first_drop));
            drop(calls);
            for message in ["a", "b", "c"] {
                assert_eq!(got(receive(&mailbox)), text(message));
            }
        }
    }

    #[test]
    fn what_was_given_back_goes_to_a_call_that_waits() {
        let mailbox = mailbox();
        let (first, second) = (receive(&mailbox), receive(&mailbox));
        send(&mailbox, "a").unwrap();
        drop(first);
        assert_eq!(got(second), text("a"));
    }

    #[test]
    fn after_a_disconnect_what_waits_is_still_received() {
        let mailbox = mailbox();
        send(&mailbox, "a").unwrap();
        mailbox.close(DISCONNECTED);
        assert_eq!(got(receive(&mailbox)), text("a"));
        assert_eq!(got(receive(&mailbox)), Some(Err(ErrorCode::SessionClosed)));
        assert_eq!(send(&mailbox, "b"), Err(ErrorCode::SessionClosed));
    }

    #[test]
    fn whoever_has_no_client_is_told_of_what_there_is_instead() {
        let mailbox = mailbox();
        let waiting = receive(&mailbox);
        mailbox.close(NO_CLIENT);
        mailbox.close(DISCONNECTED);
        for mut future in [waiting, receive(&mailbox)] {
            let told = future.take().unwrap().unwrap_err();
            assert_eq!(told.code, ErrorCode::SessionClosed);
            assert!(told.message.contains("messaging.pull"), "{told}");
        }
    }

    #[test]
    fn messages_are_bounded_by_number_and_by_bytes() {
        for message in ["a", "0123456789"] {
            let mailbox = mailbox();
            while send(&mailbox, message).is_ok() {}
            assert_eq!(send(&mailbox, message), Err(ErrorCode::LimitQueue));
            assert!(!mailbox.wait_for_room(Duration::ZERO));
            assert_eq!(got(receive(&mailbox)), text(message));
            assert!(mailbox.wait_for_room(Duration::ZERO));
            send(&mailbox, message).unwrap();
        }
        assert_eq!(
            send(&mailbox(), "0123456789a"),
            Err(ErrorCode::LimitMessage)
        );
    }

    #[test]
    fn messages_that_calls_hold_without_taking_them_count() {
        let mailbox = mailbox();
        let calls: Vec<_> = (0..5).map(|_| receive(&mailbox)).collect();
        send(&mailbox, "0123456789").unwrap();
        send(&mailbox, "0123456789").unwrap();
        assert_eq!(send(&mailbox, ""), Err(ErrorCode::LimitQueue));
        drop(calls);
        assert_eq!(send(&mailbox, ""), Err(ErrorCode::LimitQueue));
        assert_eq!(got(receive(&mailbox)), text("0123456789"));
        send(&mailbox, "").unwrap();
    }
}
