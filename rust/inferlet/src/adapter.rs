//! Adapters: small changes of a model's weights, by name.

use std::rc::Rc;

use crate::bindings::pie::core::adapter as raw;
use crate::kept::Keeper;
use crate::{Model, Result};

const MISSING: &str = "adapter-missing";

/// A change of a model's weights that has a name. Dropping this never deletes the adapter of that name.
#[derive(Clone, Debug)]
pub struct Adapter {
    raw: Rc<raw::Adapter>,
}

impl Adapter {
    /// A new adapter.
    ///
    /// # Errors
    /// `unsupported` where the driver of the model has no adapters.
    pub fn create(model: &Model, name: &str) -> Result<Self> {
        Ok(Self::bind(raw::Adapter::create(model.raw(), name)?))
    }

    /// The adapter of that name; none where there is none. Where the call fails, as on a driver without adapters, it is
    /// none too, and the error fails the program at its end.
    pub fn open(model: &Model, name: &str) -> Option<Self> {
        match raw::Adapter::open(model.raw(), name) {
            Ok(raw) => Some(Self::bind(raw)),
            Err(error) => {
                if error.code != MISSING {
                    Keeper::new().keep(error);
                }
                None
            }
        }
    }

    pub(crate) fn raw(&self) -> &raw::Adapter {
        &self.raw
    }

    fn bind(raw: raw::Adapter) -> Self {
        Self { raw: Rc::new(raw) }
    }
}
