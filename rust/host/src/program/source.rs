//! A program in source form: its files, and the checks that they pass before a language runtime sees them.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use pie_core::ErrorCode;
use sha2::{Digest, Sha256};

use super::holders::Holders;
use super::language::Language;
use super::parts;
use crate::budget::{Budget, Charge};
use crate::{Error, Limits};

/// The most files that a program may have.
pub(crate) const MAX_FILES: usize = 10_000;
/// The longest script that is accepted, in bytes.
const MAX_SCRIPT_BYTES: usize = 1 << 20;
/// What a file costs beside its path and its content: its place among the others, and what counts who shares it.
const FILE_BYTES: usize = 128;
/// The longest path in a program, in bytes.
pub(crate) const MAX_PATH_BYTES: usize = 1024;

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

/// Content by path, shared by all who hold it.
pub(crate) type Files = BTreeMap<String, Arc<Vec<u8>>>;

/// What a language runtime gets of a program.
#[derive(Clone, Debug)]
pub(crate) struct RuntimeInput {
    /// None once the runtime has them.
    pub(crate) files: Option<Arc<Files>>,
    pub(crate) entry: String,
}

/// The sources of a program, and what is found out about them when they are first launched.
#[derive(Debug)]
pub(crate) struct LazySource {
    language: Language,
    files: Arc<Files>,
    entry: String,
    checked: OnceLock<Result<(), Error>>,
    scripts_digest: OnceLock<[u8; 32]>,
    /// The files without types, once they are there.
    plain: Arc<OnceLock<Arc<Files>>>,
    holders: Arc<Holders>,
}

impl LazySource {
    pub(crate) fn new(bundle: SourceBundle) -> Self {
        let files = Arc::unwrap_or_clone(bundle.files);
        let shared = files
            .into_iter()
            .map(|(path, content)| (path, Arc::new(content)));
        Self {
            language: bundle.language,
            files: Arc::new(shared.collect()),
            entry: bundle.entry,
            checked: OnceLock::new(),
            scripts_digest: OnceLock::new(),
            plain: Arc::default(),
            holders: Arc::default(),
        }
    }

    /// The program that one of its files or folders is; what is found out about the same files is shared.
    pub(crate) fn part(&self, path: &str) -> Option<Self> {
        let part = parts::part(path, |path| self.files.contains_key(path))?;
        let has_all = part.base.is_empty();
        let files = if has_all {
            self.files.clone()
        } else {
            let own = self.files.range(part.base.clone()..);
            let own = own.map_while(|(path, content)| {
                let path = path.strip_prefix(&part.base)?;
                Some((path.to_owned(), content.clone()))
            });
            Arc::new(own.collect())
        };
        Some(Self {
            plain: if has_all && part.language == self.language {
                self.plain.clone()
            } else {
                Arc::default()
            },
            holders: if has_all {
                self.holders.clone()
            } else {
                Arc::default()
            },
            language: part.language,
            files,
            entry: part.entry,
            checked: OnceLock::new(),
            scripts_digest: OnceLock::new(),
        })
    }

    /// The path of the file that holds `main`.
    pub(crate) fn entry(&self) -> &str {
        &self.entry
    }

    /// The language of the entry.
    pub(crate) fn language(&self) -> Language {
        self.language
    }

    /// Bytes of its files.
    pub(crate) fn n_bytes(&self) -> usize {
        self.files.values().map(|content| content.len()).sum()
    }

    /// Charges `user` for its files, their paths included.
    ///
    /// # Errors
    /// `limit-engine-memory`.
    pub(crate) fn hold(&self, budget: &Arc<Budget>, user: &str) -> Result<Arc<Charge>, Error> {
        let beside_contents: usize = self.files.keys().map(|path| FILE_BYTES + path.len()).sum();
        self.holders
            .hold(budget, user, self.n_bytes() + beside_contents)
    }

    /// What the runtime gets, where nothing is left to be done for it.
    pub(crate) fn ready(&self) -> Option<RuntimeInput> {
        self.plain.get().map(|files| self.input(files))
    }

    /// What the runtime gets, of files without types.
    pub(crate) fn make_ready(&self, plain: Files) -> RuntimeInput {
        self.input(self.plain.get_or_init(|| Arc::new(plain)))
    }

    /// What the runtime gets, of the files as they are.
    pub(crate) fn make_ready_as_is(&self) -> RuntimeInput {
        self.input(self.plain.get_or_init(|| self.files.clone()))
    }

    fn input(&self, files: &Arc<Files>) -> RuntimeInput {
        RuntimeInput {
            files: Some(files.clone()),
            entry: self.entry.clone(),
        }
    }

    /// The files as they came.
    pub(crate) fn files(&self) -> &Files {
        &self.files
    }

    /// The files that may have types, by path.
    pub(crate) fn scripts(&self) -> impl Iterator<Item = (&str, &Arc<Vec<u8>>)> {
        self.files
            .iter()
            .map(|(path, content)| (path.as_str(), content))
            .filter(|(path, _)| is_script(path))
    }

