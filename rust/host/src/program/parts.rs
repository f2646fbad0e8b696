//! Programs within the folder of a program: what one of its files or folders is as a program of its own.

use super::language::Language;

/// The entries of a folder, the first that is there. `python/pie/programs.py` has the same list.
pub(crate) const ENTRIES: [&str; 10] = [
    "main.py",
    "main.ts",
    "main.js",
    "index.ts",
    "index.js",
    "src/main.py",
    "src/main.ts",
    "src/main.js",
    "src/index.ts",
    "src/index.js",
];

/// A part of a program that can run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) language: Language,
    /// Only what lies below this path, which ends in a slash, belongs to it; empty: all does.
    pub(crate) base: String,
    /// Its entry, relative to `base`.
    pub(crate) entry: String,
}

/// The part that a path names, where `has` knows the files of the program. A file runs with all of them, a folder with
/// those beside its entry.
pub(crate) fn part(path: &str, has: impl Fn(&str) -> bool) -> Option<Part> {
    let path = path.strip_prefix("./").unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    if has(path) {
        return Some(Part {
            language: language_of(path)?,
            base: String::new(),
            entry: path.to_owned(),
        });
    }
    let found = ENTRIES.iter().map(|entry| format!("{path}/{entry}"));
    let found = found.into_iter().find(|entry| has(entry))?;
    let (base, entry) = found.split_at(found.rfind('/')? + 1);
    Some(Part {
        language: language_of(entry)?,
        base: base.to_owned(),
        entry: entry.to_owned(),
    })
}

/// The language of a file, by the end of its name.
fn language_of(path: &str) -> Option<Language> {
    match path.rsplit_once('.')?.1 {
        "py" => Some(Language::Python),
        "js" | "mjs" | "ts" => Some(Language::JavaScript),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_file_or_the_entry_of_a_folder() {
        let files = [
            "main.py",
            "notes.txt",
            "tools/count.ts",
            "worker/src/main.ts",
            "worker/src/other.ts",
            "both/index.js",
            "both/main.py",
        ];
        let found = |path: &str| part(path, |file| files.contains(&file));
        for (path, expected) in [
            ("main.py", Some(("", "main.py"))),
            ("./main.py", Some(("", "main.py"))),
            ("tools/count.ts", Some(("", "tools/count.ts"))),
            ("worker", Some(("worker/src/", "main.ts"))),
            ("./worker/", Some(("worker/src/", "main.ts"))),
            ("both", Some(("both/", "main.py"))),
            ("tools", None),
            ("notes.txt", None),
            ("../main.py", None),
            ("/main.py", None),
            ("worker//", None),
            ("", None),
        ] {
            let given = found(path).map(|part| (part.base, part.entry));
            let expected = expected.map(|(base, entry)| (base.to_owned(), entry.to_owned()));
            assert_eq!(given, expected, "{path:?}");
        }
        assert_eq!(found("main.py").unwrap().language, Language::Python);
        assert_eq!(found("worker").unwrap().language, Language::JavaScript);
    }
}
