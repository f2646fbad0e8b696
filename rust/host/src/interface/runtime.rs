//! `pie:core/runtime`: what a program may know of the engine and of its own launch.

use std::sync::Arc;

use wasmtime::component::Linker;

use super::bindings::pie::core::runtime;
use super::view::view;
use crate::process::record::ProcessRecord;
use crate::process::state::ProcessState;
use crate::process::surroundings::Surroundings;

view! {
    /// Who runs where.
    Launched { record: Arc<ProcessRecord>, surroundings: Arc<Surroundings> }
}

impl runtime::Host for Launched<'_> {
    fn models(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(self.surroundings.models.names())
    }

    fn version(&mut self) -> wasmtime::Result<String> {
        Ok(env!("CARGO_PKG_VERSION").to_owned())
    }

    fn instance_id(&mut self) -> wasmtime::Result<String> {
        Ok(self.surroundings.instance_id.clone())
    }

    fn username(&mut self) -> wasmtime::Result<String> {
        Ok(self.record.username.clone())
    }

    fn args(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(self.record.args())
    }

    fn launch_seed(&mut self) -> wasmtime::Result<u64> {
        Ok(self.record.launch_seed)
    }
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    runtime::add_to_linker::<_, Launched<'static>>(linker, Launched::of)
}
