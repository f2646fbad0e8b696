//! `pie:inferlet/source`: the program that a language runtime runs.

use wasmtime::component::{HasSelf, Linker};

use super::bindings::pie::inferlet::source;
use super::counted;
use crate::process::state::ProcessState;

impl source::Host for ProcessState {
    fn files(&mut self) -> wasmtime::Result<Vec<source::File>> {
        let Some(source) = &self.source else {
            return Ok(Vec::new());
        };
        Ok(source
            .files
            .iter()
            .map(|(path, content)| source::File {
                path: path.clone(),
                content: content.clone(),
            })
            .collect())
    }

    fn entry(&mut self) -> wasmtime::Result<String> {
        Ok(self
            .source
            .as_ref()
            .map_or_else(String::new, |source| source.entry.clone()))
    }
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    source::add_to_linker::<_, HasSelf<_>>(linker, counted)
}
