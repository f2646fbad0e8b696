//! Whether a model is being served: for whoever asks if the engine is ready.

use std::sync::atomic::Ordering;

use pie_core::ErrorCode;

use super::Model;
use super::state::ModelState;
use crate::Error;
use crate::sync::lock;

impl Model {
    /// Where its driver stands.
    pub fn state(&self) -> ModelState {
        lock(&self.state).clone()
    }

    /// Says where the driver stands. What waits fails where it has failed. Clients see the reason; `detail` is for the
    /// log alone.
    pub fn set_state(&self, state: ModelState, detail: &str) {
        let refusal = match &state {
            ModelState::Failed(reason) => Some(self.unavailable(reason)),
            ModelState::Serving | ModelState::Restarting(_) => None,
        };
        match &state {
            ModelState::Serving => tracing::warn!(model = self.name(), "the driver serves again"),
            ModelState::Restarting(reason) => {
                tracing::warn!(
                    model = self.name(),
                    reason,
                    detail,
                    "the driver is started again"
                );
            }
            ModelState::Failed(reason) => {
                tracing::error!(
                    model = self.name(),
                    reason,
                    detail,
                    "the model is not served"
                );
            }
        }
        *lock(&self.state) = state;
        // Before what was submitted so far is seen and refused: what comes later sees this.
        self.refuses.store(refusal.is_some(), Ordering::SeqCst);
        self.with_engine(|engine| engine.refuse(refusal));
    }

    /// What is in the way of new requests; none where they are run as they come.
    pub(crate) fn unready(&self) -> Option<&'static str> {
        if self.is_stopped() {
            return Some("has ended");
        }
        match self.state() {
            ModelState::Serving => {}
            ModelState::Restarting(_) => {
                return Some("waits for its driver, which is started again");
            }
            ModelState::Failed(_) => {
                return Some("is not served: its driver ends too often, or cannot be started");
            }
        }
        self.with_engine(|engine| engine.is_stuck())
            .then_some("waits for its driver, which does not answer")
    }

    fn unavailable(&self, reason: &str) -> Error {
        Error::new(
            ErrorCode::ModelUnavailable,
            format!(
                "the model {:?} is not served: {reason}; try again later, and have its operator look at the log of the server",
                self.name()
            ),
        )
    }
}
