//! A program in source form: its files, and the checks that they pass before a language runtime sees them.

use std::collections::BTreeMap;
use std::sync::Arc;

use pie_core::ErrorCode;
use tokio::sync::OnceCell;

use super::typescript::strip_types;
use crate::process::event::Failure;
use crate::{Error, Limits};

/// The most files that a program may have.
pub(crate) const MAX_FILES: usize = 10_000;
/// The longest path in a program, in bytes.
pub(crate) const MAX_PATH_BYTES: usize = 1024;

/// A language that has a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// Python.
    Python,
    /// JavaScript, and TypeScript, whose types are removed.
    JavaScript,
}

impl Language {
    /// The language of a name as programs and settings write it.
    ///
    /// # Errors
    /// `invalid-argument` for a name without a runtime.
    pub fn from_name(name: &str) -> Result<Self, Error> {
        match name {
            "python" => Ok(Self::Python),
            "javascript" => Ok(Self::JavaScript),
            _ => Err(Error::new(
                ErrorCode::InvalidArgument,
                format!("there is no runtime for the language {name:?}; use python or javascript"),
            )),
        }
    }

    /// The name, as programs and settings write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::JavaScript => "javascript",
        }
    }
}

/// The files of a program in source form.
#[derive(Clone, Debug)]
pub struct SourceBundle {
    /// The language of the entry.
    pub language: Language,
    /// Content by path, relative to the program's folder, with `/` between names.
    pub files: Arc<BTreeMap<String, Vec<u8>>>,
    /// The path of the file that holds `main`.
    pub entry: String,
}

/// A bundle, and what its runtime gets, made when it is first launched.
#[derive(Debug)]
pub(crate) struct LazySource {
    bundle: SourceBundle,
    prepared: OnceCell<Result<SourceBundle, Failure>>,
}

impl LazySource {
    pub(crate) fn new(bundle: SourceBundle) -> Self {
        Self {
            bundle,
            prepared: OnceCell::new(),
        }
    }

    /// The language of the entry.
    pub(crate) fn language(&self) -> Language {
        self.bundle.language
    }

    /// The bundle as its runtime gets it; see [`SourceBundle::prepare`].
    pub(crate) async fn prepared(&self, limits: &Limits) -> Result<SourceBundle, Failure> {
        let prepare = || async {
            let (bundle, limits) = (self.bundle.clone(), limits.clone());
            let prepared = tokio::task::spawn_blocking(move || bundle.prepare(&limits)).await;
            prepared.unwrap_or_else(|error| Err(Error::internal(error).into()))
        };
        self.prepared.get_or_init(prepare).await.clone()
    }
}

impl SourceBundle {
    /// The bundle as its runtime gets it.
    ///
    /// # Errors
    /// `invalid-program`: a path that leaves the folder, a missing entry, a file that does not parse (with its file, line and column).
    pub(crate) fn prepare(self, limits: &Limits) -> Result<Self, Failure> {
        self.check(limits)?;
        match self.language {
            Language::Python => Ok(self),
            Language::JavaScript => self.without_types(),
        }
    }

    fn check(&self, limits: &Limits) -> Result<(), Error> {
        if self.files.len() > MAX_FILES {
            return Err(invalid(format!(
                "the program has {} files, more than {MAX_FILES}; bundle them",
                self.files.len()
            )));
        }
        let n_bytes: usize = self.files.values().map(Vec::len).sum();
        if n_bytes > limits.source_bytes {
            return Err(invalid(format!(
                "the files of the program have {n_bytes} bytes, more than limits.source_bytes = {}; leave out what it does not need",
                limits.source_bytes
            )));
        }
        if let Some(path) = self.files.keys().find(|path| !is_relative(path)) {
            return Err(invalid(format!(
                "the path {path:?} is not one below the program's folder; use names separated by single slashes, without . and .."
            )));
        }
        if !self.files.contains_key(&self.entry) {
            return Err(invalid(format!(
                "the entry {:?} is not among the program's files",
                self.entry
            )));
        }
        Ok(())
    }

