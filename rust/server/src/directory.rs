//! What the host knows through the server: installed programs by their names, processes by their
//! numbers, and what programs start.

use std::any::Any;
use std::sync::Arc;

use pie_host::{Error, Finding, Inherited, Launch, Named, Programs, ServedProcess};

use crate::blocking::blocking;
use crate::processes::Launcher;
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

    fn admit(self: Arc<Self>, user: &str) -> Result<Box<dyn Any + Send + Sync>, Error> {
        let place = self.processes.admit(user, self.host.next_count())?;
        Ok(Box::new(place))
    }

    fn launch_detached(
        self: Arc<Self>,
        label: String,
        launch: Launch,
        inherited: Inherited,
    ) -> Result<ServedProcess, Error> {
        let launcher = Launcher {
            user: launch.username.clone().unwrap_or_default(),
            address: None,
            connection: None,
            detached: true,
            name: None,
            window_bytes: None,
            inherited: Some(inherited),
        };
        let (process, _) = self
            .processes
            .launch_now(&self.host, launch, label, launcher)?;
        Ok(process)
    }
}
