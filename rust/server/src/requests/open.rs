//! Requests that are open, and their answers.
//!
//! | state of a request | counted by | next |
//! |---|---|---|
//! | worked on | [`OPEN_REQUESTS`]: one more is refused | its answer waits |
//! | answered, not written | the same, and the bytes of the answer; one more request waits | written: the id is free |

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use pie_host::{Account, Error, Purpose};
use serde_json::Value;
use tokio::sync::Notify;

use super::Answer;
use crate::connection::writer::{self, Outbox, Room};
use crate::protocol::body::Body;
use crate::protocol::{OPEN_REQUESTS, outgoing, violation};
use crate::shared::lock;
use crate::wire::SMALL_BYTES;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Working,
    Answered,
}

/// The open requests of one connection.
#[derive(Debug, Default)]
struct Open {
    by_id: Mutex<HashMap<u64, State>>,
    /// An answer is written.
    written: Notify,
}

/// The answers of one connection.
#[derive(Clone)]
pub(super) struct Replies {
    outbox: Outbox,
    account: Account,
    open: Arc<Open>,
}

impl Replies {
    pub(super) fn new(outbox: Outbox, account: Account) -> Self {
        Self {
            outbox,
            account,
            open: Arc::default(),
        }
    }

    /// Notes that a request is open. Where too many are and some of them wait to be written only, it waits for the client to take one.
    ///
    /// # Errors
    /// `protocol-error` for an id that is open, and when too many are worked on.
    pub(super) async fn open(&self, id: u64) -> Result<(), Error> {
        loop {
            let written = self.open.written.notified();
            {
                let mut open = lock(&self.open.by_id);
                if open.contains_key(&id) {
                    return Err(violation(format!(
                        "the id {id} belongs to a request that is still open; choose another one"
                    )));
                }
                if open.len() < OPEN_REQUESTS {
                    open.insert(id, State::Working);
                    return Ok(());
                }
                if open.values().all(|state| *state == State::Working) {
                    return Err(violation(format!(
                        "{OPEN_REQUESTS} requests are open, the most that one connection may have; wait for an answer"
                    )));
                }
            }
            tokio::select! {
                () = written => {}
                // Nothing more is written; the connection is about to end.
                () = self.outbox.closed() => return Err(violation("the client has gone")),
            }
        }
    }

    /// Answers what could not be opened.
    pub(super) async fn refuse(&self, id: u64, error: Error) {
        self.outbox.notice(outgoing::answer(id, Err(error))).await;
    }

    /// Answers a request.
    pub(super) async fn answer(&self, id: u64, answer: Answer) {
        self.body(id, outgoing::answer(id, answer)).await;
    }

    /// Answers a request with what is written already.
    pub(super) async fn body(&self, id: u64, body: Body) {
        let room = self.outbox.room(body.held_bytes()).await;
        self.send(id, body, room).await;
    }

    /// Answers a request with what `make` gives, once there is room for so many bytes.
    pub(super) async fn answer_in_room(
        &self,
        id: u64,
        n_bytes: usize,
        make: impl FnOnce() -> Value,
    ) {
        if let Some(room) = self.outbox.room(n_bytes).await {
            self.send(id, outgoing::answer(id, Ok(make())), Some(room))
                .await;
        }
    }

    async fn send(&self, id: u64, body: Body, room: Option<Room>) {
        let Some(room) = room else {
            lock(&self.open.by_id).remove(&id);
            return;
        };
        let n_bytes = body.held_bytes();
        let charged = if n_bytes > SMALL_BYTES {
            self.account
                .charge(Purpose::Answer, n_bytes as u64)
                .map(Some)
        } else {
            Ok(None)
        };
        let (body, charge) = match charged {
            Ok(charge) => (body, charge),
            Err(error) => (outgoing::answer(id, Err(error)), None),
        };
        if let Some(state) = lock(&self.open.by_id).get_mut(&id) {
            *state = State::Answered;
        }
        let open = self.open.clone();
        let over = Box::new(move || {
            lock(&open.by_id).remove(&id);
            open.written.notify_waiters();
        });
        let answer = writer::Answer { body, charge, over };
        self.outbox.answer(answer, room).await;
    }
}
