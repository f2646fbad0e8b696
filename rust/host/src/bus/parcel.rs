//! A message, with the bytes that its sender is charged with as long as anybody holds it.

use std::sync::Arc;

use crate::Error;
use crate::budget::{Account, Charge, Purpose};

/// What a message holds beside its text: its places in queues and subscriptions, and its topic where it is the only
/// one.
const BESIDE_BYTES: usize = 512;

#[derive(Debug)]
pub(crate) struct Parcel {
    text: String,
    /// Held for its end.
    _charge: Charge,
}

impl Parcel {
    /// Charges `account` with a text.
    ///
    /// # Errors
    /// `limit-engine-memory`.
    pub(super) fn new(account: &Account, topic: &str, text: String) -> Result<Self, Error> {
        let n_bytes = text.len() + topic.len() + BESIDE_BYTES;
        let charge = account.charge(Purpose::Queue, n_bytes as u64)?;
        Ok(Self {
            text,
            _charge: charge,
        })
    }

    /// The text, which is copied where others hold it too.
    pub(super) fn text(self: Arc<Self>) -> String {
        match Arc::try_unwrap(self) {
            Ok(own) => own.text,
            Err(shared) => shared.text.clone(),
        }
    }
}
