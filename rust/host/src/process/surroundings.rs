//! What a host has for the programs that it runs, the same for all.

use std::sync::{Arc, OnceLock, Weak};

use tokio::runtime::Handle;

use super::child::Spawner;
use super::programs::Directory;
use super::standstill::Standstill;
use crate::Error;
use crate::bus::Bus;
use crate::errors::stopped;
use crate::mcp::servers::McpServers;
use crate::model::grammars::Grammars;
use crate::model::registry::Models;
use crate::network::connection::Network;
use crate::program::fair_turns::FairTurns;
use crate::scratch::folders::Folders;

/// Long texts that are encoded at once.
const PARALLEL_TEXTS: usize = 2;

/// What the programs of a host find around them.
pub(crate) struct Surroundings {
    /// The name by which programs know the engine.
    pub(crate) instance_id: String,
    pub(crate) models: Models,
    /// What is known by name and by number.
    pub(crate) directory: Directory,
    /// Who starts children; set once.
    pub(crate) spawner: OnceLock<Weak<dyn Spawner>>,
    /// Who waits for whom.
    pub(crate) standstill: Arc<Standstill>,
    /// What programs send to each other.
    pub(crate) bus: Arc<Bus>,
    /// The folders that programs have.
    pub(crate) folders: Arc<Folders>,
    /// What programs reach of the network.
    pub(crate) network: Arc<Network>,
    /// Servers of MCP, and the places that users have at them.
    pub(crate) mcp: Arc<McpServers>,
    /// Grammars that programs made.
    pub(crate) grammars: Grammars,
    /// Who may have a long text encoded or a grammar compiled.
    pub(crate) encoding: Arc<FairTurns>,
    /// Where programs run, with what drafts for them, and what works on their files.
    pub(crate) foreground: Handle,
    /// Where programs run that compute without waiting, and where long texts are encoded.
    pub(crate) background: Handle,
}

impl Surroundings {
    /// Those of a host without models.
    pub(crate) fn new(
        instance_id: String,
        bus: Arc<Bus>,
        folders: Arc<Folders>,
        network: Arc<Network>,
        mcp: Arc<McpServers>,
        foreground: Handle,
        background: Handle,
    ) -> Self {
        Self {
            instance_id,
            models: Models::default(),
            directory: Directory::default(),
            spawner: OnceLock::new(),
            standstill: Arc::default(),
            bus,
            folders,
            network,
            mcp,
            grammars: Grammars::default(),
            encoding: FairTurns::new(PARALLEL_TEXTS),
            foreground,
            background,
        }
    }

    /// Who starts children.
    ///
    /// # Errors
    /// `engine-stopped` where the host is gone.
    pub(crate) fn spawner(&self) -> Result<Arc<dyn Spawner>, Error> {
        let spawner = self.spawner.get().and_then(Weak::upgrade);
        spawner.ok_or_else(stopped)
    }
}
