//! The models that know a process.

use std::sync::Arc;

use pie_core::ProcessId;

use super::record::ProcessRecord;
use crate::Error;
use crate::model::Model;

/// The models in which a process has, or had, a context.
pub(crate) struct Joined {
    record: Arc<ProcessRecord>,
    models: Vec<Arc<Model>>,
}

impl Joined {
    /// Those of a new process: none.
    pub(crate) fn new(record: Arc<ProcessRecord>) -> Self {
        Self {
            record,
            models: Vec::new(),
        }
    }

    /// The number of the process, as the core knows it.
    pub(crate) fn process_id(&self) -> ProcessId {
        ProcessId(self.record.pid)
    }

    /// Makes the process known to a model before it makes its first context there.
    ///
    /// # Errors
    /// Those of the core.
    pub(crate) fn join(&mut self, model: &Arc<Model>) -> Result<(), Error> {
        if self.models.iter().any(|joined| Arc::ptr_eq(joined, model)) {
            return Ok(());
        }
        let record = &self.record;
        let user = model.user(&record.username);
        let process = self.process_id();
        model.with_engine(|engine| {
            engine.new_process(process, user, record.launch_seed)?;
            if let Some(budget) = &record.budget {
                engine.set_token_budget(process, budget.clone());
            }
            Ok::<_, Error>(())
        })?;
        self.models.push(model.clone());
        Ok(())
    }
}

impl Drop for Joined {
    /// Everything that the process holds in the engine is released.
    fn drop(&mut self) {
        for model in &self.models {
            model.with_engine(|engine| engine.end_process(self.process_id()));
        }
    }
}