    /// The digest of the paths and contents of all scripts.
    pub(crate) fn scripts_digest(&self) -> [u8; 32] {
        *self.scripts_digest.get_or_init(|| {
            let mut hasher = Sha256::new();
            for (path, content) in self.scripts() {
                for part in [path.as_bytes(), content] {
                    hasher.update((part.len() as u64).to_le_bytes());
                    hasher.update(part);
                }
            }
            hasher.finalize().into()
        })
    }

    /// Looks at the paths, the sizes and the encoding, once.
    ///
    /// # Errors
    /// `invalid-program`: a path that leaves the folder, a missing entry, files that are too many or too large, or a
    /// script that is not UTF-8.
    pub(crate) fn check(&self, limits: &Limits) -> Result<(), Error> {
        self.checked.get_or_init(|| self.look(limits)).clone()
    }

    fn look(&self, limits: &Limits) -> Result<(), Error> {
        if self.files.len() > MAX_FILES {
            return Err(invalid(format!(
                "the program has {} files, more than {MAX_FILES}; bundle them",
                self.files.len()
            )));
        }
        let n_bytes = self.n_bytes();
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
        match self.language {
            Language::Python => Ok(()),
            Language::JavaScript => self
                .scripts()
                .try_for_each(|(path, content)| check_script(path, content)),
        }
    }
}

fn check_script(path: &str, content: &[u8]) -> Result<(), Error> {
    if content.len() > MAX_SCRIPT_BYTES {
        return Err(invalid(format!(
            "{path}: the file has {} bytes, more than the {MAX_SCRIPT_BYTES} that a source file may have; split it",
            content.len()
        )));
    }
    match std::str::from_utf8(content) {
        Ok(_) => Ok(()),
        Err(error) => Err(invalid(format!(
            "{path}: byte {} is not UTF-8; save the file as UTF-8",
            error.valid_up_to()
        ))),
    }
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

    fn bundle(language: Language, files: &[(&str, &[u8])], entry: &str) -> LazySource {
        let files = files
            .iter()
            .map(|(path, content)| ((*path).to_owned(), content.to_vec()))
            .collect();
        LazySource::new(SourceBundle {
            language,
            files: Arc::new(files),
            entry: entry.to_owned(),
        })
    }

    fn refused(source: LazySource) -> String {
        let error = source.check(&Limits::default()).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidProgram);
        error.message
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
    fn a_folder_has_what_lies_below_it_and_a_file_has_all() {
        let files: &[(&str, &[u8])] = &[
            ("main.py", b"1"),
            ("work/main.py", b"2"),
            ("work/data/a.txt", b"3"),
            ("work2/main.py", b"4"),
        ];
        let whole = bundle(Language::Python, files, "main.py");
        let paths = |part: &LazySource| part.files.keys().cloned().collect::<Vec<_>>();
        let folder = whole.part("work").unwrap();
        assert_eq!(paths(&folder), ["data/a.txt", "main.py"]);
        assert_eq!(folder.entry, "main.py");
        let file = whole.part("work/main.py").unwrap();
        assert_eq!(
            (paths(&file), file.entry.as_str()),
            (paths(&whole), "work/main.py")
        );
        file.check(&Limits::default()).unwrap();
        assert!(whole.part("work/data").is_none());
    }

    #[test]
    fn paths_are_charged_as_contents_are() {
        let paths: Vec<String> = (0..100).map(|n| format!("{n:01000}.py")).collect();
        let files: Vec<(&str, &[u8])> =
            paths.iter().map(|path| (path.as_str(), &b""[..])).collect();
        let budget = Budget::new(64 << 20, None);
        let source = bundle(Language::Python, &files, &paths[0]);
        let charge = source.hold(&budget, "ada").unwrap();
        assert!(charge.n_bytes() > 2 * 100 * 1000);
    }

    #[test]
    fn scripts_are_told_apart_by_paths_and_contents() {
        let digest =
            |files: &[(&str, &[u8])]| bundle(Language::JavaScript, files, "a.ts").scripts_digest();
        let one = digest(&[("a.ts", b"1"), ("data.json", b"{}")]);
        assert_eq!(one, digest(&[("a.ts", b"1"), ("data.json", b"[]")]));
        for other in [
            digest(&[("a.ts", b"2")]),
            digest(&[("b.ts", b"1")]),
            digest(&[("a.ts", b"1"), ("b.ts", b"")]),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn a_script_that_is_too_long_is_named_with_the_limit() {
        let long = vec![b' '; MAX_SCRIPT_BYTES + 1];
        assert_eq!(
            refused(bundle(Language::JavaScript, &[("big.ts", &long)], "big.ts")),
            "big.ts: the file has 1048577 bytes, more than the 1048576 that a source file may have; split it"
        );
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
        let files: &[(&str, &[u8])] = &[("main.py", b"def (\xff"), ("odd.js", b"\xff")];
        bundle(Language::Python, files, "main.py")
            .check(&Limits::default())
            .unwrap();
    }
}
