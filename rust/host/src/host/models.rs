//! The models of a host.

use std::sync::Arc;
use std::time::Duration;

use pie_core::market::MICRO;

use super::Host;
use crate::Error;
use crate::model::state::ModelState;
use crate::model::{Model, ModelConfig, bringing, dummy, overdue};
use crate::snapshots::config::Durability;
use crate::snapshots::store::{ModelIdentity, SnapshotStore};
use crate::sync::lock;

impl Host {
    /// Adds a model; somebody has to drive it.
    ///
    /// # Errors
    /// `invalid-model` when a file of its folder is missing or damaged, `invalid-config` for a setting out of its range
    /// or a name that is taken, `internal` when there is no thread to watch its driver.
    pub fn add_model(&self, mut config: ModelConfig) -> Result<Arc<Model>, Error> {
        config.engine.driver_timeout = if config.is_isolated {
            Duration::ZERO
        } else {
            self.shared.config.driver_timeout
        };
        let host = &self.shared.config;
        config.engine.page_price = host.page_price.saturating_mul(MICRO);
        let identity = ModelIdentity {
            name: config.engine.model.clone(),
            backend: config.engine.driver.backend.clone(),
            folder: config.folder.clone(),
        };
        let mut model = Model::new(config, host.data_dir.as_deref())?;
        if let (Durability::Disk, Some(dir)) = (host.snapshots.durability, host.snapshots_dir()) {
            let store = SnapshotStore::new(&dir, host.snapshots.clone(), identity);
            store.clean_up();
            model.keep_in(store);
        }
        let model = Arc::new(model);
        overdue::start(&model)?;
        bringing::start(&model)?;
        self.shared.surroundings.models.add(model.clone())?;
        Ok(model)
    }

    /// The model of a name, or none.
    pub fn model(&self, name: &str) -> Option<Arc<Model>> {
        self.shared.surroundings.models.find(name).ok()
    }

    /// The names of the models, in order.
    pub fn models(&self) -> Vec<String> {
        self.shared.surroundings.models.names()
    }

    /// Where the driver of each model stands, in order. The engine is ready where all of them serve.
    pub fn model_states(&self) -> Vec<(String, ModelState)> {
        let models = self.shared.surroundings.models.all();
        let state = |model: &Arc<Model>| (model.name().to_owned(), model.state());
        models.iter().map(state).collect()
    }

    /// Drives a model with the dummy driver, in a thread that ends when the host stops. Where the visible text holds
    /// the pattern of a pair of `script`, the pair's reply is what the model says.
    ///
    /// # Errors
    /// `invalid-argument` for a reply that cannot be encoded, `internal` when no thread can be started.
    pub fn run_dummy(
        &self,
        model: &Arc<Model>,
        script: Vec<(String, String)>,
    ) -> Result<(), Error> {
        let thread = dummy::drive(model.clone(), script)?;
        lock(&self.drivers).push(thread);
        Ok(())
    }

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
