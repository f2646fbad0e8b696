//! The last output of a process, kept as one text that can be read at any time without taking anything.

use std::collections::VecDeque;

/// A part of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogText {
    /// The text, cut at characters.
    pub text: String,
    /// The position after the text, in bytes since the launch: where to read on.
    pub next: u64,
    /// Bytes after the position that was asked for that are no longer kept.
    pub n_dropped_bytes: u64,
    /// True when the process has ended: nothing will be added.
    pub ended: bool,
}

/// The last `capacity` bytes of a text that grows.
#[derive(Debug)]
pub(crate) struct LogRing {
    capacity: usize,
    bytes: VecDeque<u8>,
    /// Bytes written so far.
    end: u64,
}

impl LogRing {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            bytes: VecDeque::new(),
            end: 0,
        }
    }

    /// Bytes kept.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets the text. Positions count on.
    pub(crate) fn clear(&mut self) {
        self.bytes = VecDeque::new();
    }

    pub(crate) fn push(&mut self, text: &str) {
        let new = text.as_bytes();
        self.end += new.len() as u64;
        let new = &new[new.len().saturating_sub(self.capacity)..];
        let excess = (self.bytes.len() + new.len()).saturating_sub(self.capacity);
        self.bytes.drain(..excess);
        self.bytes.extend(new);
    }

    /// The text from position `after` on, at most its last `tail_bytes`. Its first character may be cut off where the
    /// log, the position or the tail begins within it.
    pub(crate) fn read(&self, after: u64, tail_bytes: usize) -> LogText {
        let begin = self.end - self.bytes.len() as u64;
        let after = after.min(self.end);
        let n_wanted = usize::try_from(self.end - after.max(begin)).unwrap_or(usize::MAX);
        let kept = self
            .bytes
            .iter()
            .skip(self.bytes.len() - n_wanted.min(tail_bytes))
            .copied()
            .skip_while(|byte| is_continuation(*byte))
            .collect();
        LogText {
            // Whole texts are pushed, so that only the beginning can be torn.
            text: String::from_utf8(kept).unwrap_or_default(),
            next: self.end,
            n_dropped_bytes: begin.saturating_sub(after),
            ended: false,
        }
    }
}

/// True for a byte of UTF-8 that does not begin a character.
fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(capacity: usize, texts: &[&str]) -> LogRing {
        let mut ring = LogRing::new(capacity);
        for text in texts {
            ring.push(text);
        }
        ring
    }

    fn check(ring: &LogRing, after: u64, tail_bytes: usize, text: &str, n_dropped_bytes: u64) {
        let expected = LogText {
            text: text.to_owned(),
            next: ring.end,
            n_dropped_bytes,
            ended: false,
        };
        assert_eq!(ring.read(after, tail_bytes), expected);
    }

    #[test]
    fn the_last_bytes_are_kept_and_positions_go_on() {
        let ring = ring(6, &["abc", "def", "gh"]);
        check(&ring, 0, usize::MAX, "cdefgh", 2);
        check(&ring, 5, usize::MAX, "fgh", 0);
        check(&ring, 5, 2, "gh", 0);
        check(&ring, 8, usize::MAX, "", 0);
        check(&ring, u64::MAX, usize::MAX, "", 0);
    }

    #[test]
    fn one_text_may_be_longer_than_the_log() {
        check(&ring(3, &["x", "abcdef"]), 0, usize::MAX, "def", 4);
        check(&ring(0, &["abc"]), 0, usize::MAX, "", 3);
    }

    #[test]
    fn characters_are_never_torn() {
        let ring = ring(6, &["aß", "🦀b"]);
        check(&ring, 0, usize::MAX, "🦀b", 2);
        check(&ring, 0, 3, "b", 2);
    }
}
