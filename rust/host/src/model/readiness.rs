//! Whether what is launched now can run: for probes of the server.

use super::Model;
use super::state::ModelState;
use crate::Host;

impl Model {
    /// What is in the way of new requests; none where they are run as they come.
    fn unready(&self) -> Option<&'static str> {
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
}

impl Host {
    /// Why programs that are launched now could not run, one reason a model; empty where they can.
    pub fn unready(&self) -> Vec<String> {
        let models = self.models();
        if models.is_empty() {
            return vec!["no model is loaded".to_owned()];
        }
        let models = models.iter().filter_map(|name| self.model(name));
        models
            .filter_map(|model| {
                let reason = model.unready()?;
                Some(format!("the model {} {reason}", model.name()))
            })
            .collect()
    }
}
