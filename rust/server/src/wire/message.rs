//! What a client says, whole.

use pie_host::{Charge, Error};

/// Messages of a client of up to so many bytes are part of what a connection holds in any case.
pub(crate) const SMALL_BYTES: usize = 8 << 10;

use crate::protocol::violation;

/// A message of a client, or a frame about the connection itself.
#[derive(Debug)]
pub(crate) enum Message {
    Text(Payload),
    Binary(Payload),
    /// What a pong has to repeat, at most 125 bytes.
    Ping(Vec<u8>),
    Pong,
    /// The code that the client gives, if any.
    Close(Option<u16>),
}

/// The bytes of a message. They are charged until this is dropped.
#[derive(Debug)]
pub(crate) struct Payload {
    bytes: Vec<u8>,
    /// Where what counts begins.
    start: usize,
    charge: Option<Charge>,
}

impl Payload {
    pub(super) fn new(bytes: Vec<u8>, charge: Option<Charge>) -> Self {
        Self {
            bytes,
            start: 0,
            charge,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Passes over all but the last bytes.
    pub(crate) fn keep_last(&mut self, n_bytes: usize) {
        self.start = self.bytes.len().saturating_sub(n_bytes);
    }

    /// Charges as much again, for a copy.
    ///
    /// # Errors
    /// `limit-engine-memory`.
    pub(crate) fn charge_twice(&mut self) -> Result<(), Error> {
        let n_bytes = self.bytes.len() as u64;
        self.charge
            .as_mut()
            .map_or(Ok(()), |charge| charge.grow(n_bytes))
    }

    /// Lets go of the bytes; what was charged for them is left to a copy.
    pub(crate) fn into_charge(self) -> Option<Charge> {
        let mut charge = self.charge;
        if let Some(charge) = &mut charge {
            charge.shrink(self.bytes.capacity() as u64);
        }
        charge
    }

    /// The bytes of a text frame.
    ///
    /// # Errors
    /// `protocol-error` for what is not UTF-8.
    pub(crate) fn text(&self) -> Result<&str, Error> {
        std::str::from_utf8(self.bytes())
            .map_err(|error| violation(format!("a text frame is not UTF-8: {error}")))
    }
}
