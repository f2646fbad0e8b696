//! Accepting clients. Those that have not said hello are bounded in number and time, and the oldest of the address that
//! has the most of them gives way: a slow handshake is in nobody's way, and an address that begins many is in its own.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pie_host::Purpose;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::client_places::Address;
use crate::connection;
use crate::handshake::{self, Admitted};
use crate::http;
use crate::http_in::{self, Connected};
use crate::state::{Phase, ServerState};
use crate::wire::Wire;

/// Clients that may be about to say hello at once.
const MAX_HANDSHAKES: usize = 256;
/// What one of them holds: two buffers and its task.
const HANDSHAKE_BYTES: u64 = 16 << 10;
/// How long accepting rests when the system has no more descriptors.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// Accepts clients until the server closes, and waits until they have gone.
pub(crate) async fn listen(listener: TcpListener, shared: Arc<ServerState>) {
    let mut phase = shared.phase.subscribe();
    let mut clients = JoinSet::new();
    let mut handshakes = Handshakes::default();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let begun = handshakes.begin(peer.ip().into());
                    clients.spawn(serve(stream, peer.ip(), shared.clone(), begun));
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
    drop(handshakes);
    while clients.join_next().await.is_some() {}
}

/// Waits until the server has come so far, or is gone.
async fn reached(phase: &mut watch::Receiver<Phase>, awaited: Phase) {
    drop(phase.wait_for(|phase| *phase >= awaited).await);
}

/// Those that have not said hello, the oldest first.
#[derive(Default)]
struct Handshakes(VecDeque<Handshake>);

/// One of them. Dropping it ends the handshake.
struct Handshake {
    peer: Address,
    /// Whom the peer forwards, once it has said so as a proxy that is trusted.
    forwarded: Arc<OnceLock<Address>>,
    given_up: oneshot::Sender<()>,
}

impl Handshake {
    /// Whom it counts for.
    fn address(&self) -> Address {
        *self.forwarded.get().unwrap_or(&self.peer)
    }
}

/// The client's side of a handshake.
struct Begun {
    forwarded: Arc<OnceLock<Address>>,
    /// Ends when the handshake has to.
    giving_up: oneshot::Receiver<()>,
}

impl Handshakes {
    /// Counts one more, for which another one gives way where there are too many.
    fn begin(&mut self, peer: Address) -> Begun {
        self.0.retain(|handshake| !handshake.given_up.is_closed());
        if self.0.len() >= MAX_HANDSHAKES {
            self.give_one_up();
        }
        let (given_up, giving_up) = oneshot::channel();
        let forwarded = Arc::default();
        self.0.push_back(Handshake {
            peer,
            forwarded: Arc::clone(&forwarded),
            given_up,
        });
        Begun {
            forwarded,
            giving_up,
        }
    }

    /// Ends the oldest of the address that has the most.
    fn give_one_up(&mut self) {
        let mut n_of: HashMap<Address, usize> = HashMap::new();
        for handshake in &self.0 {
            *n_of.entry(handshake.address()).or_default() += 1;
        }
        let most = n_of.values().max().copied().unwrap_or(0);
        let oldest = self
            .0
            .iter()
            .position(|handshake| n_of[&handshake.address()] == most);
        if let Some(oldest) = oldest {
            self.0.remove(oldest);
        }
    }
}

/// One client, from the first byte to the last.
async fn serve(
    stream: TcpStream,
    peer: IpAddr,
    shared: Arc<ServerState>,
    Begun {
        forwarded,
        mut giving_up,
    }: Begun,
) {
    // Small messages go out at once; where the system refuses, they go out a little later.
    drop(stream.set_nodelay(true));
    let nobody = shared.host.budget().account("");
    let Ok(charge) = nobody.charge(Purpose::Frame, HANDSHAKE_BYTES) else {
        tracing::warn!("the engine has no memory left for one more client");
        return;
    };
    let greeted = tokio::select! {
        biased;
        _ = &mut giving_up => return,
        greeted = timeout(shared.config.handshake_timeout, greet(stream, peer, &forwarded, &shared)) => greeted,
    };
    match greeted {
        Ok(Greeted::Admitted(wire, admitted)) => {
            // From now on the place among the handshakes is free.
            drop((giving_up, charge));
            connection::run(wire, admitted, shared).await;
        }
        Ok(Greeted::ForPrograms(wire, connected)) => {
            // It has a place among those that ask programs.
            drop((giving_up, charge));
            let part = shared.places.part_of(peer.into());
            part.doing(http_in::serve(wire, peer, shared, connected))
                .await;
        }
        Ok(Greeted::Refused(wire)) => {
            let Wire { reader, writer } = wire;
            drop(writer);
            tokio::select! {
                _ = &mut giving_up => {}
                () = reader.linger() => {}
            }
            drop(charge);
        }
        Err(_) => {}
    }
}

