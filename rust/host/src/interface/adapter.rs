//! `pie:core/adapter`: adapters by name.

use pie_core::ErrorCode;
use wasmtime::component::{Linker, Resource};

use super::bindings::pie::core::adapter::{self, HostAdapter};
use super::errors::CallResult;
use super::model::ModelHandle;
use super::view::view;
use crate::Error;
use crate::process::handles::HandleTable;
use crate::process::state::ProcessState;

/// What stands behind an `adapter` handle: there is none yet, as programs cannot make adapters.
#[derive(Debug)]
pub enum AdapterHandle {}

view! {
    /// The handles of adapters.
    Adapters { table: HandleTable }
}

impl Adapters<'_> {
    fn unsupported(&mut self, model: &Resource<ModelHandle>) -> CallResult<Error> {
        let name = self.table.get(model)?.0.name();
        Ok(Error::new(
            ErrorCode::Unsupported,
            format!("programs cannot make or open adapters of {name}; leave them out"),
        ))
    }
}

impl adapter::Host for Adapters<'_> {}

impl HostAdapter for Adapters<'_> {
    fn create(
        &mut self,
        model: Resource<ModelHandle>,
        _name: String,
    ) -> CallResult<Resource<AdapterHandle>> {
        Err(self.unsupported(&model)?.into())
    }

    fn open(
        &mut self,
        model: Resource<ModelHandle>,
        _name: String,
    ) -> CallResult<Resource<AdapterHandle>> {
        Err(self.unsupported(&model)?.into())
    }

    fn drop(&mut self, this: Resource<AdapterHandle>) -> wasmtime::Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    adapter::add_to_linker::<_, Adapters<'static>>(linker, Adapters::of)
}
