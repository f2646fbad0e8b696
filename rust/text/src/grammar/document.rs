//! The document that a matcher has written so far, to be checked when it is finished.

use super::fault;
use super::schema::Schema;
use crate::error::Result;

/// The longest document, in bytes.
const MAX_DOCUMENT_BYTES: usize = 1 << 20;
/// How deep lists and objects of a document may stand in each other.
const MAX_DOCUMENT_DEPTH: usize = 120;

/// A document that is being written.
#[derive(Debug, Clone, Default)]
pub(super) struct Document {
    bytes: Vec<u8>,
    depth: usize,
    in_string: bool,
    /// A backslash stands before what comes next.
    is_escaped: bool,
}

impl Document {
    /// Adds what a token writes.
    ///
    /// # Errors
    /// `invalid-grammar` for a document that is longer or deeper than what can be checked.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<()> {
        for &byte in bytes {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = self.in_string,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'[' | b'{' => self.depth += 1,
                b']' | b'}' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            if self.depth > MAX_DOCUMENT_DEPTH {
                return Err(fault(
                    "the document cannot go on",
                    &format!(
                        "its lists and objects stand more than the limit of {MAX_DOCUMENT_DEPTH} deep in each other"
                    ),
                ));
            }
        }
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > MAX_DOCUMENT_BYTES {
            return Err(fault(
                "the document cannot go on",
                &format!(
                    "it has {} bytes, and the limit is {MAX_DOCUMENT_BYTES}",
                    self.bytes.len()
                ),
            ));
        }
        Ok(())
    }

    /// Checks the finished document against its schema: the grammar lets nothing else through, and this makes sure.
    ///
    /// # Errors
    /// `invalid-grammar`: the place, and the keyword that it breaks.
    pub(super) fn check(&self, schema: &Schema) -> Result<()> {
        let checked = match std::str::from_utf8(&self.bytes) {
            Ok(document) => schema.check(document),
            Err(_) => Err("it is not UTF-8".to_owned()),
        };
        checked.map_err(|why| {
            fault(
                "the finished document does not fit its schema",
                &format!("{why}; please report the schema"),
            )
        })
    }

    /// What it takes, in bytes.
    pub(super) fn n_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}
