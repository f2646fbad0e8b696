//! `pie:inferlet/source`: the program that a language runtime runs.

use std::sync::Arc;

use wasmtime::StoreContextMut;
use wasmtime::component::{ComponentType, Linker, Lower};

use super::view::view;
use crate::process::state::ProcessState;
use crate::program::source::RuntimeInput;

/// The name of the interface.
const INTERFACE: &str = "pie:inferlet/source@0.1.0";

/// A file of the program, whose content is shared with whoever else runs it.
#[derive(ComponentType, Lower)]
#[component(record)]
struct File {
    path: String,
    content: Arc<Vec<u8>>,
}

view! {
    /// What a language runtime sees of the program that it runs.
    Sources { source: Option<RuntimeInput> }
}

impl Sources<'_> {
    /// Gives the files away: a runtime keeps what it needs of them in its own memory, and they are not held twice.
    fn take_files(&mut self) -> wasmtime::Result<Vec<File>> {
        let Some(source) = self.source else {
            return Ok(Vec::new());
        };
        let Some(files) = source.files.take() else {
            return Err(wasmtime::Error::msg(
                "a language runtime asked for the files of its program twice; keep them",
            ));
        };
        Ok(files
            .iter()
            .map(|(path, content)| File {
                path: path.clone(),
                content: content.clone(),
            })
            .collect())
    }

    fn entry(&self) -> String {
        self.source
            .as_ref()
            .map_or_else(String::new, |source| source.entry.clone())
    }
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    let mut interface = linker.instance(INTERFACE)?;
    interface.func_wrap(
        "files",
        |mut store: StoreContextMut<'_, ProcessState>, (): ()| {
            Ok((Sources::of(store.data_mut()).take_files()?,))
        },
    )?;
    interface.func_wrap(
        "entry",
        |mut store: StoreContextMut<'_, ProcessState>, (): ()| {
            Ok((Sources::of(store.data_mut()).entry(),))
        },
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn files_are_given_away_once() {
        let file = Arc::new(b"1".to_vec());
        let mut given = Some(RuntimeInput {
            files: Some(BTreeMap::from([("main.py".to_owned(), file)]).into()),
            entry: "main.py".to_owned(),
        });
        let mut source = Sources { source: &mut given };
        assert_eq!(source.entry(), "main.py");
        let files = source.take_files().unwrap();
        assert_eq!(files.len(), 1);
        assert_eq!(
            (files[0].path.as_str(), &**files[0].content),
            ("main.py", &b"1"[..])
        );
        let error = source.take_files().err().unwrap();
        assert!(error.to_string().contains("twice"), "{error}");
        // Nobody else has files to give.
        let mut nothing = None;
        let mut source = Sources {
            source: &mut nothing,
        };
        assert!(source.take_files().unwrap().is_empty());
        assert_eq!(source.entry(), "");
    }
}
