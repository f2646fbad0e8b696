//! The error of a program that is not there. It is made of what its user has alone, so that a program of somebody else
//! reads as one that nobody has.

use pie_host::{Error, ErrorCode, did_you_mean};

/// Names of a user that are compared with a name that is not there.
pub(super) const MAX_COMPARED: usize = 100;
/// Versions that a message names.
pub(super) const MAX_SHOWN_VERSIONS: usize = 5;
/// Characters of a name that are shown.
const SHOWN_CHARS: usize = 120;
/// Bytes of a name that is compared with others: no program has a longer one.
const MAX_COMPARED_BYTES: usize = 64;

/// What a user has installed that may be meant.
#[derive(Debug, Default)]
pub(super) struct Alike<'a> {
    /// The versions of that name, the highest first.
    pub(super) versions: Vec<&'a str>,
    /// The names of programs, each with its highest version.
    pub(super) names: Vec<(&'a str, &'a str)>,
}

/// The error for a program that is to be launched.
pub(super) fn to_launch(user: &str, program: &str, alike: &Alike<'_>) -> Error {
    unknown(user, program, &remedy(user, program, alike))
}

/// The error for a program that is to be removed.
pub(super) fn to_remove(user: &str, program: &str) -> Error {
    let remedy = format!("{} lists those there are", listing(user));
    unknown(user, program, &remedy)
}

fn remedy(user: &str, program: &str, alike: &Alike<'_>) -> String {
    if program.starts_with("sha256:") {
        return "an upload lasts as long as the connection that sent it: upload the file over this one, or install it"
            .to_owned();
    }
    let name = program.split_once('@').map_or(program, |(name, _)| name);
    if !alike.versions.is_empty() {
        let versions = alike.versions.join(", ");
        return format!(
            "of {name:?} there are the versions {versions}; launch one of them, or install it first"
        );
    }
    let hint = if name.len() <= MAX_COMPARED_BYTES {
        meant(name, program.contains('@'), alike)
    } else {
        String::new()
    };
    if names_a_file(program) {
        return format!(
            "upload the file and launch the digest that the upload returns, or install it{hint}"
        );
    }
    format!(
        "install it first, or choose one that {} lists{hint}",
        listing(user)
    )
}

/// What may be meant by a name: with its version for whoever gave one, since that is another way to write it.
fn meant(name: &str, has_version: bool, alike: &Alike<'_>) -> String {
    let names: Vec<&str> = alike.names.iter().map(|(known, _)| *known).collect();
    let hint = did_you_mean(name, &names);
    if !has_version {
        return hint;
    }
    let mut names = alike.names.iter();
    let near = names.find(|(known, _)| hint.ends_with(&format!(" {known:?}?")));
    near.map_or_else(String::new, |(known, version)| {
        format!("; did you mean \"{known}@{version}\"?")
    })
}

/// The command that lists the programs of a user.
fn listing(user: &str) -> String {
    format!("`pie programs --user {user}`")
}

/// True where a program is called as its file is.
fn names_a_file(program: &str) -> bool {
    const ENDS: [&str; 5] = [".py", ".js", ".mjs", ".ts", ".wasm"];
    program.contains('/') || ENDS.iter().any(|end| program.ends_with(end))
}

fn unknown(user: &str, program: &str, remedy: &str) -> Error {
    let shown: String = program.chars().take(SHOWN_CHARS).collect();
    let message = format!("{user:?} has no program {shown:?}; {remedy}");
    Error::new(ErrorCode::UnknownProgram, message)
}
