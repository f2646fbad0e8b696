//! Programs by name and processes by number, as somebody above the host keeps them: a server, for its users.
//!
//! Whoever launches by a name, and later whatever program starts or finds others, asks here.

use std::any::Any;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};

use pie_core::ErrorCode;

use super::kin::Inherited;
use super::{Launch, ServedProcess};
use crate::Error;
use crate::program::Program;
use crate::sync::lock;

/// A program that was found by a name.
#[derive(Clone, Debug)]
pub struct Named {
    /// What it is called in full.
    pub label: String,
    /// What is launched.
    pub program: Program,
}

/// A program that is being found. What is at hand is there when it is first polled.
pub type Finding = Pin<Box<dyn Future<Output = Result<Named, Error>> + Send>>;

/// Who keeps programs and processes for users.
pub trait Programs: Send + Sync {
    /// The program that a user calls so; the error of none is `unknown-program`.
    fn find(self: Arc<Self>, user: &str, name: &str) -> Finding;

    /// A process of a user.
    ///
    /// # Errors
    /// `unknown-process`.
    fn process(&self, user: &str, pid: u64) -> Result<ServedProcess, Error>;

    /// Counts a child among the processes of a user, until what it gives is dropped.
    ///
    /// # Errors
    /// `limit-processes`.
    fn admit(self: Arc<Self>, user: &str) -> Result<Box<dyn Any + Send + Sync>, Error>;

    /// Launches a child that outlives its parent, as a process of the launch's user. Lists show it under the label.
    ///
    /// # Errors
    /// Those of a launch.
    fn launch_detached(
        self: Arc<Self>,
        label: String,
        launch: Launch,
        inherited: Inherited,
    ) -> Result<ServedProcess, Error>;
}

/// Who keeps the programs of a host; at first nobody does.
#[derive(Default)]
pub(crate) struct Directory(Mutex<Option<Weak<dyn Programs>>>);

impl Directory {
    /// From now on this one is asked, as long as it is there.
    pub(crate) fn set(&self, programs: Weak<dyn Programs>) {
        *lock(&self.0) = Some(programs);
    }

    /// Who is asked, where somebody is.
    pub(crate) fn get(&self) -> Option<Arc<dyn Programs>> {
        lock(&self.0).as_ref().and_then(Weak::upgrade)
    }

    /// As [`Programs::find`].
    pub(crate) fn find(&self, user: &str, name: &str) -> Finding {
        match self.get() {
            Some(programs) => programs.find(user, name),
            None => {
                let message = format!(
                    "no programs are installed in this engine, so there is no {name:?}; give the program itself"
                );
                let error = Error::new(ErrorCode::UnknownProgram, message);
                Box::pin(std::future::ready(Err(error)))
            }
        }
    }

    /// As [`Programs::process`].
    ///
    /// # Errors
    /// `unknown-process`.
    pub(crate) fn process(&self, user: &str, pid: u64) -> Result<ServedProcess, Error> {
        let Some(programs) = self.get() else {
            let message =
                format!("there is no process {pid} of {user:?}: this engine serves nobody");
            return Err(Error::new(ErrorCode::UnknownProcess, message));
        };
        programs.process(user, pid)
    }
}
