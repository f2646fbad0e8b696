//! Opening a connection: the WebSocket, the hellos, and what to tell the user when it does not come about.

use std::borrow::Cow;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, Request};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::error::Error;
use crate::error_codes::ErrorCode;
use crate::frame_gate::FrameGate;
use crate::signing::Identity;
use crate::wire::{Fields, Hello, PROTOCOL, decode, encode, error_of, fields, read};

const CLIENT_NAME: &str = concat!("pie-rust/", env!("CARGO_PKG_VERSION"));
/// What a server may send beside what its `message_bytes` bounds: lists, logs, the hello itself.
const MAX_OTHER_BYTES: u64 = 64 << 20;
/// JSON may write a byte of a message as six.
const MAX_ESCAPED_BYTES: u64 = 6;
const PORT: u16 = 80;
const TLS_PORT: u16 = 443;
const WITHOUT_TLS: &str = "write ws:// in place of wss://, or http:// in place of https://";

/// A stream of bytes, encrypted or not.
pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// An open WebSocket.
pub(crate) type Socket = WebSocketStream<FrameGate<Box<dyn Io>>>;

/// Connects and exchanges hellos.
///
/// # Errors
/// `connection-failed` where that is not possible, `protocol-version` where the two do not understand each other, or
/// the error with which the server refused.
pub(crate) async fn open(
    address: &str,
    who: &Identity,
    within: Duration,
) -> Result<(Socket, Hello), Error> {
    let address = with_scheme(address);
    let address: &str = &address;
    let opening = async {
        let (mut socket, host) = connect(address).await?;
        let hello = greet(&mut socket, address, &host, who).await?;
        let of_messages = hello.limits.message_bytes.saturating_mul(MAX_ESCAPED_BYTES);
        socket
            .get_mut()
            .allow(MAX_OTHER_BYTES.saturating_add(of_messages));
        Ok::<_, Error>((socket, hello))
    };
    match tokio::time::timeout(within, opening).await {
        Ok(opened) => opened,
        Err(_) => Err(failed(address, late(address, within))),
    }
}

/// What is told when the time of an opening is over.
fn late(address: &str, within: Duration) -> String {
    let mut told = format!(
        "there was no answer within {} s; check the address and that `pie serve` runs there",
        within.as_secs_f64()
    );
    if address.starts_with("wss://") {
        told += "; where it speaks no TLS, ";
        told += WITHOUT_TLS;
    }
    told
}

/// `ws://HOST:PORT` for `HOST:PORT` alone. What is not an address stays as it is: connecting says so.
fn with_scheme(address: &str) -> Cow<'_, str> {
    let place = address.split('/').next().unwrap_or_default();
    let is_place = place.rsplit_once(':').is_some_and(|(host, port)| {
        let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        is_port && !host.is_empty()
    });
    if is_place {
        Cow::Owned(format!("ws://{address}"))
    } else {
        Cow::Borrowed(address)
    }
}

/// The open WebSocket, and how it called the server: that is signed, so that no other server can use the signature.
async fn connect(address: &str) -> Result<(Socket, String), Error> {
    let no_address = || {
        failed(
            address,
            "it is not the address of a server; write it as ws://HOST:PORT",
        )
    };
    let mut request = address.into_client_request().map_err(|_| no_address())?;
    let is_encrypted = match request.uri().scheme_str() {
        Some("ws") => false,
        Some("wss") => true,
        _ => return Err(no_address()),
    };
    request
        .headers_mut()
        .insert("User-Agent", HeaderValue::from_static(CLIENT_NAME));
    let host = header(&request, "Host");
    let name = request.uri().host().ok_or_else(no_address)?.to_owned();
    // An address of IPv6 stands in brackets.
    let name = name.trim_start_matches('[').trim_end_matches(']');
    let port = if is_encrypted { TLS_PORT } else { PORT };
    let port = request.uri().port_u16().unwrap_or(port);
    let stream = TcpStream::connect((name, port)).await.map_err(|error| {
        failed(
            address,
            format_args!("{error}; check the address, and start the server with `pie serve`"),
        )
    })?;
    // Requests are small, and each is answered before the next.
    drop(stream.set_nodelay(true));
    let stream: Box<dyn Io> = if is_encrypted {
        encrypted(address, name, stream).await?
    } else {
        Box::new(stream)
    };
    // The gate has the bounds, before the library reserves anything.
    let config = WebSocketConfig::default()
        .max_message_size(None)
        .max_frame_size(None);
    let stream = FrameGate::new(stream, MAX_OTHER_BYTES);
    match client_async_with_config(request, stream, Some(config)).await {
        Ok((socket, _)) => Ok((socket, host)),
        Err(error) => Err(not_upgraded(address, &error)),
    }
}

