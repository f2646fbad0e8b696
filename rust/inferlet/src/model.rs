//! Models that the engine has loaded.

use std::cell::OnceCell;
use std::rc::Rc;

use crate::bindings::pie::core::model as raw;
use crate::{Result, Tokenizer};

/// A model that the engine has loaded. A clone is another handle to the same model.
#[derive(Clone, Debug)]
pub struct Model {
    shared: Rc<Shared>,
}

#[derive(Debug)]
struct Shared {
    raw: raw::Model,
    tokenizer: OnceCell<Tokenizer>,
}

impl Model {
    /// Binds to the model of that name in the configuration; `default` names the first one.
    ///
    /// # Errors
    /// `unknown-model` where no model has that name.
    pub fn load(name: &str) -> Result<Self> {
        Ok(Self {
            shared: Rc::new(Shared {
                raw: raw::Model::load(name)?,
                tokenizer: OnceCell::new(),
            }),
        })
    }

    /// The name of the model in the configuration.
    pub fn name(&self) -> String {
        self.shared.raw.name()
    }

    /// The tokenizer of the model.
    pub fn tokenizer(&self) -> &Tokenizer {
        self.shared
            .tokenizer
            .get_or_init(|| Tokenizer::new(self.shared.raw.tokenizer()))
    }

    pub(crate) fn raw(&self) -> &raw::Model {
        &self.shared.raw
    }
}
