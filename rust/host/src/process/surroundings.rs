//! What a host has for the programs that it runs, the same for all.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::programs::Directory;
use crate::bus::Bus;
use crate::model::grammars::Grammars;
use crate::model::registry::Models;
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
    /// What programs send to each other.
    pub(crate) bus: Arc<Bus>,
    /// The folders that programs have.
    pub(crate) folders: Arc<Folders>,
    /// Grammars that programs made.
    pub(crate) grammars: Grammars,
    /// Who may have a long text encoded or a grammar compiled.
    pub(crate) encoding: Arc<FairTurns>,
    /// Where programs run, and what drafts for them.
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
        foreground: Handle,
        background: Handle,
    ) -> Self {
        Self {
            instance_id,
            models: Models::default(),
            directory: Directory::default(),
            bus,
            folders,
            grammars: Grammars::default(),
            encoding: FairTurns::new(PARALLEL_TEXTS),
            foreground,
            background,
        }
    }
}
