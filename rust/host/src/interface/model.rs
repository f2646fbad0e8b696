//! `pie:core/model`: the models that the engine has loaded.

use std::sync::Arc;

use wasmtime::component::{Linker, Resource};

use super::bindings::pie::core::model::{self, HostModel};
use super::errors::CallResult;
use super::tokenizer::TokenizerHandle;
use super::view::view;
use crate::model::Model;
use crate::process::handles::HandleTable;
use crate::process::state::ProcessState;
use crate::process::surroundings::Surroundings;

/// What stands behind a `model` handle.
pub struct ModelHandle(pub(crate) Arc<Model>);

view! {
    /// The models of the engine, and the handles of those that the program has loaded.
    Loaded { table: HandleTable, surroundings: Arc<Surroundings> }
}

impl model::Host for Loaded<'_> {}

impl HostModel for Loaded<'_> {
    fn load(&mut self, name: String) -> CallResult<Resource<ModelHandle>> {
        let model = self.surroundings.models.find(&name)?;
        Ok(self.table.push(ModelHandle(model))?)
    }

    fn name(&mut self, this: Resource<ModelHandle>) -> wasmtime::Result<String> {
        Ok(self.table.get(&this)?.0.name().to_owned())
    }

    fn tokenizer(
        &mut self,
        this: Resource<ModelHandle>,
    ) -> wasmtime::Result<Resource<TokenizerHandle>> {
        let chat = self.table.get(&this)?.0.chat().clone();
        Ok(self.table.push(TokenizerHandle(chat))?)
    }

    fn drop(&mut self, this: Resource<ModelHandle>) -> wasmtime::Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    model::add_to_linker::<_, Loaded<'static>>(linker, Loaded::of)
}
