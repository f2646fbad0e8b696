//! What comes before the WebSocket: one HTTP request, bounded in size, which is an upgrade or a probe. A probe gets a
//! short answer and the connection ends. What asks for a program is left to `http_in`, unread.

use std::net::{IpAddr, SocketAddr};

use pie_host::{Error, ErrorCode, Host};
use serde_json::json;
use tungstenite::handshake::server::{Request, Response, create_response, write_response};
use tungstenite::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header};

use crate::auth::Presented;
use crate::config::Origin;
use crate::http_in::{framing, route};
use crate::protocol::outgoing;
use crate::state::{Phase, ServerState};
use crate::wire::Wire;

/// Header fields of a request: browsers send about twenty.
const MAX_FIELDS: usize = 64;
/// Bytes of a host that is told back: of a name 253, and a port.
const MAX_HOST_BYTES: usize = 260;
/// The first byte of a client that begins with TLS: the type of its record, by RFC 8446, 5.1.
const TLS_HANDSHAKE: u8 = 0x16;

/// What becomes of a connection.
pub(crate) enum Begun {
    /// It is a WebSocket from now on; this is what the client has shown.
    WebSocket(Presented),
    /// It asks for programs; nothing of it is read yet.
    ForPrograms,
    /// It has its answer.
    Ended,
}

/// Reads the request and answers it, unless it asks for a program.
pub(crate) async fn answer(wire: &mut Wire, peer: IpAddr, shared: &ServerState) -> Begun {
    match upgraded(wire, peer, shared).await {
        Some(begun) => begun,
        None => Begun::Ended,
    }
}

async fn upgraded(wire: &mut Wire, peer: IpAddr, shared: &ServerState) -> Option<Begun> {
    let is_mounted = shared.config.mount.is_some();
    // The head of a request for a program ends before it begins: somebody else reads it.
    let end = |bytes: &[u8]| match route::asks_for_program(bytes) {
        // The end of a head would not come: the client waits for the other side of TLS.
        _ if bytes.first() == Some(&TLS_HANDSHAKE) => Some(1),
        true => Some(0),
        false if is_mounted && !bytes.is_empty() => Some(0),
        false => end_of_head(bytes),
    };
    let head = match wire.reader.head(end).await {
        Ok(Some(head)) if head.is_empty() => return Some(Begun::ForPrograms),
        Ok(Some(head)) => read(&head),
        Ok(None) => Err(Reply::new(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "the head of the request is longer than 8 KiB",
        )),
        Err(_) => return None,
    };
    let upgraded = head.and_then(|request| {
        let response = respond(&request, shared)?;
        let shown = Presented::read(peer, request.headers(), shared.authority.config())
            .map_err(|error| forbidden(&error))?;
        Ok((shown, response))
    });
    let mut bytes = Vec::new();
    let shown = match upgraded {
        Ok((shown, response)) => {
            write_response(&mut bytes, &response).ok()?;
            Some(shown)
        }
        Err(reply) => {
            tracing::debug!(status = reply.status.as_u16(), "answered an HTTP request");
            bytes = reply.bytes();
            None
        }
    };
    wire.writer.raw(&bytes).await.ok()?;
    shown.map(Begun::WebSocket)
}

/// Where the head of a request ends: behind the first empty line that another line stands before.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let mut end = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let is_first = end == 0;
        end += line.len();
        if !is_first && framing::is_empty_line(line) {
            return Some(end);
        }
    }
    None
}

/// An answer after which the connection ends.
#[derive(Debug)]
struct Reply {
    status: StatusCode,
    content_type: &'static str,
    /// A further field of the head.
    field: &'static str,
    body: String,
    /// The request was a HEAD: the body is only announced.
    is_head: bool,
}

impl Reply {
    fn new(status: StatusCode, body: impl Into<String>) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            field: "",
            body: body.into() + "\n",
            is_head: false,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let head = format!(
            "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n{}Connection: close\r\n\r\n",
            self.status,
            self.content_type,
            self.body.len(),
            self.field
        );
        let body = if self.is_head { "" } else { &self.body };
        (head + body).into_bytes()
    }
}

