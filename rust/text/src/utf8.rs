//! Bytes that arrive in pieces, as text.

/// Bytes of the text of a byte that is not UTF-8: U+FFFD.
pub(crate) const REPLACEMENT_BYTES: usize = char::REPLACEMENT_CHARACTER.len_utf8();

/// Decodes UTF-8 that arrives in pieces, as `String::from_utf8_lossy` decodes the whole, holding back a character until
/// it is complete.
#[derive(Clone, Debug, Default)]
pub(crate) struct Utf8 {
    /// The bytes of a character that is not complete; at most three.
    held: Vec<u8>,
}

impl Utf8 {
    /// Takes bytes; gives the text that is complete with them.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.held.extend_from_slice(bytes);
        let mut text = String::with_capacity(self.held.len());
        let mut n_done = 0;
        for chunk in self.held.utf8_chunks() {
            text.push_str(chunk.valid());
            n_done += chunk.valid().len();
            let n_left = self.held.len() - n_done;
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            if invalid.len() == n_left && is_incomplete(invalid) {
                break;
            }
            text.push(char::REPLACEMENT_CHARACTER);
            n_done += invalid.len();
        }
        self.held.drain(..n_done);
        text
    }

    /// Bytes that are held back.
    pub(crate) fn n_held(&self) -> usize {
        self.held.len()
    }

    /// Gives up on the character that is held back: its replacement, or nothing.
    pub(crate) fn flush(&mut self) -> &'static str {
        let text = if self.held.is_empty() { "" } else { "\u{FFFD}" };
        self.held.clear();
        text
    }
}

/// Whether further bytes could make a character of these, which are not one.
fn is_incomplete(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
