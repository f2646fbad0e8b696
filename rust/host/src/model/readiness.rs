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

#[cfg(test)]
mod tests {
    use pie_core::Submission;
    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;
    use crate::budget::Budget;
    use crate::model::testing::{context_of, undriven};

    /// Nothing here but the submission touches the model: no driver reads what was submitted, and nobody asks the core
    /// for anything.
    #[test]
    fn what_is_asked_of_a_model_that_is_not_served_is_refused_as_it_is_asked() {
        let model = undriven();
        let account = Budget::new(16 << 20, None).account("ada");
        let asked = || {
            let context = context_of(&model, &account, 8);
            let (_, mut receiver) = model.submit(Submission::Flush(context.id));
            receiver.try_recv()
        };
        assert_eq!(asked(), Err(TryRecvError::Empty));
        model.set_state(ModelState::Restarting("it was killed".to_owned()), "");
        assert_eq!(asked(), Err(TryRecvError::Empty));
        model.set_state(ModelState::Failed("it ends too often".to_owned()), "");
        let refused = asked().unwrap().unwrap_err();
        assert_eq!(refused.code, ErrorCode::ModelUnavailable);
        assert!(refused.message.contains("it ends too often"), "{refused}");
        model.set_state(ModelState::Serving, "");
        assert_eq!(asked(), Err(TryRecvError::Empty));
    }
}
