//! Adapters: small changes of a model's weights (LoRA), by name.

use std::rc::Rc;

use crate::bindings::pie::core::adapter as raw;
use crate::bindings::pie::core::types::Error;
use crate::kept::Keeper;
use crate::{Model, Result};

const MISSING: &str = "adapter-missing";
/// The shape of an adapter where nothing is said.
const RANK: u32 = 8;
const ALPHA: f32 = 16.0;

/// A change of a model's weights that has a name: every program of the user finds it, until it is destroyed or the
/// engine ends. Dropping this never deletes the adapter of that name. A generator or a pass computes with what the
/// adapter was when it was given it.
#[derive(Clone, Debug)]
pub struct Adapter {
    /// Why there is none, where it is a copy that could not be made.
    held: Rc<std::result::Result<raw::Adapter, Error>>,
    /// That error, until somebody meets it.
    keeper: Keeper,
}

impl Adapter {
    /// A new adapter, which changes nothing until it is loaded or trained, of rank 8 and alpha 16.
    ///
    /// # Errors
    /// `adapter-exists` for a name that is taken; `limit-adapters` where there are too many, or they are too large;
    /// `unsupported` where the driver of the model has no adapters.
    pub fn create(model: &Model, name: &str) -> Result<Self> {
        Self::create_with(model, name, RANK, ALPHA)
    }

    /// The same of another shape: `rank` is 1 to 512, and what the adapter changes is multiplied by `alpha / rank`.
    ///
    /// # Errors
    /// As [`Adapter::create`]; `invalid-argument` for a shape out of its range.
    pub fn create_with(model: &Model, name: &str, rank: u32, alpha: f32) -> Result<Self> {
        let made = raw::Adapter::create(model.raw(), name, rank, alpha)?;
        Ok(Self::bind(Ok(made)))
    }

    /// The adapter of that name; none where there is none. Where the call fails, as on a driver without adapters, it is
    /// none too, and the error fails the program at its end.
    pub fn open(model: &Model, name: &str) -> Option<Self> {
        match raw::Adapter::open(model.raw(), name) {
            Ok(raw) => Some(Self::bind(Ok(raw))),
            Err(error) => {
                if error.code != MISSING {
                    Keeper::new().keep(error);
                }
                None
            }
        }
    }

    /// The names of all adapters of the user, sorted.
    ///
    /// # Errors
    /// `unsupported` where the driver of the model has no adapters.
    pub fn names(model: &Model) -> Result<Vec<String>> {
        Ok(raw::Adapter::names(model.raw())?)
    }

    /// A copy under another name, which takes no memory until one of both changes. Where it cannot be made, as for a
    /// name that is taken, the next call on it or with it returns the error.
    #[must_use]
    pub fn fork(&self, new_name: &str) -> Self {
        let made = self.raw().and_then(|raw| raw.fork(new_name));
        let failed = made.as_ref().err().cloned();
        let fork = Self::bind(made);
        if let Some(error) = failed {
            fork.keeper.keep(error);
        }
        fork
    }

    /// Returns the error of a copy that could not be made.
    ///
    /// # Errors
    /// As of [`Adapter::create`], `adapter-missing`.
    pub fn check(&self) -> Result<()> {
        self.raw()?;
        Ok(())
    }

    /// Writes it to a folder in `/scratch`, in the format of PEFT: `adapter_config.json` and
    /// `adapter_model.safetensors`. A path that does not begin with `/` is one in `/scratch`.
    ///
    /// # Errors
    /// `invalid-argument` for a path that lies elsewhere, `files-off`, `limit-files`, `disk-full`.
    pub fn save(&self, path: &str) -> Result<()> {
        Ok(self.raw()?.save(path)?)
    }

    /// Puts the LoRA adapter of a folder in its place, which PEFT or `save` wrote there.
    ///
    /// # Errors
    /// `invalid-adapter` where it does not fit the model, is damaged, or asks for what is not supported, and nothing
    /// changes then; `limit-adapters`; those of [`Adapter::save`].
    pub fn load(&self, path: &str) -> Result<()> {
        Ok(self.raw()?.load(path)?)
    }

    /// Adds noise to its weights: of each seed, times a factor. It is the noise by which a pass with that `zo_seed`
    /// perturbs the adapter, where its factor is the adapter's sigma (0.02 at first); `sigma` sets another one.
    ///
    /// # Errors
    /// `adapter-busy` where another program changes it meanwhile; `invalid-adapter` where the weights would not be
    /// finite; `invalid-argument` for a factor out of its range.
    pub fn change(&self, changes: &[(i64, f32)], sigma: Option<f32>) -> Result<()> {
        let changes = changes
            .iter()
            .map(|&(seed, factor)| raw::Change { seed, factor });
        Ok(self.raw()?.change(&changes.collect::<Vec<_>>(), sigma)?)
    }

    /// Deletes it. Generators and contexts that have used it go on. The error of one that passes are computed with, or
    /// that is gone, fails the program at its end.
    pub fn destroy(self) {
        if let Err(error) = self.raw().and_then(raw::Adapter::destroy) {
            Keeper::new().keep(error);
        }
    }

    /// The adapter of the engine; the error of the copy that could not be made.
    pub(crate) fn raw(&self) -> std::result::Result<&raw::Adapter, Error> {
        match &*self.held {
            Ok(raw) => Ok(raw),
            Err(error) => {
                // Whoever asks has met it.
                drop(self.keeper.meet());
                Err(error.clone())
            }
        }
    }

    fn bind(made: std::result::Result<raw::Adapter, Error>) -> Self {
        Self {
            held: Rc::new(made),
            keeper: Keeper::new(),
        }
    }
}
