//! What the host knows through the server: installed programs by their names, processes by their numbers.

use std::sync::Arc;

use pie_host::{Error, Finding, Named, Programs, ServedProcess};

use crate::blocking::blocking;
use crate::state::ServerState;

impl Programs for ServerState {
    fn find(self: Arc<Self>, user: &str, name: &str) -> Finding {
        let found = self.registry.find(user, name);
        Box::pin(async move {
            let found = found?;
            if let Some(program) = self.registry.held(&found) {
                let label = found.label;
                return Ok(Named { label, program });
            }
            let (label, program) = blocking(move || self.registry.load(found)).await?;
            Ok(Named { label, program })
        })
    }

    fn process(&self, user: &str, pid: u64) -> Result<ServedProcess, Error> {
        self.processes.of_user(user, pid)
    }
}
