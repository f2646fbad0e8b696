//! Names that clients choose. They become parts of paths, so that only these characters are let through.

use pie_host::{Error, ErrorCode};

/// Checks the name of a program.
///
/// # Errors
/// `invalid-name`.
pub(crate) fn check_program(name: &str) -> Result<(), Error> {
    let first = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let rest = |byte: u8| first(byte) || b"._-".contains(&byte);
    check(
        "program",
        name,
        64,
        "[a-z0-9][a-z0-9._-]{0,63}",
        first,
        rest,
    )
}

/// Checks a version.
///
/// # Errors
/// `invalid-name`.
pub(crate) fn check_version(version: &str) -> Result<(), Error> {
    let first = |byte: u8| byte.is_ascii_alphanumeric();
    let rest = |byte: u8| first(byte) || b".+-".contains(&byte);
    check(
        "version",
        version,
        32,
        "[0-9A-Za-z][0-9A-Za-z.+-]{0,31}",
        first,
        rest,
    )
}

/// Checks the name of a user.
///
/// # Errors
/// `invalid-name`.
pub(crate) fn check_user(user: &str) -> Result<(), Error> {
    let first = |byte: u8| byte.is_ascii_alphanumeric();
    let rest = |byte: u8| first(byte) || b"._@-".contains(&byte);
    check(
        "user",
        user,
        64,
        "[A-Za-z0-9][A-Za-z0-9._@-]{0,63}",
        first,
        rest,
    )
}

fn check(
    what: &str,
    name: &str,
    most: usize,
    pattern: &str,
    first: impl Fn(u8) -> bool,
    rest: impl Fn(u8) -> bool,
) -> Result<(), Error> {
    let fits = match name.as_bytes() {
        [head, tail @ ..] => first(*head) && tail.iter().all(|byte| rest(*byte)),
        [] => false,
    };
    if fits && name.len() <= most {
        return Ok(());
    }
    let shown: String = name.chars().take(80).collect();
    let message = format!("{shown:?} is no name of a {what}; it has the form {pattern}");
    Err(Error::new(ErrorCode::InvalidName, message))
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
}
