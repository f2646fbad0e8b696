//! What a program asks for that programs do not have. The standard library has a number for it, and no words on what
//! to use instead.

use crate::{ErrorCode, errors, files};

/// What errors say, as texts and in panics, and what to use instead; the first that fits.
const ABSENT: &[(&[&str], &str)] = &[
    (
        &["failed to spawn thread"],
        "a program has one thread, in which `inferlet::task::join_all` runs futures beside one another",
    ),
    (
        &[
            "operation not supported on this platform",
            "(os error 58)",
            "kind: Unsupported",
        ],
        "a program has no threads and no processes: `inferlet::task::join_all` runs futures beside one another, and \
         `inferlet::runtime::spawn` starts another program",
    ),
    (
        &[
            "(os error 2)",
            "code: 2, kind: PermissionDenied",
            "failed to lookup address information",
        ],
        "a program has no sockets, and asks servers by `inferlet::http`, which `pie run --allow-net HOST` allows; nor \
         does it leave the folders that it is given",
    ),
];
/// What is said of a path at which there is nothing.
const MISSING: &[&str] = &["(os error 44)", "code: 44, kind: NotFound"];
const NO_FILES: &str = "a program has no files of the machine but in folders given by `pie run --mount DIR=/data`; it \
                        keeps its own below /scratch, and gets others by its input or from its client \
                        (`session::receive_file`)";

/// The text of an error that `main` returned, with what to do about it.
pub(crate) fn explained(text: String) -> String {
    explained_by(text, files::refusal)
}

/// What to do about what a panic says; none where its words say enough.
pub(crate) fn hint(text: &str) -> Option<String> {
    hint_by(text, files::refusal)
}

fn explained_by(text: String, refusal: impl FnOnce() -> Option<String>) -> String {
    if errors::split(&text).is_some() {
        return text;
    }
    if text.trim().is_empty() {
        return "`main` returned an error without a text; give it one".to_owned();
    }
    let (code, hint) = match hint_by(&text, refusal) {
        Some(hint) => match errors::split(&hint) {
            Some((code, why)) => (Some(code), why.to_owned()),
            None => (None, hint),
        },
        None => return text,
    };
    match code {
        Some(code) => errors::text(code, format_args!("{text}: {hint}")),
        None => format!("{text}: {hint}"),
    }
}

/// The hint; with the code `files-off` where the program has no folder of its own.
fn hint_by(text: &str, refusal: impl FnOnce() -> Option<String>) -> Option<String> {
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if says(MISSING) {
        let off =
            refusal().filter(|refused| errors::error_code(refused) == Some(ErrorCode::FilesOff));
        return Some(off.unwrap_or_else(|| NO_FILES.to_owned()));
    }
    let (_, instead) = ABSENT.iter().find(|(words, _)| says(words))?;
    Some((*instead).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn off() -> Option<String> {
        Some("[files-off] programs have no /scratch here: set engine.data_dir".to_owned())
    }

    #[test]
    fn what_is_absent_is_told_with_what_to_use_instead() {
        for (text, words) in [
            ("Permission denied (os error 2)", "`inferlet::http`"),
            (
                "operation not supported on this platform",
                "`inferlet::runtime::spawn`",
            ),
            (
                "No such file or directory (os error 44)",
                "--mount DIR=/data",
            ),
            (
                "failed to spawn thread: Os { code: 58, kind: Unsupported, message: \"Not supported\" }",
                "one thread",
            ),
        ] {
            let told = explained_by(text.to_owned(), || None);
            assert!(told.starts_with(text) && told.contains(words), "{told}");
        }
    }

    #[test]
    fn what_says_enough_stays_as_it_is() {
        for text in ["boom", "[out-of-pages] none (os error 44)"] {
            assert_eq!(explained_by(text.to_owned(), off), text);
        }
        assert!(explained_by(String::new(), || None).contains("without a text"));
    }

    #[test]
    fn where_there_is_no_folder_the_reason_stands_alone() {
        assert_eq!(
            explained_by("No such file or directory (os error 44)".to_owned(), off),
            "[files-off] No such file or directory (os error 44): programs have no /scratch here: set engine.data_dir"
        );
    }
}
