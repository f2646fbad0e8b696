//! Accepting clients. Those that have not said hello are bounded in number and time, and the oldest gives way: a slow handshake is in
//! nobody's way.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use crate::connection;
use crate::handshake::{self, Client, Socket};
use crate::shared::{Phase, Place, Shared};
use crate::transport::Transport;

/// Clients that may be about to say hello at once.
const MAX_HANDSHAKES: usize = 256;
/// How long accepting rests when the system has no more descriptors.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// Accepts clients until the server closes, and waits until they have gone.
pub(crate) async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    let mut phase = shared.phase.subscribe();
    let mut clients = JoinSet::new();
    let mut handshakes: VecDeque<oneshot::Sender<()>> = VecDeque::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    handshakes.retain(|handshake| !handshake.is_closed());
                    if handshakes.len() >= MAX_HANDSHAKES {
                        // Dropping the sender ends the handshake.
                        handshakes.pop_front();
                    }
                    let (given_up, giving_up) = oneshot::channel();
                    handshakes.push_back(given_up);
                    clients.spawn(serve(stream, shared.clone(), giving_up));
                }
                Err(error) => {
                    tracing::warn!(%error, "no connection can be accepted");
                    tokio::time::sleep(EXHAUSTED_PAUSE).await;
                }
            },
            Some(_) = clients.join_next() => {}
            () = reached(&mut phase, Phase::Closing) => break,
        }
    }
    drop(listener);
    handshakes.clear();
    while clients.join_next().await.is_some() {}
}

/// Waits until the server has come so far, or is gone.
async fn reached(phase: &mut watch::Receiver<Phase>, awaited: Phase) {
    drop(phase.wait_for(|phase| *phase >= awaited).await);
}

/// One client, from the first byte to the last.
async fn serve(stream: TcpStream, shared: Arc<Shared>, mut giving_up: oneshot::Receiver<()>) {
    // Small messages go out at once; where the system refuses, they go out a little later.
    drop(stream.set_nodelay(true));
    let greeted = tokio::select! {
        biased;
        _ = &mut giving_up => return,
        greeted = tokio::time::timeout(shared.config.handshake_timeout, greet(stream, &shared)) => greeted,
    };
    // From now on the place among the handshakes is free.
    drop(giving_up);
    if let Ok(Some((socket, client, place))) = greeted {
        connection::run(socket, client, shared, place).await;
    }
}

async fn greet(stream: TcpStream, shared: &Arc<Shared>) -> Option<(Socket, Client, Place)> {
    let mut socket = handshake::upgrade(Transport::new(stream), shared).await?;
    let (client, place) = handshake::greet(&mut socket, shared).await?;
    Some((socket, client, place))
}
