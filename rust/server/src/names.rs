//! Names that clients choose. They become parts of paths, so that only these characters are let through.

use std::borrow::Cow;

use pie_host::{Error, ErrorCode, is_program_name, is_program_version, parse_digest, runtime_name};

use crate::plain::plain;

/// Bytes of the name of a file that was uploaded.
pub(crate) const MAX_FILE_BYTES: usize = 128;
/// Bytes of the name of a user.
const MAX_USER_BYTES: usize = 64;
/// Characters of a name that is none that are shown.
const SHOWN_CHARS: usize = 80;

/// Checks the name of a program.
///
/// # Errors
/// `invalid-name`.
pub(crate) fn check_program(name: &str) -> Result<(), Error> {
    if is_program_name(name) {
        return Ok(());
    }
    Err(no_name("program", name, "[a-z0-9][a-z0-9._-]{0,63}"))
}

/// Checks a version.
///
/// # Errors
/// `invalid-name`.
pub(crate) fn check_version(version: &str) -> Result<(), Error> {
    if is_program_version(version) {
        return Ok(());
    }
    Err(no_name(
        "version",
        version,
        "[0-9A-Za-z][0-9A-Za-z.+-]{0,31}",
    ))
}

/// Checks what a client calls a file that it uploads. It is shown to people, and is no part of a path.
///
/// # Errors
/// `invalid-name`.
pub(crate) fn check_file(name: &str) -> Result<(), Error> {
    let is_shown_as_it_is = matches!(plain(name), Cow::Borrowed(_)) && !name.contains('\t');
    if (1..=MAX_FILE_BYTES).contains(&name.len()) && !name.trim().is_empty() && is_shown_as_it_is {
        return Ok(());
    }
    let form = format!("1 to {MAX_FILE_BYTES} bytes, without control characters");
    Err(no_name("file", name, &form))
}

/// Checks the name of a user.
///
/// # Errors
/// `invalid-name`.
pub(crate) fn check_user(user: &str) -> Result<(), Error> {
    let (head, rest) = user.as_bytes().split_first().unwrap_or((&b' ', &[]));
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric();
    if user.len() <= MAX_USER_BYTES
        && is_plain(head)
        && rest
            .iter()
            .all(|byte| is_plain(byte) || b"._@-".contains(byte))
    {
        return Ok(());
    }
    Err(no_name("user", user, "[A-Za-z0-9][A-Za-z0-9._@-]{0,63}"))
}

/// Checks what the owner of a key calls it.
///
/// # Errors
/// `invalid-name`.
pub(crate) fn check_key(name: &str) -> Result<(), Error> {
    check_user(name).map_err(|_| no_name("key", name, "[A-Za-z0-9][A-Za-z0-9._@-]{0,63}"))
}

/// Checks the form of a digest, `sha256:` and 64 lowercase hexadecimal digits: it stands in names of files, so that it
/// has one form.
///
/// # Errors
/// `invalid-argument`.
pub(crate) fn check_digest(digest: &str) -> Result<(), Error> {
    if parse_digest(digest).is_ok_and(|bytes| runtime_name(&bytes) == digest) {
        return Ok(());
    }
    let shown: String = digest.chars().take(SHOWN_CHARS).collect();
    let message = format!(
        "{shown:?} is not a digest; it has the form sha256: and 64 lowercase hexadecimal digits"
    );
    Err(Error::new(ErrorCode::InvalidArgument, message))
}

fn no_name(what: &str, name: &str, pattern: &str) -> Error {
    let shown: String = name.chars().take(SHOWN_CHARS).collect();
    let message = format!("{shown:?} is not a name of a {what}; it has the form {pattern}");
    Error::new(ErrorCode::InvalidName, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_form() {
        for name in ["a", "a-b_c.d", "0x", &"a".repeat(64)] {
            check_program(name).unwrap();
        }
        for version in ["1", "1.0.2-rc.1+Build", &"1".repeat(32)] {
            check_version(version).unwrap();
        }
        for user in ["A", "a.b@c-d_e", &"u".repeat(64)] {
            check_user(user).unwrap();
        }
    }

    #[test]
    fn nothing_else_is_a_name() {
        for name in [
            "",
            ".",
            "..",
            "../a",
            "a/b",
            "a\\b",
            "a\0",
            "-a",
            ".a",
            "ä",
            "a b",
            "a\n",
            "a:b",
            "~",
            &"a".repeat(65),
        ] {
            for check in [check_program, check_version, check_user] {
                assert_eq!(
                    check(name).unwrap_err().code,
                    ErrorCode::InvalidName,
                    "{name:?}"
                );
            }
        }
        assert!(check_program("A").is_err());
        assert!(check_version("1_0").is_err());
    }

    #[test]
    fn files_are_called_what_can_be_shown() {
        for name in ["main.py", "größer 漢字.ts", "a/b", &"a".repeat(128)] {
            check_file(name).unwrap();
        }
        for name in [
            "",
            " ",
            "a\n",
            "a\tb",
            "\u{1b}[31m",
            "a\u{202e}b",
            &"a".repeat(129),
        ] {
            let error = check_file(name).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidName, "{name:?}");
        }
    }

    #[test]
    fn digests_have_one_form() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        check_digest(&digest).unwrap();
        for digest in [
            "",
            "sha256:",
            "md5:x",
            &digest[..70],
            &digest.to_uppercase(),
            &format!("sha256:{}", "0A".repeat(32)),
        ] {
            assert_eq!(
                check_digest(digest).unwrap_err().code,
                ErrorCode::InvalidArgument,
                "{digest:?}"
            );
        }
    }
}
