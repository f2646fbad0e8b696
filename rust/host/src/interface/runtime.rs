//! `pie:core/runtime`: what a program may know of the engine and of its own launch.

use wasmtime::component::{HasSelf, Linker};

use super::bindings::pie::core::runtime;
use super::counted;
use crate::process::state::ProcessState;

impl runtime::Host for ProcessState {
    fn models(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(self.host.models.names())
    }

    fn version(&mut self) -> wasmtime::Result<String> {
        Ok(env!("CARGO_PKG_VERSION").to_owned())
    }

    fn instance_id(&mut self) -> wasmtime::Result<String> {
        Ok(self.host.instance_id.clone())
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
    runtime::add_to_linker::<_, HasSelf<_>>(linker, counted)
}