/// Reads the head of a request.
fn read(head: &[u8]) -> Result<Request, Reply> {
    let bad = |what: &str| Reply::new(StatusCode::BAD_REQUEST, what);
    if head.first() == Some(&TLS_HANDSHAKE) {
        return Err(bad(
            "this server speaks no TLS; write ws:// in place of wss://, or http:// in place of https://",
        ));
    }
    let violated = |error: Error| refused(StatusCode::BAD_REQUEST, &error);
    framing::check_lines(head).map_err(violated)?;
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut parsed = httparse::Request::new(&mut fields);
    match parsed.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Err(bad("the request is cut off")),
        Err(error) => return Err(bad(&format!("this is not an HTTP request: {error}"))),
    }
    // The body is not read, but somebody in front may have read its end elsewhere.
    framing::body_length(parsed.version == Some(1), parsed.headers).map_err(violated)?;
    let mut request = Request::new(());
    *request.version_mut() = match parsed.version {
        Some(1) => Version::HTTP_11,
        _ => Version::HTTP_10,
    };
    *request.method_mut() = Method::from_bytes(parsed.method.unwrap_or_default().as_bytes())
        .map_err(|_| bad("the method is not one of HTTP"))?;
    *request.uri_mut() = parsed
        .path
        .unwrap_or_default()
        .parse()
        .map_err(|_| bad("the target of the request is not a path or an address"))?;
    for field in parsed.headers {
        let name = HeaderName::from_bytes(field.name.as_bytes());
        let value = HeaderValue::from_bytes(field.value);
        let (Ok(name), Ok(value)) = (name, value) else {
            return Err(bad("a header field is not a name and a value"));
        };
        request.headers_mut().append(name, value);
    }
    Ok(request)
}

/// The answer to an upgrade.
///
/// # Errors
/// The answer to anything else.
fn respond(request: &Request, shared: &ServerState) -> Result<Response, Reply> {
    let wants_upgrade = request.headers().contains_key(header::UPGRADE);
    if !wants_upgrade {
        return Err(probed(request, shared));
    }
    let gate = Gate {
        own: shared.address,
        allowed: &shared.config.allowed_origins,
    };
    gate.check(request.headers().get_all(header::ORIGIN))
        .map_err(|error| forbidden(&error))?;
    create_response(request).map_err(|error| {
        Reply::new(
            StatusCode::BAD_REQUEST,
            format!("the server cannot follow the upgrade: {error}"),
        )
    })
}

/// The answer to a request that is not an upgrade.
fn probed(request: &Request, shared: &ServerState) -> Reply {
    let is_head = request.method() == Method::HEAD;
    if !is_head && request.method() != Method::GET {
        return Reply {
            field: "Allow: GET, HEAD\r\n",
            ..Reply::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "this server answers GET and HEAD only",
            )
        };
    }
    let reply = match request.uri().path() {
        "/healthz" => Reply::new(StatusCode::OK, "ok"),
        "/readyz" => ready(&shared.host, *shared.phase.borrow()),
        "/" => Reply {
            field: "Upgrade: websocket\r\n",
            ..Reply::new(
                StatusCode::UPGRADE_REQUIRED,
                welcome(request, shared.address),
            )
        },
        _ => Reply::new(
            StatusCode::NOT_FOUND,
            "there is nothing here; /healthz and /readyz are for probes, / is the WebSocket of pie serve, /http/NAME/ is an installed program",
        ),
    };
    Reply { is_head, ..reply }
}

/// The text for a browser or curl: what this port is, and which commands talk to it.
fn welcome(request: &Request, own: SocketAddr) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    // As the visitor calls it: behind a proxy, or a front, its own address is of no use to them.
    let called = request.headers().get(header::HOST);
    let called = called
        .and_then(|host| host.to_str().ok())
        .filter(|host| (1..=MAX_HOST_BYTES).contains(&host.len()) && host.bytes().all(is_plain));
    let host = called.map_or_else(|| own.to_string(), str::to_owned);
    format!(
        "This is a Pie server. Programs are launched here by WebSocket, with the command pie or a client of Pie.\n\n\
         \x20   pie ps --server {host}              lists your processes\n\
         \x20   pie run PROGRAM --server {host}     runs a program here\n\n\
         /http/NAME/ is an installed program that serves HTTP; /healthz and /readyz are for probes."
    )
}

