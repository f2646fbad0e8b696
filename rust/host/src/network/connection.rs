//! Connections to servers: what all processes share of the network, and how a name becomes a connection.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use url::Host;
use wasmtime_wasi::async_trait;

use super::allowed::{check_address, check_host};
use super::config::{HttpLimits, NetworkConfig};
use super::failure::unreachable;
use super::pace::too_long;
use super::places::{OutgoingPlace, Places};
use super::roots;
use super::target::Target;
use crate::Error;

/// Names that are looked up at once: what looks one up is a thread.
const LOOKUPS: usize = 64;
/// Addresses of one name that are tried.
const TRIED: usize = 8;

/// Who knows which addresses a name has.
#[async_trait]
pub(crate) trait Resolver: fmt::Debug + Send + Sync {
    /// The addresses of a name, in the order in which they are tried.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// That of the system.
#[derive(Debug)]
struct System;

#[async_trait]
impl Resolver for System {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(lookup_host((name, 0))
            .await?
            .map(|found| found.ip())
            .collect())
    }
}

/// What all processes share of the network.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) config: NetworkConfig,
    pub(crate) places: Places,
    resolver: Arc<dyn Resolver>,
    lookups: Arc<Semaphore>,
    tls: Arc<ClientConfig>,
}

/// What bytes go through.
pub(crate) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

impl Network {
    /// That of an engine.
    ///
    /// # Errors
    /// `invalid-config`.
    pub(crate) fn new(config: NetworkConfig) -> Result<Self, Error> {
        Self::with_resolver(config, Arc::new(System))
    }

    /// The same, where somebody else knows the addresses of names.
    ///
    /// # Errors
    /// As [`Network::new`].
    pub(crate) fn with_resolver(
        config: NetworkConfig,
        resolver: Arc<dyn Resolver>,
    ) -> Result<Self, Error> {
        Ok(Self {
            places: Places::new(config.user_requests, config.requests),
            resolver,
            lookups: Arc::new(Semaphore::new(LOOKUPS)),
            tls: roots::client(&config.ca_file)?,
            config,
        })
    }

    /// Checks that a program may send a request there, as far as the name tells.
    ///
    /// # Errors
    /// `net-denied`.
    pub(crate) fn check(&self, target: &Target) -> Result<(), Error> {
        check_host(&self.config.allow, &target.host, target.port)
    }

    /// Connects to a server: its name is checked, looked up once, and each address is checked that is connected to.
    ///
    /// # Errors
    /// `net-denied`, `net-unreachable`, `limit-http-time`.
    pub(crate) async fn connect(
        &self,
        target: &Target,
        place: &OutgoingPlace,
        limits: &HttpLimits,
    ) -> Result<Box<dyn Transport>, Error> {
        self.check(target)?;
        match timeout(
            limits.connect,
            self.connected(target, place, limits.connect),
        )
        .await
        {
            Ok(connected) => connected,
            Err(_) => {
                let at = target.place();
                Err(too_long(
                    &at,
                    "a connection",
                    "limits.http_connect_s",
                    limits.connect,
                ))
            }
        }
    }

    async fn connected(
        &self,
        target: &Target,
        place: &OutgoingPlace,
        limit: Duration,
    ) -> Result<Box<dyn Transport>, Error> {
        let addresses = self.addresses(target, place).await?;
        let stream = reach(&addresses, target, limit).await?;
        // What is small is not held back: a request is one piece.
        stream
            .set_nodelay(true)
            .map_err(|error| unreachable(&target.place(), error))?;
        if !target.is_tls {
            return Ok(Box::new(stream));
        }
        let name = match &target.host {
            Host::Domain(name) => ServerName::try_from(name.trim_end_matches('.').to_owned())
                .map_err(|error| unreachable(&target.place(), error))?,
            Host::Ipv4(address) => ServerName::from(IpAddr::V4(*address)),
            Host::Ipv6(address) => ServerName::from(IpAddr::V6(*address)),
        };
        let agreed = TlsConnector::from(self.tls.clone())
            .connect(name, stream)
            .await;
        let agreed =
            agreed.map_err(|error| unreachable(&target.place(), format!("TLS failed: {error}")))?;
        Ok(Box::new(agreed))
    }

    /// The addresses of a server that a program may connect to.
    async fn addresses(
        &self,
        target: &Target,
        place: &OutgoingPlace,
    ) -> Result<Vec<IpAddr>, Error> {
        let found = match &target.host {
            Host::Ipv4(address) => vec![IpAddr::V4(*address)],
            Host::Ipv6(address) => vec![IpAddr::V6(*address)],
            Host::Domain(name) => self.look_up(name, target, place).await?,
        };
        let mut refused = None;
        let mut addresses = Vec::new();
        for address in found {
            match check_address(&self.config.allow, &target.host, address, target.port) {
                Ok(()) => addresses.push(address),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        match (addresses.is_empty(), refused) {
            (false, _) => Ok(addresses),
            (true, Some(error)) => Err(error),
            (true, None) => Err(unreachable(&target.place(), "its name has no address")),
        }
    }

    /// Looks a name up. What does so cannot be stopped, and keeps its turn until it is done.
    async fn look_up(
        &self,
        name: &str,
        target: &Target,
        place: &OutgoingPlace,
    ) -> Result<Vec<IpAddr>, Error> {
        let of_user = place
            .extra()
            .0
            .clone()
            .acquire_owned()
            .await
            .map_err(Error::internal)?;
        let of_all = self
            .lookups
            .clone()
            .acquire_owned()
            .await
            .map_err(Error::internal)?;
        let (resolver, name) = (self.resolver.clone(), name.to_owned());
        let looking = tokio::spawn(async move {
            let found = resolver.resolve(&name).await;
            drop((of_user, of_all));
            found
        });
        let found = looking.await.map_err(Error::internal)?;
        found.map_err(|error| unreachable(&target.place(), error))
    }
}

/// Connects to the first address that answers; each gets its part of the time.
async fn reach(addresses: &[IpAddr], target: &Target, limit: Duration) -> Result<TcpStream, Error> {
    let end = Instant::now() + limit;
    let n_tried = addresses.len().min(TRIED);
    let mut failed = None;
    for (n, address) in addresses.iter().take(n_tried).enumerate() {
        let now = Instant::now();
        let part = end.saturating_duration_since(now) / (n_tried - n).max(1) as u32;
        let connecting = TcpStream::connect(SocketAddr::new(*address, target.port));
        match timeout_at(now + part, connecting).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => failed = Some(error.to_string()),
            Err(_) => failed = Some(format!("{address} does not answer")),
        }
    }
    Err(unreachable(&target.place(), failed.unwrap_or_default()))
}
