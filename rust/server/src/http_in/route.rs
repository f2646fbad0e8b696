//! Which program a path asks for, and what the program sees of it.

use pie_host::{Error, ErrorCode};

/// Where the paths of programs begin.
const PREFIX: &str = "/http/";
/// Characters of a path that a message shows.
const SHOWN_CHARS: usize = 80;

/// What a path asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route<'a> {
    /// Whose the program is; none: the client's own.
    pub(crate) owner: Option<&'a str>,
    /// The program, as `NAME` or `NAME@VERSION`.
    pub(crate) program: &'a str,
    /// The path and query that the program sees.
    pub(crate) rest: &'a str,
    /// What stood before it.
    pub(crate) prefix: &'a str,
}

impl<'a> Route<'a> {
    /// Reads `/http/NAME/...` or `/http/~USER/NAME/...`, with the query.
    ///
    /// # Errors
    /// `unknown-program`.
    pub(crate) fn read(path: &'a str) -> Result<Self, Error> {
        let unknown = || {
            let shown: String = path.chars().take(SHOWN_CHARS).collect();
            let message = format!(
                "{shown:?} names no program; ask for /http/NAME/ or, for a program of somebody else, /http/~USER/NAME/"
            );
            Error::new(ErrorCode::UnknownProgram, message)
        };
        let named = path.strip_prefix(PREFIX).ok_or_else(unknown)?;
        let (owner, named) = match named.strip_prefix('~') {
            Some(named) => {
                let (owner, named) = named.split_once('/').ok_or_else(unknown)?;
                (Some(owner), named)
            }
            None => (None, named),
        };
        let end = named.find(['/', '?']).unwrap_or(named.len());
        let (program, rest) = named.split_at(end);
        if program.is_empty() || owner == Some("") {
            return Err(unknown());
        }
        let prefix = &path[..path.len() - rest.len()];
        Ok(Self {
            owner,
            program,
            rest,
            prefix,
        })
    }

    /// The URL that the program sees, at the host that the client called.
    pub(crate) fn url(rest: &str, host: &str) -> String {
        // A query may follow the name at once.
        let slash = if rest.starts_with('/') { "" } else { "/" };
        format!("http://{host}{slash}{rest}")
    }
}

/// Whether the first bytes of a connection ask for a program: those of the first line up to the beginning of its path.
pub(crate) fn asks_for_program(bytes: &[u8]) -> bool {
    let path = bytes.iter().position(|byte| *byte == b' ');
    path.is_some_and(|at| bytes[at + 1..].starts_with(PREFIX.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_programs() {
        for (path, owner, program, rest, prefix) in [
            ("/http/chat", None, "chat", "", "/http/chat"),
            ("/http/chat/", None, "chat", "/", "/http/chat"),
            (
                "/http/chat@1.0/a/b?c=/d",
                None,
                "chat@1.0",
                "/a/b?c=/d",
                "/http/chat@1.0",
            ),
            ("/http/chat?c=1", None, "chat", "?c=1", "/http/chat"),
            (
                "/http/~ada/chat/a",
                Some("ada"),
                "chat",
                "/a",
                "/http/~ada/chat",
            ),
        ] {
            let expected = Route {
                owner,
                program,
                rest,
                prefix,
            };
            assert_eq!(Route::read(path).unwrap(), expected, "{path}");
        }
        for path in [
            "/",
            "/http",
            "/http/",
            "/http/~ada",
            "/http/~/chat",
            "/http//chat",
            "*",
        ] {
            let error = Route::read(path).unwrap_err();
            assert_eq!(error.code, ErrorCode::UnknownProgram, "{path}");
        }
    }

    #[test]
    fn programs_see_the_path_behind_their_name() {
        assert_eq!(Route::url("", "h:1"), "http://h:1/");
        assert_eq!(Route::url("?a", "h"), "http://h/?a");
        assert_eq!(Route::url("/b?a", "h"), "http://h/b?a");
    }

    #[test]
    fn a_connection_is_told_by_its_first_line() {
        assert!(asks_for_program(b"GET /http/chat HTTP/1.1\r\n"));
        assert!(asks_for_program(b"POST /http/"));
        for other in [
            "",
            "GET",
            "GET /http",
            "GET / HTTP/1.1",
            "GET /healthz HTTP/1.1",
        ] {
            assert!(!asks_for_program(other.as_bytes()), "{other}");
        }
    }
}