/// Whether programs that are launched can run, with what is in the way.
fn ready(host: &Host, phase: Phase) -> Reply {
    let mut reasons = host.unready();
    if phase != Phase::Serving {
        reasons.insert(0, "the server is about to end".to_owned());
    }
    if reasons.is_empty() {
        Reply::new(StatusCode::OK, "ready")
    } else {
        Reply::new(StatusCode::SERVICE_UNAVAILABLE, reasons.join("\n"))
    }
}

/// Lets programs in, and of web pages those of allowed origins. Browsers send `Origin` with every upgrade and let no
/// page change it, so that no other page can reach a server on its visitor's machine.
pub(crate) struct Gate<'a> {
    pub(crate) own: SocketAddr,
    pub(crate) allowed: &'a [Origin],
}

impl Gate<'_> {
    fn admits(&self, origin: &str) -> bool {
        let port = self.own.port();
        let loopback = ["localhost", "127.0.0.1", "[::1]"]
            .iter()
            .any(|host| origin == format!("http://{host}:{port}"));
        loopback || self.allowed.iter().any(|allowed| allowed.is(origin))
    }

    /// Checks a request that shows no key, which browsers send whatever page asks.
    ///
    /// # Errors
    /// `forbidden-origin`.
    pub(crate) fn check_page(&self, headers: &HeaderMap) -> Result<(), Error> {
        if !headers.contains_key(header::ORIGIN) && is_embedded_elsewhere(headers) {
            let message = "web pages of other sites may not embed this; add their origin to server.allowed_origins, and have them ask by `fetch`";
            return Err(Error::new(ErrorCode::ForbiddenOrigin, message));
        }
        self.check(headers.get_all(header::ORIGIN))
    }

    /// Checks the origins that a request names.
    ///
    /// # Errors
    /// `forbidden-origin`.
    pub(crate) fn check<'h>(
        &self,
        origins: impl IntoIterator<Item = &'h HeaderValue>,
    ) -> Result<(), Error> {
        for origin in origins {
            let origin = origin.to_str().unwrap_or_default();
            if !self.admits(origin) {
                let shown: String = origin.chars().take(200).collect();
                let message = format!(
                    "web pages of the origin {shown:?} may not connect; add it to server.allowed_origins"
                );
                return Err(Error::new(ErrorCode::ForbiddenOrigin, message));
            }
        }
        Ok(())
    }
}

/// Whether a browser asks for a page of another site: for an image, a script or a frame, of which it says no origin. A
/// page that somebody goes to, by a link, is not meant.
fn is_embedded_elsewhere(headers: &HeaderMap) -> bool {
    let says = |name: &str, values: &[&[u8]]| {
        let said = headers.get(name).map(HeaderValue::as_bytes);
        said.is_some_and(|said| values.contains(&said))
    };
    let is_gone_to =
        says("sec-fetch-mode", &[b"navigate"]) && says("sec-fetch-dest", &[b"document"]);
    says("sec-fetch-site", &[b"cross-site", b"same-site"]) && !is_gone_to
}

fn forbidden(error: &Error) -> Reply {
    refused(StatusCode::FORBIDDEN, error)
}

