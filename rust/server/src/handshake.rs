//! From a WebSocket to a client that has said hello. Until then it is nobody: its messages are small, its pings few,
//! its time short.

use std::sync::Arc;

use pie_host::{Charge, Error, ErrorCode, Purpose};
use serde_json::json;
use tokio::sync::oneshot;
use tungstenite::protocol::frame::coding::CloseCode;

use crate::auth::{Identity, IdentityClaim, Presented, Verdict};
use crate::client_places::{ClientPlace, Visitor};
use crate::clock::now_s;
use crate::names;
use crate::protocol::{self, OPEN_REQUESTS, incoming, outgoing, violation};
use crate::state::ServerState;
use crate::wire::{Bounds, CONNECTION_BYTES, Fault, Message, Wire};

/// Bytes of a hello.
const HELLO_BYTES: usize = 4 << 10;
/// Pings and pongs before the hello.
const MAX_PINGS: usize = 4;
/// Bytes of a name that a client gives itself.
const MAX_CLIENT_BYTES: usize = 256;

/// Who is at the other end.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) identity: Identity,
    /// What the client says that it is, for the log.
    pub(crate) name: String,
}

/// A client that was let in.
pub(crate) struct Admitted {
    pub(crate) client: Client,
    pub(crate) place: ClientPlace,
    /// Tells when the place is lost to another client, or an operator has ended the connection.
    pub(crate) lost: oneshot::Receiver<()>,
    /// What the connection holds as long as it lives.
    pub(crate) charge: Charge,
}

/// What a message may be before the hello.
pub(crate) fn bounds(shared: &ServerState) -> Bounds {
    Bounds {
        account: shared.host.budget().account(""),
        max_bytes: HELLO_BYTES,
        max_name: "the bytes of a hello",
        time: shared.config.handshake_timeout,
    }
}

/// Hears the hello and answers it; the client has its place from then on. One that says anything else is told why and
/// let go.
pub(crate) async fn greet(
    wire: &mut Wire,
    shown: &Presented,
    shared: &Arc<ServerState>,
) -> Option<Admitted> {
    let admitted = introduced(wire, shown, shared)
        .await?
        .and_then(|client| admit(client, shared));
    let admitted = match admitted {
        Ok(admitted) => admitted,
        Err(error) => {
            refuse(wire, &error).await;
            return None;
        }
    };
    let config = &shared.config;
    let limits = json!({
        "frame_bytes": config.max_frame_bytes, "message_bytes": shared.host.limits().message_bytes,
        "upload_bytes": config.max_upload_bytes, "window_bytes": config.window_bytes, "open_requests": OPEN_REQUESTS,
        "name_bytes": names::MAX_FILE_BYTES,
    });
    let answer = outgoing::hello(
        shared.host.instance_id(),
        &admitted.client.identity,
        &limits,
    );
    wire.writer.send(&answer, || ()).await.ok()?;
    wire.reader.set_bounds(Bounds {
        account: admitted.place.user().account.clone(),
        max_bytes: config.max_frame_bytes,
        max_name: "server.max_frame_bytes",
        time: config.frame_timeout,
    });
    wire.writer.set_patience(config.idle_timeout);
    Some(admitted)
}

/// Gives a client its place, and charges what its connection holds.
fn admit(client: Client, shared: &Arc<ServerState>) -> Result<Admitted, Error> {
    let Identity { user, address, .. } = &client.identity;
    // Before the place, for which another client may have to go.
    let account = shared.host.budget().account(user);
    let charge = account.charge(Purpose::Frame, CONNECTION_BYTES)?;
    let visitor = Visitor {
        role: client.identity.role.name(),
        key: client.identity.key.clone(),
        address: address.to_string(),
        client: client.name.clone(),
        since_s: now_s(),
    };
    let (place, lost) = shared.places.enter(user, (*address).into(), visitor)?;
    Ok(Admitted {
        client,
        place,
        lost,
        charge,
    })
}

/// Tells an error that concerns the whole connection, and closes it.
async fn refuse(wire: &mut Wire, error: &Error) {
    tracing::info!(%error, "refused a client");
    let code = close_code(error, CloseCode::Policy);
    let told = outgoing::connection_error(error);
    if wire.writer.send(&told, || ()).await.is_ok() {
        // A client that is gone needs no goodbye.
        drop(wire.writer.close(code, error.code.as_str()).await);
    }
}

