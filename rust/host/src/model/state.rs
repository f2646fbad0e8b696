//! Whether a model is being served: for whoever asks if the engine is ready.

use std::sync::atomic::Ordering;

use pie_core::ErrorCode;

use super::Model;
use crate::Error;
use crate::sync::lock;

/// Where the driver of a model stands. One that lives in the process of the engine serves from the beginning to the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ModelState {
    /// Batches are run.
    #[default]
    Serving,
    /// The driver was lost, for this reason, and is started again: what is asked waits.
    Restarting(String),
    /// The driver was lost too often, or cannot be started, for this reason: what is asked is refused with `model-unavailable`.
    Failed(String),
}

impl ModelState {
    /// The state in a word.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::Restarting(_) => "restarting",
            Self::Failed(_) => "failed",
        }
    }

    /// Why it does not serve; empty where it does.
    pub fn reason(&self) -> &str {
        match self {
            Self::Serving => "",
            Self::Restarting(reason) | Self::Failed(reason) => reason,
        }
    }
}

impl Model {
    /// Where its driver stands.
    pub fn state(&self) -> ModelState {
        lock(&self.state).clone()
    }

    /// Says where the driver stands. What waits fails where it has failed. Clients see the reason; `detail` is for the log alone.
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
