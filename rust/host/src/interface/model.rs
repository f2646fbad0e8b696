//! `pie:core/model`: the models that the engine has loaded.

use std::sync::Arc;

use wasmtime::component::{HasSelf, Linker, Resource};

use super::bindings::pie::core::model::{self, HostModel};
use super::tokenizer::TokenizerHandle;
use super::{CallResult, counted};
use crate::model::Model;
use crate::process::state::ProcessState;

/// What stands behind a `model` handle.
pub struct ModelHandle(pub(crate) Arc<Model>);

impl model::Host for ProcessState {}

impl HostModel for ProcessState {
    fn load(&mut self, name: String) -> CallResult<Resource<ModelHandle>> {
        let model = self.host.models.find(&name)?;
        Ok(self.table.push(ModelHandle(model))?)
    }

    fn name(&mut self, this: Resource<ModelHandle>) -> wasmtime::Result<String> {
        Ok(self.table.get(&this)?.0.name().to_owned())
    }

    fn tokenizer(
        &mut self,
        this: Resource<ModelHandle>,
    ) -> wasmtime::Result<Resource<TokenizerHandle>> {
        let tokenizer = self.table.get(&this)?.0.chat().tokenizer().clone();
        Ok(self.table.push(TokenizerHandle(tokenizer))?)
    }

    fn drop(&mut self, this: Resource<ModelHandle>) -> wasmtime::Result<()> {
        self.count_drop();
        self.table.delete(this)?;
        Ok(())
    }
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    model::add_to_linker::<_, HasSelf<_>>(linker, counted)
}
