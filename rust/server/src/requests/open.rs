//! Requests that are open, and their answers.
//!
//! | state of a request | counted by | next |
//! |---|---|---|
//! | worked on | [`OPEN_REQUESTS`]: one more is refused | its answer waits |
//! | answered, not written | the same, and the bytes of the answer; one more request waits | written: the id is free |

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use pie_host::{Account, Charge, Error, Purpose};
use serde_json::Value;
use tokio::sync::Notify;

use crate::connection::writer::{self, Outbox, Room};
use crate::protocol::body::Body;
use crate::protocol::{OPEN_REQUESTS, outgoing, violation};
use crate::sync::lock;
use crate::wire::SMALL_BYTES;

/// What a handler answers: the object after `ok`, or an error.
pub(super) type Answer = Result<Value, Error>;

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

    /// Notes that a request is open. Where too many are and some of them wait to be written only, it waits for the
    /// client to take one.
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

    /// Answers a request with what `make` gives. Making it takes at most so many bytes, for which there is room, and
    /// which are charged, before.
    pub(super) async fn made(&self, id: u64, most_bytes: usize, make: impl Future<Output = Body>) {
        let Some(room) = self.outbox.room(most_bytes).await else {
            // The client has gone.
            lock(&self.open.by_id).remove(&id);
            return;
        };
        let (body, charge) = match self.charge(most_bytes) {
            Ok(charge) => (make.await, charge),
            Err(error) => (outgoing::answer(id, Err(error)), None),
        };
        self.hand_over(id, body, charge, Some(room)).await;
    }

    async fn send(&self, id: u64, body: Body, room: Option<Room>) {
        let (body, charge) = match self.charge(body.held_bytes()) {
            Ok(charge) => (body, charge),
            Err(error) => (outgoing::answer(id, Err(error)), None),
        };
        self.hand_over(id, body, charge, room).await;
    }

    /// None for what is part of the connection.
    fn charge(&self, n_bytes: usize) -> Result<Option<Charge>, Error> {
        if n_bytes <= SMALL_BYTES {
            return Ok(None);
        }
        let charge = self.account.charge(Purpose::Answer, n_bytes as u64)?;
        Ok(Some(charge))
    }

    async fn hand_over(&self, id: u64, body: Body, charge: Option<Charge>, room: Option<Room>) {
        let Some(room) = room else {
            lock(&self.open.by_id).remove(&id);
            return;
        };
        let charge = charge.map(|mut charge| {
            charge.shrink(charge.n_bytes().saturating_sub(body.held_bytes() as u64));
            charge
        });
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use pie_host::Budget;
    use tokio::io::AsyncReadExt;
    use tungstenite::protocol::frame::coding::CloseCode;

    use super::*;
    use crate::ServerConfig;
    use crate::threads::Threads;
    use crate::wire::tests::connected;

    #[tokio::test(flavor = "current_thread")]
    async fn what_is_too_large_is_refused_before_it_is_made() {
        const MIB: usize = 1 << 20;
        let budget = Budget::new(64 << 20, Some(2 << 20));
        let (mut client, wire) = connected(&budget, 1, Duration::from_secs(60)).await;
        let mut writer = wire.writer;
        writer.set_patience(Duration::from_secs(60));
        let config = ServerConfig::new(PathBuf::new());
        let (outbox, writing) = writer::start(writer, &config, &Threads::new().part("ada"));
        let replies = Replies::new(outbox.clone(), budget.account("a"));
        for id in [1, 2] {
            replies.open(id).await.unwrap();
        }
        replies
            .made(1, 3 * MIB, async { panic!("there is no room for it") })
            .await;
        let made = async {
            assert_eq!(budget.held_bytes(), MIB as u64);
            outgoing::answer(2, Ok("made".into()))
        };
        replies.made(2, MIB, made).await;
        outbox.close(CloseCode::Normal, "");
        writer::finish(writing, Duration::from_secs(10)).await;
        let mut told = Vec::new();
        client.read_to_end(&mut told).await.unwrap();
        let told = String::from_utf8_lossy(&told);
        assert!(
            told.contains("limit-engine-memory") && told.contains("\"made\""),
            "{told}"
        );
        assert_eq!(budget.held_bytes(), 0);
    }
}
