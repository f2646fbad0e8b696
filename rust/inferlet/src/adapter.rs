//! Adapters: small changes of a model's weights, by name.

use std::rc::Rc;

use crate::bindings::pie::core::adapter as raw;
use crate::{Model, Result};

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

    /// The adapter of that name; none where there is none, and where the driver has no adapters.
    pub fn open(model: &Model, name: &str) -> Option<Self> {
        raw::Adapter::open(model.raw(), name).ok().map(Self::bind)
    }

    pub(crate) fn raw(&self) -> &raw::Adapter {
        &self.raw
    }

    fn bind(raw: raw::Adapter) -> Self {
        Self { raw: Rc::new(raw) }
    }
}
