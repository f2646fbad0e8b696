//! What the clients of one address hold together, where names can be made up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pie_host::{Error, ErrorCode};

/// What the clients of one address hold together, however many names they have.
#[derive(Debug, Default)]
pub(crate) struct AddressShare {
    /// Bytes of uploads.
    upload_bytes: AtomicUsize,
    /// Installs that are looked at, or wait for it.
    n_installs: AtomicUsize,
    /// The most of both; none: names cannot be made up, and users are counted.
    most: Option<AddressMost>,
}

/// What the clients of one address may hold together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddressMost {
    pub(crate) upload_bytes: usize,
    pub(crate) installs: usize,
}

impl AddressShare {
    /// That of an address, within the most where there is one.
    pub(crate) fn within(most: Option<AddressMost>) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    /// Counts bytes of uploads.
    ///
    /// # Errors
    /// `limit-upload`.
    pub(crate) fn hold_upload(&self, n_bytes: usize) -> Result<(), Error> {
        let most = self.most.map_or(usize::MAX, |most| most.upload_bytes);
        add_within(&self.upload_bytes, n_bytes, most).map_err(|_| {
            let message = format!(
                "the uploads of your address would hold more than server.max_address_upload_bytes = {most}; install what has arrived, close a connection, or raise the limit"
            );
            Error::new(ErrorCode::LimitUpload, message)
        })
    }

    /// Bytes of uploads are given up.
    pub(crate) fn free_upload(&self, n_bytes: usize) {
        self.upload_bytes.fetch_sub(n_bytes, Ordering::Relaxed);
    }

    /// Counts an install until what it gives is dropped.
    ///
    /// # Errors
    /// `limit-queue`.
    pub(crate) fn install(self: &Arc<Self>) -> Result<Installing, Error> {
        let most = self.most.map_or(usize::MAX, |most| most.installs);
        add_within(&self.n_installs, 1, most).map_err(|_| {
            let message = format!(
                "{most} installs of your address are looked at or wait for it, the most that server.max_address_installs allows; come back when some are done, or raise the limit"
            );
            Error::new(ErrorCode::LimitQueue, message)
        })?;
        Ok(Installing(self.clone()))
    }
}

/// An install of a client of an address, until it is dropped.
#[derive(Debug)]
pub(crate) struct Installing(Arc<AddressShare>);

impl Drop for Installing {
    fn drop(&mut self) {
        self.0.n_installs.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Adds to what is held, where it stays within the most; what was held, where it would not.
fn add_within(held: &AtomicUsize, n: usize, most: usize) -> Result<(), usize> {
    let within = |held: usize| held.checked_add(n).filter(|held| *held <= most);
    held.try_update(Ordering::Relaxed, Ordering::Relaxed, within)
        .map(drop)
}
