//! From a TCP connection to a client that has said hello.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use pie_host::{Error, ErrorCode};
use serde_json::json;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::{
    Callback, ErrorResponse, Request, Response,
};
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode, header};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message};

use crate::names;
use crate::protocol::{self, OPEN_REQUESTS, incoming, outgoing, violation};
use crate::shared::{Place, Shared};
use crate::transport::Transport;

/// The stream of one client.
pub(crate) type Socket = WebSocketStream<Transport>;

/// Bytes of a name that a client gives itself.
const MAX_CLIENT_BYTES: usize = 256;

/// Who is at the other end.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) user: String,
    /// What the client says that it is, for the log.
    pub(crate) name: String,
}

/// Upgrades the connection; none when the client does not speak WebSocket, or may not.
pub(crate) async fn upgrade(stream: Transport, shared: &Shared) -> Option<Socket> {
    let gate = Gate {
        own: shared.address,
        allowed: &shared.config.allowed_origins,
    };
    let config = WebSocketConfig::default()
        .max_message_size(Some(shared.config.max_frame_bytes))
        .max_frame_size(Some(shared.config.max_frame_bytes));
    match tokio_tungstenite::accept_hdr_async_with_config(stream, gate, Some(config)).await {
        Ok(socket) => Some(socket),
        Err(error) => {
            tracing::debug!(%error, "a connection was not upgraded");
            None
        }
    }
}

/// Hears the hello and answers it; the client has its place from then on. One that says anything else is told why and let go.
pub(crate) async fn greet(socket: &mut Socket, shared: &Arc<Shared>) -> Option<(Client, Place)> {
    let admitted = hello(socket).await?.and_then(|client| {
        let place = shared.enter().ok_or_else(|| {
            let message = format!(
                "{} clients are connected, the most that server.max_connections allows; come back later, or raise the limit",
                shared.config.max_connections
            );
            Error::new(ErrorCode::LimitConnections, message)
        })?;
        Ok((client, place))
    });
    let (client, place) = match admitted {
        Ok(admitted) => admitted,
        Err(error) => {
            refuse(socket, &error).await;
            return None;
        }
    };
    let config = &shared.config;
    let limits = json!({
        "frame_bytes": config.max_frame_bytes, "message_bytes": shared.host.limits().message_bytes,
        "upload_bytes": config.max_upload_bytes, "window_bytes": config.window_bytes, "open_requests": OPEN_REQUESTS,
    });
    let answer = outgoing::hello(shared.host.instance_id(), &client.user, &limits);
    socket.send(answer).await.ok()?;
    Some((client, place))
}

/// Tells an error that concerns the whole connection, and closes it.
async fn refuse(socket: &mut Socket, error: &Error) {
    tracing::info!(%error, "refused a client");
    let code = match error.code {
        ErrorCode::ProtocolError | ErrorCode::ProtocolVersion => CloseCode::Protocol,
        ErrorCode::LimitConnections => CloseCode::Again,
        ErrorCode::LimitMessage => CloseCode::Size,
        _ => CloseCode::Policy,
    };
    if socket.send(outgoing::connection_error(error)).await.is_ok() {
        // A client that is gone needs no goodbye.
        drop(
            socket
                .close(Some(close_frame(code, error.code.as_str())))
                .await,
        );
    }
}

/// The goodbye of a connection.
pub(crate) fn close_frame(code: CloseCode, reason: &'static str) -> CloseFrame {
    CloseFrame {
        code,
        reason: reason.into(),
    }
}

/// What a client did wrong below the level of messages; none when it is simply gone.
pub(crate) fn broken(error: tungstenite::Error) -> Option<Error> {
    match error {
        tungstenite::Error::Capacity(error) => Some(Error::new(
            ErrorCode::LimitMessage,
            format!(
                "a frame is larger than server.max_frame_bytes ({error}); send less at once, or raise the limit"
            ),
        )),
        tungstenite::Error::Protocol(
            tungstenite::error::ProtocolError::ResetWithoutClosingHandshake,
        ) => None,
        tungstenite::Error::Protocol(error) => Some(violation(error.to_string())),
        tungstenite::Error::Utf8(error) => {
            Some(violation(format!("a text frame is not UTF-8: {error}")))
        }
        _ => None,
    }
}