/// An error as JSON.
fn refused(status: StatusCode, error: &Error) -> Reply {
    let body = json!({ "error": outgoing::error_object(error) });
    Reply {
        content_type: "application/json",
        ..Reply::new(status, body.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pie_host::settings::Word;

    #[test]
    fn only_own_loopback_and_listed_origins_are_admitted() {
        let allowed = [Origin::parse("https://example.org").unwrap()];
        let gate = Gate {
            own: SocketAddr::from(([127, 0, 0, 1], 8080)),
            allowed: &allowed,
        };
        for origin in [
            "http://localhost:8080",
            "http://127.0.0.1:8080",
            "http://[::1]:8080",
            "https://example.org",
        ] {
            assert!(gate.admits(origin), "{origin}");
        }
        for origin in [
            "",
            "null",
            "http://localhost",
            "http://localhost:80",
            "http://localhost:8080.evil.org",
            "http://evil.org:8080",
            "https://example.org.evil.org",
            "http://example.org",
            "http://127.0.0.2:8080",
        ] {
            assert!(!gate.admits(origin), "{origin}");
        }
    }

    #[test]
    fn pages_of_elsewhere_embed_nothing() {
        let allowed = [Origin::parse("https://example.org").unwrap()];
        let gate = Gate {
            own: SocketAddr::from(([127, 0, 0, 1], 8080)),
            allowed: &allowed,
        };
        let check = |said: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in said {
                headers.append(*name, HeaderValue::from_static(value));
            }
            gate.check_page(&headers)
        };
        let image = ("sec-fetch-mode", "no-cors");
        let link = [
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        let frame = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")];
        for said in [
            &[("sec-fetch-site", "none"), image][..],
            &[],
            &[("sec-fetch-site", "same-origin"), image],
            &[("sec-fetch-site", "cross-site"), link[0], link[1]],
            &[
                ("sec-fetch-site", "cross-site"),
                ("origin", "https://example.org"),
            ],
        ] {
            check(said).unwrap();
        }
        for said in [
            &[("sec-fetch-site", "cross-site"), image][..],
            &[("sec-fetch-site", "same-site"), image],
            &[("sec-fetch-site", "cross-site"), frame[0], frame[1]],
            &[
                ("sec-fetch-site", "cross-site"),
                ("origin", "https://evil.example"),
            ],
        ] {
            assert_eq!(check(said).unwrap_err().code, ErrorCode::ForbiddenOrigin);
        }
    }

    #[test]
    fn a_browser_is_told_what_this_port_is() {
        let own = SocketAddr::from(([127, 0, 0, 1], 8080));
        let told = |host: &str| {
            let request = read(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
            welcome(&request.unwrap(), own)
        };
        assert!(told("pie.example.org:80").contains("pie ps --server pie.example.org:80 "));
        assert!(told("[::1]:8080").contains("pie run PROGRAM --server [::1]:8080 "));
        for host in ["", "<script>", "a b", &"a".repeat(MAX_HOST_BYTES + 1)] {
            assert!(
                told(host).contains("pie ps --server 127.0.0.1:8080 "),
                "{host}"
            );
        }
    }

    #[test]
    fn a_head_ends_behind_an_empty_line() {
        for head in [
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\nHost: a\n\n",
            "GET / HTTP/1.1\r\nHost: a\n\r\n",
            "\r\nGET / HTTP/1.1\r\n\r\n",
            "\n\n",
        ] {
            let beyond = format!("{head}GET / HTTP/1.1\r\n\r\n");
            assert_eq!(end_of_head(beyond.as_bytes()), Some(head.len()), "{head:?}");
            for n_bytes in 0..head.len() {
                assert_eq!(end_of_head(&head.as_bytes()[..n_bytes]), None, "{head:?}");
            }
        }
    }

    #[test]
    fn a_client_that_begins_with_tls_is_told_what_to_write() {
        for head in [&[TLS_HANDSHAKE][..], b"\x16\x03\x01\r\n\r\n"] {
            let reply = read(head).unwrap_err();
            assert_eq!(reply.status, StatusCode::BAD_REQUEST);
            assert!(reply.body.contains("speaks no TLS"), "{}", reply.body);
        }
    }

    #[test]
    fn heads_are_read_or_refused() {
        let read = |text: &str| read(text.as_bytes());
        let request = read("GET /readyz HTTP/1.0\r\nHost: a\r\nX: b\r\nX: c\r\n\r\n").unwrap();
        assert_eq!(request.uri().path(), "/readyz");
        assert_eq!(request.headers().get_all("x").iter().count(), 2);
        for text in [
            "GET\r\n\r\n",
            "GET / HTTP/2.0\r\n\r\n",
            "GET / HTTP/1.1\r\nno colon\r\n\r\n",
            "\u{16}\u{3}\u{1}\r\n\r\n",
            "GET / HTTP/1.1\nHost: a\n\n",
            "GET / HTTP/1.1\r\nA: b\r\n c: d\r\n\r\n",
            "GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            &format!(
                "GET / HTTP/1.1\r\n{}\r\n",
                "a: b\r\n".repeat(MAX_FIELDS + 1)
            ),
        ] {
            assert_eq!(
                read(text).unwrap_err().status,
                StatusCode::BAD_REQUEST,
                "{text}"
            );
        }
    }
}