#[cfg(feature = "tls")]
async fn encrypted(address: &str, name: &str, stream: TcpStream) -> Result<Box<dyn Io>, Error> {
    use std::sync::Arc;

    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::crypto::ring::default_provider;
    use tokio_rustls::rustls::pki_types::ServerName;
    use tokio_rustls::rustls::{ClientConfig, RootCertStore};

    let not_encrypted = |error: &dyn std::fmt::Display| {
        failed(
            address,
            format_args!("TLS failed ({error}); check the name of the server"),
        )
    };
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| not_encrypted(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let server = ServerName::try_from(name.to_owned()).map_err(|error| not_encrypted(&error))?;
    let stream = TlsConnector::from(Arc::new(config))
        .connect(server, stream)
        .await
        .map_err(|error| failed(address, of_tls(&error)))?;
    Ok(Box::new(stream))
}

/// What went wrong in a handshake of TLS, and the remedy.
#[cfg(feature = "tls")]
fn of_tls(error: &std::io::Error) -> String {
    use std::io::ErrorKind;

    use tokio_rustls::rustls;

    let cause = error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match (cause, error.kind()) {
        // What has come is not a record of TLS.
        (Some(rustls::Error::InvalidMessage(_)), _) => {
            format!("the server answered without TLS; {WITHOUT_TLS}")
        }
        (None, ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
            format!(
                "the connection broke before TLS was agreed on; where the server speaks no TLS, {WITHOUT_TLS}"
            )
        }
        _ => format!(
            "TLS failed ({error}); check the certificate of the server, and the name by which you call it"
        ),
    }
}

#[cfg(not(feature = "tls"))]
async fn encrypted(_: &str, _: &str, _: TcpStream) -> Result<Box<dyn Io>, Error> {
    let message =
        "this client was built without TLS; build it with the feature `tls`, or use ws://";
    Err(Error::new(ErrorCode::Unsupported, message))
}

async fn greet(
    socket: &mut Socket,
    address: &str,
    host: &str,
    who: &Identity,
) -> Result<Hello, Error> {
    let hello = json!({ "type": "hello", "protocol": PROTOCOL, "client": CLIENT_NAME });
    let mut hello = fields(hello);
    hello.extend(who.proof());
    say(socket, address, &hello).await?;
    let mut answer = answered(socket, address).await?;
    if answer.get("type").and_then(Value::as_str) == Some("challenge")
        && let Some(nonce) = answer.get("nonce").and_then(Value::as_str)
        && let Some(signature) = who.sign(host, nonce)?
    {
        let proof = fields(json!({ "type": "proof", "signature": signature }));
        say(socket, address, &proof).await?;
        answer = answered(socket, address).await?;
    }
    let protocol = answer.get("protocol").and_then(Value::as_u64);
    if let Some(protocol) = protocol
        && protocol != PROTOCOL
    {
        let server = answer.get("server").and_then(Value::as_str).unwrap_or("");
        let message = format!(
            "the server {server:?} speaks protocol {protocol}, and this client protocol {PROTOCOL}; install the same version of both"
        );
        return Err(Error::new(ErrorCode::ProtocolVersion, message));
    }
    read(answer)
}

async fn say(socket: &mut Socket, address: &str, message: &Fields) -> Result<(), Error> {
    let sent = socket.send(encode(message)).await;
    sent.map_err(|_| failed(address, ended("")))
}

/// The next message of the server; an error where it is a refusal, or the end.
async fn answered(socket: &mut Socket, address: &str) -> Result<Fields, Error> {
    loop {
        match socket.next().await {
            Some(Ok(message @ (Message::Text(_) | Message::Binary(_)))) => {
                let (fields, _) = decode(&message)?;
                return match error_of(&fields)? {
                    Some(error) => Err(error),
                    None => Ok(fields),
                };
            }
            Some(Ok(Message::Close(Some(frame)))) if !frame.reason.as_str().is_empty() => {
                return Err(failed(
                    address,
                    ended(&format!(" ({})", frame.reason.as_str())),
                ));
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
            _ => return Err(failed(address, ended(""))),
        }
    }
}

fn ended(said: &str) -> String {
    format!(
        "what listens there closed the connection before it said hello{said}; check that it is `pie serve`"
    )
}

fn not_upgraded(address: &str, error: &tungstenite::Error) -> Error {
    let tungstenite::Error::Http(response) = error else {
        return failed(
            address,
            "what listens there does not speak WebSocket; check that it is `pie serve`",
        );
    };
    let body = response.body().as_deref().unwrap_or_default();
    let said = serde_json::from_slice::<Fields>(body).unwrap_or_default();
    if let Ok(Some(refusal)) = error_of(&said) {
        return refusal;
    }
    failed(
        address,
        format_args!(
            "what listens there answers HTTP {}; check that it is `pie serve`",
            response.status().as_u16()
        ),
    )
}

fn header(request: &Request<()>, name: &str) -> String {
    let value = request.headers().get(name);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned()
}

fn failed(address: &str, reason: impl std::fmt::Display) -> Error {
    let message = format!("cannot connect to {address:?}: {reason}");
    Error::new(ErrorCode::ConnectionFailed, message).with("address", address)
}
