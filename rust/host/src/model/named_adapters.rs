//! The adapters of a model by their names, as programs and whoever runs the engine end them, and as they are listed.

use pie_core::{ErrorCode, UserId};

use super::Model;
use super::adapters::AdapterInfo;
use crate::Error;

impl Model {
    /// The adapters of a user, or of all, by user and name.
    pub fn adapters_of(&self, user: Option<&str>) -> Vec<AdapterInfo> {
        self.adapters.list(user.map(|user| self.user(user)))
    }

    /// How many adapters a user has, or all have.
    pub fn n_adapters(&self, user: Option<&str>) -> usize {
        self.adapters.count(user.map(|user| self.user(user)))
    }

    /// Takes the name of an adapter of a user. Contexts that were computed with it go on.
    ///
    /// # Errors
    /// `adapter-missing`; `adapter-busy` while a pass is computed with it.
    pub fn delete_adapter(&self, user: &str, name: &str) -> Result<(), Error> {
        self.destroy_adapter(self.user(user), name)
    }

    /// The same for a program of a user.
    ///
    /// # Errors
    /// As [`Model::delete_adapter`].
    pub(crate) fn destroy_adapter(&self, user: UserId, name: &str) -> Result<(), Error> {
        let version = self.adapters.find(user, name)?;
        let n = self.with_engine(|engine| engine.passes_with(user, version.name));
        if n > 0 {
            let message = format!(
                "{n} passes are computed with the adapter {name:?}; take their results first, or drop their contexts"
            );
            return Err(Error::new(ErrorCode::AdapterBusy, message));
        }
        self.adapters.destroy(user, name)
    }
}
