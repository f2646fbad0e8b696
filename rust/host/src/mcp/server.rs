//! One server: how it is started, and started again after it was lost.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::config::McpServerConfig;
use super::failure::{too_slow, unavailable};
use super::peer::{LinePeer, Peer};
use super::relay::{self, McpRelay};
use super::starter::Starter;
use super::stdio;
use super::web::WebPeer;
use crate::Error;
use crate::errors::stopped;
use crate::network::running::Running;
use crate::sync::lock;

/// In which time starts are counted.
const MINUTE: Duration = Duration::from_secs(60);
/// Bytes that a line has beside the result that it carries.
const ENVELOPE_BYTES: usize = 64 << 10;

/// How a server is reached.
#[derive(Debug)]
pub(crate) enum How {
    /// It is a process of the engine.
    Process(McpServerConfig),
    /// By HTTP, with the certificates of that file.
    Web(McpServerConfig, String),
    /// A client runs it.
    Client(Weak<dyn McpRelay>),
}

/// How servers are started.
#[derive(Clone, Debug)]
pub(crate) struct Starting {
    /// Where what speaks to them runs.
    pub(crate) runtime: Handle,
    /// What starts those that are processes.
    pub(crate) starter: Arc<Starter>,
    /// Bytes that a result may have for the process that may have most.
    pub(crate) answer_bytes: u64,
    /// Starts within a minute.
    pub(crate) starts_per_minute: usize,
    /// How long a start may take, and the name of that limit.
    pub(crate) limit: (Duration, String),
}

/// What became of a start; none as long as it is under way.
type Begun = Option<Result<Arc<Peer>, Error>>;

/// A server, which is started when it is asked.
#[derive(Debug)]
pub(crate) struct McpServer {
    pub(crate) name: Arc<str>,
    how: Arc<How>,
    starting: Starting,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The last start, and what does it. It is of all who wait for it, so that none of them ends it.
    begun: Option<(watch::Receiver<Begun>, Running)>,
    /// When it was started within the last minute.
    starts: VecDeque<Instant>,
}

impl McpServer {
    /// A server that runs not yet.
    pub(crate) fn new(name: &str, how: How, starting: Starting) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            how: Arc::new(how),
            starting,
            state: Mutex::default(),
        })
    }

    /// The server as it runs; it is started where it does not.
    ///
    /// # Errors
    /// `mcp-unavailable`, `mcp-protocol`, `limit-mcp-time`.
    pub(crate) async fn peer(&self) -> Result<Arc<Peer>, Error> {
        let mut begun = self.begun()?;
        let begun = begun
            .wait_for(Option::is_some)
            .await
            .map_err(|_| stopped())?
            .clone();
        begun.unwrap_or_else(|| Err(stopped()))
    }

    /// The engine ends: the processes of the server do so at once.
    pub(crate) fn end(&self) {
        let last = lock(&self.state).begun.take();
        if let Some((begun, _)) = &last
            && let Some(Ok(peer)) = &*begun.borrow()
        {
            peer.kill();
        }
    }

    /// The start that holds: the last one, or a new one where that failed or the server was lost.
    fn begun(&self) -> Result<watch::Receiver<Begun>, Error> {
        let mut state = lock(&self.state);
        if let Some((begun, _)) = &state.begun
            && holds(begun)
        {
            return Ok(begun.clone());
        }
        let now = Instant::now();
        state
            .starts
            .retain(|start| now.duration_since(*start) < MINUTE);
        let most = self.starting.starts_per_minute;
        if state.starts.len() >= most {
            let why = format!(
                "it was started {most} times within a minute, as often as runtime.mcp_starts_per_minute allows"
            );
            return Err(unavailable(&self.name, why));
        }
        state.starts.push_back(now);
        let (sender, begun) = watch::channel(None);
        let start = start(self.name.clone(), self.how.clone(), self.starting.clone());
        let running = self.starting.runtime.spawn(async move {
            let peer = start.await.map(Arc::new);
            // Where nobody waits any more, the next one who asks finds it.
            drop(sender.send_replace(Some(peer)));
        });
        state.begun = Some((begun.clone(), running.into()));
        Ok(begun)
    }
}

/// Whether a start is under way, or what it started is of use.
fn holds(begun: &watch::Receiver<Begun>) -> bool {
    // What was dropped before it was done has left nothing.
    let is_dropped = begun.has_changed().is_err();
    match &*begun.borrow() {
        None => !is_dropped,
        Some(Ok(peer)) => !peer.is_gone(),
        Some(Err(_)) => false,
    }
}

async fn start(name: Arc<str>, how: Arc<How>, starting: Starting) -> Result<Peer, Error> {
    let (limit, limit_name) = &starting.limit;
    let opened = timeout(*limit, open(&name, &how, &starting));
    opened
        .await
        .unwrap_or_else(|_| Err(too_slow(&name, "its start", limit_name, *limit)))
}

async fn open(name: &Arc<str>, how: &How, starting: &Starting) -> Result<Peer, Error> {
    let answer_bytes = starting.answer_bytes;
    let most = usize::try_from(answer_bytes).unwrap_or(usize::MAX);
    let most = most.saturating_add(ENVELOPE_BYTES);
    let link = match how {
        How::Process(config) => stdio::start(name, config, most, &starting.starter).await?,
        How::Client(client) => relay::start(name, client, most)?,
        How::Web(config, ca_file) => {
            let peer = WebPeer::open(name, config, ca_file, answer_bytes).await?;
            return Ok(Peer::Web(peer));
        }
    };
    Ok(Peer::Lines(LinePeer::open(link, answer_bytes).await?))
}