    fn without_types(self) -> Result<Self, Failure> {
        let mut files = BTreeMap::new();
        for (path, content) in self.files.iter() {
            let content = if is_script(path) {
                stripped(path, content)?
            } else {
                content.clone()
            };
            files.insert(path.clone(), content);
        }
        Ok(Self {
            files: Arc::new(files),
            ..self
        })
    }
}

fn stripped(path: &str, content: &[u8]) -> Result<Vec<u8>, Failure> {
    let text = String::from_utf8(content.to_vec()).map_err(|error| {
        Failure::from(invalid(format!(
            "{path}: byte {} is not UTF-8; save the file as UTF-8",
            error.utf8_error().valid_up_to()
        )))
    })?;
    strip_types(path, text)
        .map(String::into_bytes)
        .map_err(|message| Failure {
            kind: "SyntaxError".to_owned(),
            code: Some(ErrorCode::InvalidProgram.as_str().to_owned()),
            message,
            traceback: String::new(),
        })
}

fn is_script(path: &str) -> bool {
    [".ts", ".mts", ".js", ".mjs"]
        .iter()
        .any(|ending| path.ends_with(ending))
}

/// True for a path of plain names below the program's folder.
pub(crate) fn is_relative(path: &str) -> bool {
    path.len() <= MAX_PATH_BYTES
        && !path.contains(['\0', '\\'])
        && path.split('/').all(|name| !matches!(name, "" | "." | ".."))
}

fn invalid(message: String) -> Error {
    Error::new(ErrorCode::InvalidProgram, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(language: Language, files: &[(&str, &[u8])], entry: &str) -> SourceBundle {
        let files = files
            .iter()
            .map(|(path, content)| ((*path).to_owned(), content.to_vec()))
            .collect();
        SourceBundle {
            language,
            files: Arc::new(files),
            entry: entry.to_owned(),
        }
    }

    fn refused(bundle: SourceBundle) -> String {
        let failure = bundle.prepare(&Limits::default()).unwrap_err();
        assert_eq!(failure.code.as_deref(), Some("invalid-program"));
        failure.message
    }

    #[test]
    fn paths_stay_below_the_folder() {
        for path in [
            "/main.py",
            "../main.py",
            "a//b.py",
            "a/./b.py",
            "",
            "a\0b",
            "a\\b",
        ] {
            let message = refused(bundle(Language::Python, &[(path, b"")], path));
            assert!(message.contains("program's folder"), "{message}");
        }
    }

    #[test]
    fn a_missing_entry_is_named() {
        let message = refused(bundle(Language::Python, &[("a.py", b"")], "main.py"));
        assert_eq!(
            message,
            "the entry \"main.py\" is not among the program's files"
        );
    }

    #[test]
    fn types_are_removed_from_scripts_only() {
        let files: &[(&str, &[u8])] = &[
            ("main.ts", b"let a: number = 1"),
            ("data.json", b"{\"a\": 1}"),
        ];
        let prepared = bundle(Language::JavaScript, files, "main.ts")
            .prepare(&Limits::default())
            .unwrap();
        assert_eq!(prepared.files["main.ts"], b"let a         = 1");
        assert_eq!(prepared.files["data.json"], b"{\"a\": 1}");
    }

    #[test]
    fn a_script_that_is_not_utf8_is_refused() {
        let message = refused(bundle(
            Language::JavaScript,
            &[("main.js", b"ab\xff")],
            "main.js",
        ));
        assert_eq!(
            message,
            "main.js: byte 2 is not UTF-8; save the file as UTF-8"
        );
    }

    #[test]
    fn python_sources_are_left_to_the_runtime() {
        bundle(Language::Python, &[("main.py", b"def (")], "main.py")
            .prepare(&Limits::default())
            .unwrap();
    }
}
