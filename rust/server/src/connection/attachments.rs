//! The processes to which one connection is attached. Each has a task that carries its events, so that none waits for
//! another.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pie_host::{Error, ErrorCode, Reader};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use super::writer::{Outbox, Outgoing};
use crate::threads::Part;

/// Processes to which one connection may be attached.
const MAX_ATTACHED: usize = 4096;

/// The attachments of one connection, by process.
pub(crate) struct Attachments {
    /// What the user has of the threads.
    part: Arc<Part>,
    by_process: HashMap<u64, Attachment>,
    /// A carrier has ended.
    carried: Arc<Notify>,
}

struct Attachment {
    reader: Arc<Reader>,
    state: Arc<Carriage>,
    carrier: JoinHandle<()>,
}

/// Lets the events of a new attachment go out.
#[must_use]
pub(crate) struct Answered(oneshot::Sender<()>);

impl Answered {
    /// The answer stands before them.
    pub(crate) fn go(self) {
        // A carrier that is gone has nothing to carry.
        self.0.send(()).unwrap_or_default();
    }
}

/// What a carrier and its attachment share.
#[derive(Debug)]
struct Carriage {
    /// False when the client has detached.
    wanted: Arc<AtomicBool>,
    /// The last event has been handed on, or the client has gone.
    over: AtomicBool,
}

impl Attachments {
    /// Those of a new connection of a user with this part.
    pub(crate) fn new(part: Arc<Part>) -> Self {
        Self {
            part,
            by_process: HashMap::new(),
            carried: Arc::default(),
        }
    }

    /// Makes room for one more; `is_known` tells which processes still stand in the table.
    ///
    /// # Errors
    /// `limit-processes` when there are too many.
    pub(crate) fn make_room(&mut self, is_known: impl Fn(u64) -> bool) -> Result<(), Error> {
        if self.by_process.len() >= MAX_ATTACHED {
            self.by_process
                .retain(|pid, attachment| !attachment.is_carried() || is_known(*pid));
        }
        if self.by_process.len() >= MAX_ATTACHED {
            let message = format!(
                "this connection is attached to {MAX_ATTACHED} processes, the most that one can be; detach from some, or acknowledge their last events"
            );
            return Err(Error::new(ErrorCode::LimitProcesses, message));
        }
        Ok(())
    }

    /// Carries the events of a process to the client, once the request was answered that attached it.
    pub(crate) fn add(&mut self, pid: u64, reader: Reader, outbox: &Outbox) -> Answered {
        let reader = Arc::new(reader);
        let state = Arc::new(Carriage {
            wanted: Arc::new(AtomicBool::new(true)),
            over: AtomicBool::new(false),
        });
        let carrying = carry(pid, reader.clone(), state.clone(), outbox.clone());
        let (ended, carried) = (state.clone(), self.carried.clone());
        let (answered, waiting) = oneshot::channel();
        let carrier = tokio::spawn(self.part.doing(async move {
            // A request that is given up ends with its connection.
            if waiting.await.is_ok() {
                carrying.await;
            }
            ended.over.store(true, Ordering::Release);
            carried.notify_waiters();
        }));
        let attachment = Attachment {
            reader,
            state,
            carrier,
        };
        if let Some(former) = self.by_process.insert(pid, attachment) {
            former.end();
        }
        Answered(answered)
    }

    /// What the client has taken. After the last event of a process the attachment is over.
    pub(crate) fn acknowledge(&mut self, pid: u64, seq: u64) {
        let Some(attachment) = self.by_process.get(&pid) else {
            return;
        };
        attachment.reader.acknowledge(seq);
        if attachment.reader.is_drained()
            && let Some(attachment) = self.by_process.remove(&pid)
        {
            attachment.end();
        }
    }

    /// Whether this connection is attached to the process.
    pub(crate) fn has(&self, pid: u64) -> bool {
        self.by_process.contains_key(&pid)
    }

    /// Ends an attachment: no event follows. False when there was none.
    pub(crate) fn remove(&mut self, pid: u64) -> bool {
        let Some(attachment) = self.by_process.remove(&pid) else {
            return false;
        };
        attachment.end();
        true
    }

    /// True when every event has been handed to the writer.
    pub(crate) fn are_carried(&self) -> bool {
        self.by_process.values().all(Attachment::is_carried)
    }

    /// Notified each time that the events of a process have been handed to the writer.
    pub(crate) fn carried(&self) -> Arc<Notify> {
        self.carried.clone()
    }

    /// Ends every attachment.
    pub(crate) fn clear(&mut self) {
        for (_, attachment) in self.by_process.drain() {
            attachment.end();
        }
    }
}

impl Attachment {
    fn is_carried(&self) -> bool {
        self.state.over.load(Ordering::Acquire)
    }

    fn end(self) {
        self.state.wanted.store(false, Ordering::Release);
        self.carrier.abort();
        self.reader.detach();
    }
}

async fn carry(pid: u64, reader: Arc<Reader>, state: Arc<Carriage>, outbox: Outbox) {
    while let Some((seq, event)) = reader.next().await {
        let outgoing = Outgoing {
            pid,
            seq,
            event,
            wanted: state.wanted.clone(),
        };
        if !outbox.event(outgoing).await {
            return;
        }
    }
}
