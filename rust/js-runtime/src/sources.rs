//! The files of a program.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::bindings::pie::inferlet::source;

thread_local! {
    /// The program of this instance; none while the component is built.
    static CURRENT: RefCell<Option<Rc<Program>>> = const { RefCell::new(None) };
}

/// The files of a program.
#[derive(Default)]
pub(crate) struct Program {
    files: HashMap<String, Vec<u8>>,
    entry: String,
}

impl Program {
    /// The program that came with the launch.
    pub(crate) fn load() -> Rc<Self> {
        let files = source::files()
            .into_iter()
            .map(|file| (file.path, file.content))
            .collect();
        let program = Rc::new(Self {
            files,
            entry: source::entry(),
        });
        CURRENT.set(Some(Rc::clone(&program)));
        program
    }

    /// The path of the file that holds `main`.
    pub(crate) fn entry(&self) -> &str {
        &self.entry
    }

    /// What is in a file.
    pub(crate) fn content(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    /// Every path, in any order.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The file that a path without or with another extension means, as TypeScript's own tools look for it.
    pub(crate) fn find(&self, path: &str) -> Option<String> {
        let source = path.strip_suffix(".js").map(|stem| format!("{stem}.ts"));
        let module_source = path.strip_suffix(".mjs").map(|stem| format!("{stem}.mts"));
        let completed = [
            ".ts",
            ".js",
            ".mts",
            ".mjs",
            ".json",
            "/index.ts",
            "/index.js",
        ]
        .map(|end| format!("{path}{end}"));
        std::iter::once(path.to_owned())
            .chain(source)
            .chain(module_source)
            .chain(completed)
            .find(|candidate| self.files.contains_key(candidate))
    }
}

/// The text of a file of the program that runs; none where there is no such file, or where it is not UTF-8.
pub(crate) fn text(path: String) -> Option<String> {
    CURRENT.with_borrow(|program| {
        let content = program.as_ref()?.content(&path)?;
        std::str::from_utf8(content).ok().map(str::to_owned)
    })
}

/// The paths of the files of the program that runs, sorted.
pub(crate) fn paths() -> Vec<String> {
    CURRENT.with_borrow(|program| {
        let files = program.iter().flat_map(|program| program.paths());
        let mut paths: Vec<String> = files.map(str::to_owned).collect();
        paths.sort_unstable();
        paths
    })
}
