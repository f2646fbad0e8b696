//! What keeps the programs of one server apart in a browser, for which all of them are of one origin.
//!
//! | what a program could do there | what is done |
//! |---|---|
//! | speak for the whole server, as by a worker for every path | headers that do so are left out |
//! | set cookies for others, and get theirs | cookies are for the path of the program |
//! | by scripts: read pages and storage of others, ask the server and connect to it as its visitor | pages of somebody else's programs have an origin of their own |

use http::HeaderMap;
use http::header::{CONTENT_SECURITY_POLICY, HeaderValue, SET_COOKIE};

/// Headers of an answer that browsers take for the whole server: a program could intercept, move or forget by them what
/// its neighbours have in a browser.
const OF_SERVER: [&str; 4] = [
    "alt-svc",
    "clear-site-data",
    "service-worker-allowed",
    "strict-transport-security",
];
/// Has browsers give a page an origin that no other page has. It may do the rest of what pages do.
const SANDBOX: &str = "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts";
/// Attributes of a cookie that say where it is sent.
const OF_COOKIE: [&[u8]; 2] = [b"domain", b"path"];

/// Where a program stands that is one of many.
#[derive(Debug)]
pub(super) struct Standing {
    /// The path before all of its own.
    pub(super) prefix: String,
    /// Its pages have an origin of their own.
    pub(super) is_sandboxed: bool,
}

impl Standing {
    /// Changes the headers of an answer of the program.
    pub(super) fn keep_apart(&self, headers: &mut HeaderMap) {
        for name in OF_SERVER {
            headers.remove(name);
        }
        let cookies: Vec<HeaderValue> = headers.get_all(SET_COOKIE).iter().cloned().collect();
        headers.remove(SET_COOKIE);
        for cookie in cookies {
            if let Some(cookie) = of_path(&cookie, &self.prefix) {
                headers.append(SET_COOKIE, cookie);
            }
        }
        if self.is_sandboxed {
            // Beside one of the program, both hold.
            headers.append(CONTENT_SECURITY_POLICY, HeaderValue::from_static(SANDBOX));
        }
    }
}

/// A cookie that is sent below a path alone; none where the path cannot be written there.
fn of_path(cookie: &HeaderValue, path: &str) -> Option<HeaderValue> {
    let is_kept = |part: &&[u8]| {
        let name = part.split(|byte| *byte == b'=').next().unwrap_or_default();
        let name = name.trim_ascii();
        !OF_COOKIE.iter().any(|of| name.eq_ignore_ascii_case(of))
    };
    let mut parts = cookie.as_bytes().split(|byte| *byte == b';');
    // The first part is the name and the value, whatever the name is.
    let mut kept = parts.next().unwrap_or_default().to_vec();
    for part in parts.filter(is_kept) {
        kept.push(b';');
        kept.extend_from_slice(part);
    }
    kept.extend_from_slice(b"; Path=");
    kept.extend_from_slice(path.as_bytes());
    HeaderValue::from_bytes(&kept).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_for_the_path_of_the_program() {
        for (cookie, expected) in [
            ("a=b", "a=b; Path=/http/~ada/chat"),
            (
                "a=b; Path=/; Secure; HttpOnly",
                "a=b; Secure; HttpOnly; Path=/http/~ada/chat",
            ),
            (
                "a=b;DOMAIN=example.org ; pAtH = /http;SameSite=Lax",
                "a=b;SameSite=Lax; Path=/http/~ada/chat",
            ),
            ("path=1; path", "path=1; Path=/http/~ada/chat"),
            ("", "; Path=/http/~ada/chat"),
        ] {
            let cookie = of_path(&HeaderValue::from_static(cookie), "/http/~ada/chat");
            assert_eq!(cookie.unwrap(), expected);
        }
    }

    #[test]
    fn an_answer_speaks_for_its_own_program() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("set-cookie", "a=1"),
            ("set-cookie", "b=2; Path=/"),
            ("clear-site-data", "*"),
            ("content-security-policy", "default-src 'self'"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        let standing = |is_sandboxed| Standing {
            prefix: "/http/chat".to_owned(),
            is_sandboxed,
        };
        standing(false).keep_apart(&mut headers);
        let all = |headers: &HeaderMap, name: &str| headers.get_all(name).iter().count();
        assert_eq!(all(&headers, "set-cookie"), 2);
        assert_eq!(all(&headers, "clear-site-data"), 0);
        assert_eq!(all(&headers, "content-security-policy"), 1);
        standing(true).keep_apart(&mut headers);
        assert_eq!(all(&headers, "content-security-policy"), 2);
    }
}
