//! The models of a host, by name, in the order of the configuration.

use std::sync::{Arc, Mutex};

use pie_core::ErrorCode;

use super::Model;
use crate::Error;
use crate::program::did_you_mean;
use crate::sync::lock;

/// The most models of one host.
const MAX_MODELS: usize = 64;
/// The name that means the first model.
const DEFAULT: &str = "default";

/// The models of a host.
#[derive(Debug, Default)]
pub(crate) struct Models(Mutex<Vec<Arc<Model>>>);

impl Models {
    /// Adds a model.
    ///
    /// # Errors
    /// `invalid-config` when its name is taken or not usable, or when there are too many.
    pub(crate) fn add(&self, model: Arc<Model>) -> Result<(), Error> {
        let mut models = lock(&self.0);
        let name = model.name();
        let invalid = |message: String| Err(Error::new(ErrorCode::InvalidConfig, message));
        if name.is_empty() || (name == DEFAULT && !models.is_empty()) {
            return invalid(format!(
                "the name {name:?} cannot be given to this model; {DEFAULT} means the first one"
            ));
        }
        if models.iter().any(|other| other.name() == name) {
            return invalid(format!(
                "there is a model named {name:?} already; give each one a name of its own"
            ));
        }
        if models.len() >= MAX_MODELS {
            return invalid(format!(
                "there are {MAX_MODELS} models already, the most that one engine holds"
            ));
        }
        models.push(model);
        Ok(())
    }

    /// The names, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        lock(&self.0)
            .iter()
            .map(|model| model.name().to_owned())
            .collect()
    }

    /// Every model, in order.
    pub(crate) fn all(&self) -> Vec<Arc<Model>> {
        lock(&self.0).clone()
    }

    /// The model of a name; `default` means the first.
    ///
    /// # Errors
    /// `unknown-model`, listing the names that there are.
    pub(crate) fn find(&self, name: &str) -> Result<Arc<Model>, Error> {
        let models = lock(&self.0);
        let found = models
            .iter()
            .find(|model| model.name() == name)
            .or_else(|| models.first().filter(|_| name == DEFAULT));
        found.cloned().ok_or_else(|| {
            let mut names: Vec<&str> = models.iter().map(|model| model.name()).collect();
            let known = if names.is_empty() {
                "none is loaded".to_owned()
            } else {
                format!("loaded: {}", names.join(", "))
            };
            if !names.is_empty() {
                names.push(DEFAULT);
            }
            let meant = did_you_mean(name, &names);
            Error::new(
                ErrorCode::UnknownModel,
                format!("there is no model named {name:?}; {known}{meant}"),
            )
        })
    }
}