/// The code of the goodbye after an error that concerns the whole connection.
pub(crate) fn close_code(error: &Error, other: CloseCode) -> CloseCode {
    match error.code {
        ErrorCode::ProtocolError | ErrorCode::ProtocolVersion => CloseCode::Protocol,
        ErrorCode::LimitConnections | ErrorCode::LimitEngineMemory => CloseCode::Again,
        ErrorCode::LimitMessage => CloseCode::Size,
        ErrorCode::LimitFrame => CloseCode::Policy,
        _ => other,
    }
}

/// Who the client is, once it has proved it; none when it disconnected before.
async fn introduced(
    wire: &mut Wire,
    shown: &Presented,
    shared: &ServerState,
) -> Option<Result<Client, Error>> {
    let mut n_pings = 0;
    let (claim, name) = match heard(wire, &mut n_pings, claimed).await? {
        Ok(said) => said,
        Err(error) => return Some(Err(error)),
    };
    let user = claim.user.clone().unwrap_or_default();
    let judged = shared.authority.judge(claim, shown, &shared.audit).await;
    let identity = match judged {
        Ok(Verdict::In(identity)) => Ok(identity),
        Ok(Verdict::Challenged(challenge)) => {
            let told = outgoing::challenge(challenge.nonce());
            wire.writer.send(&told, || ()).await.ok()?;
            match heard(wire, &mut n_pings, incoming::proof).await? {
                Ok(signature) => {
                    let authority = &shared.authority;
                    authority
                        .judge_signature(&challenge, &signature, shown, &shared.audit)
                        .await
                }
                Err(error) => Err(error),
            }
        }
        Err(error) => Err(error),
    };
    if let Err(error) = &identity {
        shared.audit.turned_away(shown.address, &user, error);
    }
    Some(identity.map(|identity| Client { identity, name }))
}

/// What the next text says; none when the client disconnected without one.
async fn heard<T>(
    wire: &mut Wire,
    n_pings: &mut usize,
    read: impl Fn(&str) -> Result<T, Error>,
) -> Option<Result<T, Error>> {
    loop {
        return match wire.reader.next().await {
            Ok(Message::Text(payload)) => Some(payload.text().and_then(&read)),
            Ok(Message::Ping(_) | Message::Pong) if *n_pings >= MAX_PINGS => {
                Some(Err(violation(format!(
                    "more than {MAX_PINGS} pings or pongs came before the hello; say hello first"
                ))))
            }
            Ok(Message::Ping(payload)) => {
                *n_pings += 1;
                wire.writer.pong(&payload).await.ok()?;
                continue;
            }
            Ok(Message::Pong) => {
                *n_pings += 1;
                continue;
            }
            Ok(Message::Close(_)) => {
                // A client that is gone needs no goodbye.
                drop(wire.writer.close(CloseCode::Normal, "closed").await);
                None
            }
            Ok(Message::Binary(_)) => Some(Err(violation(
                "the first message is not a text; it has to be a hello",
            ))),
            Err(Fault::Refused(error)) => Some(Err(error)),
            Err(Fault::Gone) => None,
        };
    }
}

/// What a hello says of who the client is, and what it calls itself.
fn claimed(text: &str) -> Result<(IdentityClaim, String), Error> {
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
    if let Some(user) = &hello.user {
        names::check_user(user)?;
    }
    let name = hello.client.unwrap_or_default();
    if name.len() > MAX_CLIENT_BYTES {
        return Err(violation(format!(
            "the client gives itself a name of more than {MAX_CLIENT_BYTES} bytes"
        )));
    }
    let claim = IdentityClaim {
        user: hello.user,
        key: hello.key,
        public_key: hello.public_key,
    };
    Ok((claim, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hellos_are_judged() {
        let code = |text: &str| {
            claimed(text)
                .map(|(claim, _)| claim.user)
                .map_err(|error| error.code)
        };
        assert_eq!(code(r#"{"type":"hello","protocol":1}"#), Ok(None));
        assert_eq!(
            code(r#"{"type":"hello","protocol":1,"user":"a"}"#),
            Ok(Some("a".to_owned()))
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
