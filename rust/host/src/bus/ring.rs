//! How futures of programs wait for messages.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::parcel::Parcel;
use super::topics::{Bell, Topics};
use crate::Error;

/// The topics of one user.
pub(crate) type UserTopics = Topics<Arc<Parcel>, Ring>;

/// What arrives when the bell rings.
pub(super) type Rung = oneshot::Receiver<Result<(), Error>>;

/// Tells a future that its turn has come.
#[derive(Debug)]
pub(crate) struct Ring(oneshot::Sender<Result<(), Error>>);

impl Ring {
    /// A bell, and what hears it.
    pub(super) fn new() -> (Self, Rung) {
        let (sender, receiver) = oneshot::channel();
        (Self(sender), receiver)
    }
}

impl Bell for Ring {
    fn ring(self) {
        // Who has gone gives its place up.
        drop(self.0.send(Ok(())));
    }
}
