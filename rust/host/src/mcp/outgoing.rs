//! Lines on their way to a server that may not read them: so many wait, of so many bytes.

use std::ops::Deref;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Lines that wait.
const LINES: usize = 64;
/// Bytes of all that wait, or of one that is longer. The line of a call that was given up is charged to nobody, and
/// waits all the same.
const BYTES: u32 = 1 << 20;

/// A line for a server, without its end. It has its room among those that wait until it is dropped.
#[derive(Debug)]
pub struct McpLine {
    text: String,
    _room: OwnedSemaphorePermit,
}

impl Deref for McpLine {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

/// The way of lines to a server.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    lines: mpsc::Sender<McpLine>,
    room: Arc<Semaphore>,
}

/// The same, of whoever does not keep the server running.
#[derive(Clone, Debug)]
pub(crate) struct WeakOutgoing {
    lines: mpsc::WeakSender<McpLine>,
    room: Arc<Semaphore>,
}

impl Outgoing {
    /// The way, and where the lines come out.
    pub(crate) fn new() -> (Self, mpsc::Receiver<McpLine>) {
        let (lines, receiver) = mpsc::channel(LINES);
        let room = Arc::new(Semaphore::new(BYTES as usize));
        (Self { lines, room }, receiver)
    }

    /// Sends a line, once there is room for it; false where nobody takes lines any more.
    pub(crate) async fn send(&self, text: String) -> bool {
        let Ok(room) = self.room.clone().acquire_many_owned(n_bytes(&text)).await else {
            return false;
        };
        let line = McpLine { text, _room: room };
        self.lines.send(line).await.is_ok()
    }

    /// Sends a line where there is room for it at once.
    pub(crate) fn try_send(&self, text: String) -> bool {
        let Ok(room) = self.room.clone().try_acquire_many_owned(n_bytes(&text)) else {
            return false;
        };
        let line = McpLine { text, _room: room };
        self.lines.try_send(line).is_ok()
    }

    pub(crate) fn downgrade(&self) -> WeakOutgoing {
        WeakOutgoing {
            lines: self.lines.downgrade(),
            room: self.room.clone(),
        }
    }
}

impl WeakOutgoing {
    /// The way, where somebody keeps the server running.
    pub(crate) fn upgrade(&self) -> Option<Outgoing> {
        Some(Outgoing {
            lines: self.lines.upgrade()?,
            room: self.room.clone(),
        })
    }
}

/// What a line takes of the room.
fn n_bytes(text: &str) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX).min(BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_waits_is_bounded_in_bytes_and_a_longer_line_goes_alone() {
        let (outgoing, mut lines) = Outgoing::new();
        let half = "x".repeat(BYTES as usize / 2);
        assert!(outgoing.send(half.clone()).await && outgoing.try_send(half.clone()));
        assert!(!outgoing.try_send("one more".to_owned()));
        let first = lines.recv().await.unwrap();
        // It has its room as long as it is on its way.
        assert!(!outgoing.try_send("one more".to_owned()));
        assert_eq!(*first, *half);
        drop(first);
        assert!(outgoing.try_send("one more".to_owned()));
        for _ in 0..2 {
            drop(lines.recv().await.unwrap());
        }
        let long = "x".repeat(BYTES as usize + 1);
        assert!(outgoing.send(long).await && !outgoing.try_send("y".to_owned()));
    }

    #[tokio::test]
    async fn where_nobody_takes_lines_nobody_waits_for_room() {
        let (outgoing, lines) = Outgoing::new();
        assert!(outgoing.send("x".repeat(BYTES as usize)).await);
        drop(lines);
        assert!(!outgoing.send("another".to_owned()).await);
        let weak = outgoing.downgrade();
        assert!(weak.upgrade().is_some());
        drop(outgoing);
        assert!(weak.upgrade().is_none());
    }
}
