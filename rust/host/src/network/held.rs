//! What one process has of the network.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::runtime::Handle;

use super::config::HttpLimits;
use super::connection::Network;
use super::places::{OutgoingPlace, too_many};
use crate::Error;
use crate::Limits;
use crate::budget::{Account, Charge, Purpose};
use crate::counted::{Bounded, Counted};
use crate::sync::lock;

/// Heads that a request holds at once at most, each with its headers: its own and that of its answer, as they are read
/// and as they are kept.
const HEADS: u64 = 4;
/// Bytes of bodies that a request holds beside.
const BODY_BYTES: u64 = 64 << 10;

/// What one process has of the network. Its requests end with it.
pub(crate) struct HeldNetwork {
    pub(crate) network: Arc<Network>,
    /// Where requests are sent.
    pub(crate) runtime: Handle,
    pub(crate) limits: HttpLimits,
    pub(crate) refusals: Refusals,
    account: Account,
    requests: Bounded,
    /// What is charged for things of `wasi:http`, by the place of their handle in the table.
    kept: HashMap<u32, Charge>,
    /// What is charged for the request that is about to be sent.
    pub(crate) sending: Option<Charge>,
}

/// The leave for one request, until it is dropped.
#[derive(Debug)]
pub(crate) struct Admission {
    _own: Counted,
    pub(crate) place: OutgoingPlace,
}

impl HeldNetwork {
    /// That of a process that begins.
    pub(crate) fn new(
        network: Arc<Network>,
        runtime: Handle,
        limits: &Limits,
        account: Account,
    ) -> Self {
        Self {
            network,
            runtime,
            limits: limits.into(),
            refusals: Refusals::default(),
            account,
            requests: Bounded::new(limits.http_requests),
            kept: HashMap::new(),
            sending: None,
        }
    }

    /// The leave for one more request.
    ///
    /// # Errors
    /// `limit-http-requests`.
    pub(crate) fn admit(&self) -> Result<Admission, Error> {
        let own = self.requests.take().ok_or_else(|| {
            let most = self.requests.most();
            let bound = format!("limits.http_requests = {most}");
            too_many(most, "of this program", &bound)
        })?;
        let place = self.network.places.take(self.account.user())?;
        Ok(Admission { _own: own, place })
    }

    /// Charges the user of the process with what a request holds while it is under way.
    ///
    /// # Errors
    /// `limit-engine-memory`.
    pub(crate) fn charge_request(&self) -> Result<Charge, Error> {
        self.charge(HEADS * self.limits.header_bytes as u64 + BODY_BYTES)
    }

    /// Charges the user of the process.
    ///
    /// # Errors
    /// `limit-engine-memory`.
    pub(crate) fn charge(&self, n_bytes: u64) -> Result<Charge, Error> {
        self.account.charge(Purpose::Queue, n_bytes)
    }

    #[cfg(test)]
    pub(crate) fn n_charged(&self) -> u64 {
        self.account.usage().n_bytes()
    }

    /// Keeps a charge for the handle at a place of the table.
    pub(crate) fn keep(&mut self, rep: u32, charge: Charge) {
        self.kept.insert(rep, charge);
    }

    /// Takes back what is charged for a handle.
    pub(crate) fn release(&mut self, rep: u32) -> Option<Charge> {
        self.kept.remove(&rep)
    }
}

/// Why the engine last refused a process something, or what last failed: `wasi:http` has a name for it, and no words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals(Arc<Mutex<Option<Error>>>);

impl Refusals {
    /// Something was refused, or failed.
    pub(crate) fn note(&self, error: &Error) {
        *lock(&self.0) = Some(error.clone());
    }

    /// The last one.
    pub(crate) fn last(&self) -> Option<Error> {
        lock(&self.0).clone()
    }
}