/// How a handshake ended.
enum Greeted {
    Admitted(Wire, Admitted),
    /// It asks for programs, and has a place among those that do.
    ForPrograms(Wire, Connected),
    /// It has its answer.
    Refused(Wire),
}

async fn greet(
    stream: TcpStream,
    peer: IpAddr,
    forwarded: &OnceLock<Address>,
    shared: &Arc<ServerState>,
) -> Greeted {
    let mut wire = Wire::new(stream, handshake::bounds(shared));
    match http::answer(&mut wire, peer, shared).await {
        http::Begun::WebSocket(shown) => {
            forwarded.get_or_init(|| shown.address.into());
            match handshake::greet(&mut wire, &shown, shared).await {
                Some(admitted) => Greeted::Admitted(wire, admitted),
                None => Greeted::Refused(wire),
            }
        }
        http::Begun::ForPrograms => match shared.http.places.connect(peer.into()) {
            Ok(connected) => Greeted::ForPrograms(wire, connected),
            Err(refused) => {
                // Whoever finds no place keeps the one among the handshakes until the connection has ended.
                http_in::refuse(&mut wire, &refused).await;
                Greeted::Refused(wire)
            }
        },
        http::Begun::Ended => Greeted::Refused(wire),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(last: u8) -> Address {
        IpAddr::from([192, 0, 2, last]).into()
    }

    fn given_up(waiting: &mut [Begun]) -> Vec<usize> {
        let closed = Err(oneshot::error::TryRecvError::Closed);
        let waiting = waiting.iter_mut().enumerate();
        waiting
            .filter_map(|(n, begun)| (begun.giving_up.try_recv() == closed).then_some(n))
            .collect()
    }

    #[test]
    fn an_address_that_begins_many_handshakes_ends_its_own() {
        let mut handshakes = Handshakes::default();
        let mut honest = vec![handshakes.begin(at(1))];
        let mut greedy: Vec<_> = (0..MAX_HANDSHAKES + 10)
            .map(|_| handshakes.begin(at(2)))
            .collect();
        honest.push(handshakes.begin(at(3)));
        assert_eq!(given_up(&mut honest), Vec::<usize>::new());
        assert_eq!(given_up(&mut greedy), (0..12).collect::<Vec<_>>());
        assert_eq!(handshakes.0.len(), MAX_HANDSHAKES);
    }

    #[test]
    fn clients_of_a_trusted_proxy_count_for_where_they_are() {
        let proxy = at(1);
        let mut handshakes = Handshakes::default();
        let mut honest = vec![handshakes.begin(proxy)];
        assert!(honest[0].forwarded.set(at(2)).is_ok());
        let mut greedy: Vec<_> = (1..MAX_HANDSHAKES)
            .map(|_| handshakes.begin(proxy))
            .collect();
        for begun in &greedy {
            assert!(begun.forwarded.set(at(3)).is_ok());
        }
        honest.push(handshakes.begin(proxy));
        assert_eq!(given_up(&mut honest), Vec::<usize>::new());
        assert_eq!(given_up(&mut greedy), [0]);
    }

    #[test]
    fn one_that_is_through_makes_room() {
        let mut handshakes = Handshakes::default();
        let mut waiting: Vec<_> = (0..MAX_HANDSHAKES)
            .map(|_| handshakes.begin(at(1)))
            .collect();
        drop(waiting.pop());
        waiting.push(handshakes.begin(at(1)));
        assert!(given_up(&mut waiting).is_empty());
    }
}
