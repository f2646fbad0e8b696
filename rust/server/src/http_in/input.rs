//! What hyper reads of a connection: heads that were checked, and bodies up to their ends. In the place of a head that
//! is refused it gets a request of ours, which is answered with the error.

use std::sync::{Arc, Mutex};

use pie_host::Error;

use super::framing::{Framing, Taken};
use crate::sync::lock;

/// What stands for a request whose head is refused.
const REFUSED: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

/// Why the head of the next request is refused; none while none is.
pub(super) type RefusedHead = Arc<Mutex<Option<Error>>>;

/// What hyper gets next.
pub(super) enum Next<'a> {
    Bytes(&'a [u8]),
    /// More has to be read for it.
    More,
    /// Nothing more of the connection is read.
    Over,
}

/// The bytes of a connection on their way to hyper.
pub(super) struct CheckedInput {
    framing: Framing,
    /// What was read and not looked at yet is `read[start..]`.
    read: Vec<u8>,
    start: usize,
    /// Of a head that was checked `head[n_given..]` is to come.
    head: Vec<u8>,
    n_given: usize,
    refused: RefusedHead,
    is_over: bool,
}

impl CheckedInput {
    /// A connection of which `read` was read already, with heads of so many bytes at most.
    pub(super) fn new(read: Vec<u8>, most_bytes: usize, refused: RefusedHead) -> Self {
        Self {
            framing: Framing::new(most_bytes),
            read,
            start: 0,
            head: Vec::new(),
            n_given: 0,
            refused,
            is_over: false,
        }
    }

    /// Adds what was read, once there is nothing else to be looked at.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        debug_assert_eq!(self.start, self.read.len());
        self.read.clear();
        self.read.extend_from_slice(bytes);
        self.start = 0;
    }

    /// The next bytes, at most so many. They never reach beyond the end of a head or a body: so a head is looked at
    /// after the request before it has been begun.
    ///
    /// # Errors
    /// `protocol-error` in a body. Nothing comes after one.
    pub(super) fn next(&mut self, most: usize) -> Result<Next<'_>, Error> {
        loop {
            if self.n_given < self.head.len() {
                let start = self.n_given;
                self.n_given = self.head.len().min(start + most);
                return Ok(Next::Bytes(&self.head[start..self.n_given]));
            }
            if self.is_over {
                return Ok(Next::Over);
            }
            if self.start == self.read.len() {
                return Ok(Next::More);
            }
            let is_in_head = self.framing.is_in_head();
            // A head is held by itself, of which hyper gets a part at a time.
            let most = if is_in_head { usize::MAX } else { most };
            let end = self.read.len().min(self.start.saturating_add(most));
            match self.framing.take(&self.read[self.start..end]) {
                Ok(Taken::Held(n_bytes)) => self.start += n_bytes,
                Ok(Taken::Head(n_bytes, head)) => {
                    self.start += n_bytes;
                    (self.head, self.n_given) = (head, 0);
                }
                Ok(Taken::Body(n_bytes)) => {
                    let start = self.start;
                    self.start += n_bytes;
                    return Ok(Next::Bytes(&self.read[start..self.start]));
                }
                Err(error) => {
                    self.is_over = true;
                    if !is_in_head {
                        return Err(error);
                    }
                    *lock(&self.refused) = Some(error);
                    (self.head, self.n_given) = (REFUSED.to_vec(), 0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pie_host::ErrorCode;

    /// The next bytes, of at most three.
    fn given(input: &mut CheckedInput) -> String {
        match input.next(3).unwrap() {
            Next::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            Next::More => "more".to_owned(),
            Next::Over => "over".to_owned(),
        }
    }

    fn given_whole(input: &mut CheckedInput, n_bytes: usize) -> String {
        let mut all = String::new();
        while all.len() < n_bytes {
            all.push_str(&given(input));
        }
        all
    }

    #[test]
    fn a_head_that_is_refused_is_replaced_once_the_request_before_it_is_there() {
        let refused = RefusedHead::default();
        let first = "POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd";
        let bytes = format!("{first}GET / HTTP/1.1\nHost: a\n\nGET /more");
        let mut input = CheckedInput::new(bytes.into_bytes(), 1000, refused.clone());
        assert_eq!(given_whole(&mut input, first.len()), first);
        assert!(lock(&refused).is_none());
        let replaced = given_whole(&mut input, REFUSED.len());
        assert_eq!(replaced.as_bytes(), REFUSED);
        let error = lock(&refused).take().unwrap();
        assert_eq!(error.code, ErrorCode::ProtocolError);
        assert_eq!(given(&mut input), "over");
    }

    #[test]
    fn nothing_comes_after_a_body_that_is_refused() {
        let refused = RefusedHead::default();
        let head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        let mut input = CheckedInput::new(head.into(), 1000, refused.clone());
        assert_eq!(given_whole(&mut input, head.len()), head);
        assert_eq!(given(&mut input), "more");
        input.add(b"1\r\na\r\nx\r\nGET / HTTP/1.1\r\n\r\n");
        assert_eq!(given_whole(&mut input, 6), "1\r\na\r\n");
        let error = input.next(3).err().unwrap();
        assert_eq!(error.code, ErrorCode::ProtocolError);
        assert_eq!(given(&mut input), "over");
        assert!(lock(&refused).is_none());
    }
}