/// The first message; none when the client went without one.
async fn hello(socket: &mut Socket) -> Option<Result<Client, Error>> {
    loop {
        return match socket.next().await? {
            Ok(Message::Text(text)) => Some(client(&text)),
            Ok(Message::Ping(_) | Message::Pong(_)) => continue,
            Ok(Message::Close(_)) => None,
            Ok(_) => Some(Err(violation(
                "the first message is no text; it has to be a hello",
            ))),
            Err(error) => broken(error).map(Err),
        };
    }
}

fn client(text: &str) -> Result<Client, Error> {
    let (version, hello) = incoming::hello(text)?;
    if version != protocol::VERSION {
        let message = format!(
            "the client speaks version {version} of the protocol, this server version {}; use a client or a server of the other's version",
            protocol::VERSION
        );
        return Err(Error::new(ErrorCode::ProtocolVersion, message));
    }
    let hello = hello?;
    debug_assert_eq!(hello.protocol, version);
    let user = hello.user.unwrap_or_else(|| "anonymous".to_owned());
    names::check_user(&user)?;
    let name = hello.client.unwrap_or_default();
    if name.len() > MAX_CLIENT_BYTES {
        return Err(violation(format!(
            "the client gives itself a name of more than {MAX_CLIENT_BYTES} bytes"
        )));
    }
    Ok(Client { user, name })
}

/// Lets programs in, and of web pages those of allowed origins. Browsers send `Origin` with every upgrade and let no page change it,
/// so that no other page can reach a server on its visitor's machine.
struct Gate<'a> {
    own: SocketAddr,
    allowed: &'a [String],
}

impl Gate<'_> {
    fn admits(&self, origin: &str) -> bool {
        let port = self.own.port();
        let loopback = ["localhost", "127.0.0.1", "[::1]"]
            .iter()
            .any(|host| origin == format!("http://{host}:{port}"));
        loopback || self.allowed.iter().any(|allowed| allowed == origin)
    }
}

impl Callback for Gate<'_> {
    fn on_request(self, request: &Request, response: Response) -> Result<Response, ErrorResponse> {
        for origin in request.headers().get_all(header::ORIGIN) {
            let origin = origin.to_str().unwrap_or_default();
            if !self.admits(origin) {
                let shown: String = origin.chars().take(200).collect();
                let message = format!(
                    "web pages of the origin {shown:?} may not connect; add it to server.allowed_origins"
                );
                return Err(forbidden(&Error::new(ErrorCode::ForbiddenOrigin, message)));
            }
        }
        Ok(response)
    }
}

fn forbidden(error: &Error) -> ErrorResponse {
    let body = json!({ "error": outgoing::error_object(error) }).to_string();
    let n_bytes = body.len();
    let mut response = ErrorResponse::new(Some(body));
    *response.status_mut() = StatusCode::FORBIDDEN;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(n_bytes));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_loopback_and_listed_origins_are_admitted() {
        let allowed = ["https://example.org".to_owned()];
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
    fn hellos_are_judged() {
        let code = |text: &str| {
            client(text)
                .map(|client| client.user)
                .map_err(|error| error.code)
        };
        assert_eq!(
            code(r#"{"type":"hello","protocol":1}"#),
            Ok("anonymous".to_owned())
        );
        assert_eq!(
            code(r#"{"type":"hello","protocol":1,"user":"a"}"#),
            Ok("a".to_owned())
        );
        for (text, expected) in [
            (
                r#"{"type":"hello","protocol":2,"new":true}"#,
                ErrorCode::ProtocolVersion,
            ),
            (
                r#"{"type":"hello","protocol":1,"new":true}"#,
                ErrorCode::ProtocolError,
            ),
            (r#"{"type":"hello"}"#, ErrorCode::ProtocolError),
            (r#"{"type":"ping","id":1}"#, ErrorCode::ProtocolError),
            (
                r#"{"type":"hello","protocol":1,"user":"../x"}"#,
                ErrorCode::InvalidName,
            ),
            ("{", ErrorCode::ProtocolError),
        ] {
            assert_eq!(code(text), Err(expected), "{text}");
        }
    }
}
