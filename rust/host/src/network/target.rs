//! Where a request goes: a URL that was read once, by the rules of browsers.

use pie_core::ErrorCode;
use url::{Host, Url};

use crate::Error;

/// Characters of a URL that a message shows.
const SHOWN_CHARS: usize = 200;

/// Where a request goes.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    url: Url,
    pub(crate) host: Host<String>,
    pub(crate) port: u16,
    pub(crate) is_tls: bool,
}

impl Target {
    /// Reads a URL. An address in any spelling (decimal, octal, short) becomes the address that it is.
    ///
    /// # Errors
    /// `invalid-argument`.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        Url::parse(text)
            .map_err(|error| invalid(text, error))
            .and_then(Self::new)
    }

    /// What a URL leads to that stands in an answer from here.
    ///
    /// # Errors
    /// `invalid-argument`.
    pub(crate) fn join(&self, text: &str) -> Result<Self, Error> {
        self.url
            .join(text)
            .map_err(|error| invalid(text, error))
            .and_then(Self::new)
    }

    fn new(mut url: Url) -> Result<Self, Error> {
        // The place within a page is of whoever asks for the page.
        url.set_fragment(None);
        let is_tls = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => {
                return Err(invalid(
                    url.as_str(),
                    "its scheme is neither http nor https",
                ));
            }
        };
        if !url.username().is_empty() || url.password().is_some() {
            let why = "it holds a user name or a password; send them in the header Authorization";
            return Err(invalid(url.as_str(), why));
        }
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return Err(invalid(url.as_str(), "it names no host"));
        };
        let host = host.to_owned();
        if matches!(&host, Host::Domain(name) if name.len() > 255) {
            return Err(invalid(url.as_str(), "its host is longer than 255 bytes"));
        }
        Ok(Self {
            host,
            port,
            is_tls,
            url,
        })
    }

    /// All of it.
    pub(crate) fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Host and port, as messages name them.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The value of the header `Host`: the port stands there where it is not that of the scheme.
    pub(crate) fn authority(&self) -> String {
        match self.url.port() {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.to_string(),
        }
    }

    /// What the server is asked for.
    pub(crate) fn path(&self) -> String {
        match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        }
    }

    /// Whether both are of one server, to which a program shows the same secrets.
    pub(crate) fn is_same_origin(&self, other: &Self) -> bool {
        (self.is_tls, &self.host, self.port) == (other.is_tls, &other.host, other.port)
    }
}

fn invalid(url: &str, why: impl std::fmt::Display) -> Error {
    let shown: String = url.chars().take(SHOWN_CHARS).collect();
    let message =
        format!("the URL {shown:?} cannot be asked for: {why}; give one as https://HOST/PATH");
    Error::new(ErrorCode::InvalidArgument, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_an_address_is_that_address() {
        for text in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://017700000001/",
            "http://127.1/",
            "http://0177.0.0.1/",
            "http://0x7f.0.0.0x1/",
            "http://127.0.1/",
            "http://127.0.0.1./",
            "http:127.0.0.1",
            "http:\\\\127.0.0.1\\",
            "http://\u{ff11}27.0.0.1/",
            "http://127\u{3002}0.0.1/",
            "http://%31%32%37.0.0.1/",
            "  http://127.0.0.1/\n",
            "http://127.0.0.1:80/",
        ] {
            assert_eq!(
                Target::parse(text).unwrap().place(),
                "127.0.0.1:80",
                "{text:?}"
            );
        }
        for (text, place) in [
            ("http://[::ffff:127.0.0.1]/", "[::ffff:7f00:1]:80"),
            ("http://[0:0:0:0:0:0:0:1]/", "[::1]:80"),
            ("https://EXAMPLE.com/", "example.com:443"),
            (
                "https://b\u{fc}cher.example:8443/x#y",
                "xn--bcher-kva.example:8443",
            ),
            ("http://a.example?q", "a.example:80"),
        ] {
            assert_eq!(Target::parse(text).unwrap().place(), place, "{text:?}");
        }
        for text in [
            "",
            "x",
            "/path",
            "ftp://a/",
            "file:///etc/passwd",
            "http://",
            "http:///",
            "http://a:0x50/",
            "http://a:65536/",
            "http://a b/",
            "http://user@127.0.0.1/",
            "http://good.example:x@evil.example/",
            "http://[fe80::1%25eth0]/",
            "http://[::1/",
            "http://256.0.0.1/",
            "http://1.2.3.4.5/",
            "http://a\0b/",
            "data:,x",
        ] {
            let error = Target::parse(text).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidArgument, "{text:?}");
        }
    }

    #[test]
    fn what_is_asked_for_has_no_fragment() {
        let target = Target::parse("http://a.example:8080/x/./../y?z=%20#part").unwrap();
        assert_eq!(
            (&*target.path(), &*target.authority()),
            ("/y?z=%20", "a.example:8080")
        );
        assert_eq!(target.join("z").unwrap().url(), "http://a.example:8080/z");
        assert_eq!(
            target.join("//b.example/#there").unwrap().url(),
            "http://b.example/"
        );
        assert_eq!(
            Target::parse("https://a.example").unwrap().authority(),
            "a.example"
        );
    }
}
