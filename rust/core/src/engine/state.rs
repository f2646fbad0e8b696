//! The engine of one model: its parts, and what it was made with.

use super::device::Device;
use super::owned::Owned;
use super::totals::Totals;
use super::waiting::Waiting;
use crate::batch::LateDraw;
use crate::config::EngineConfig;
use crate::errors::{Error, Result};
use crate::generation::DraftEvent;
use crate::ids::{ContextId, RequestId};
use crate::kv::PageStore;
use crate::market::Ledger;

/// The state of one model's contexts, generators and requests.
///
/// Pure: time and randomness are arguments, nothing blocks, and no call panics whatever a program or a driver does.
/// Tokens are a function of what the programs do and of their launch seeds, never of times, batches or chunks.
#[derive(Debug)]
pub struct Engine {
    pub(super) config: EngineConfig,
    pub(super) owned: Owned,
    pub(super) waiting: Waiting,
    pub(super) device: Device,
    /// What processes have of the market for pages.
    pub(super) market: Ledger,
    /// Requests that became ready and were not yet drained.
    pub(super) ready: Vec<RequestId>,
    /// Rows that were kept and whose token masks have come since, not yet drained.
    pub(super) draws: Vec<LateDraw>,
    /// What whoever drafts has to know, not yet drained.
    pub(super) draft_events: Vec<DraftEvent>,
    /// Contexts whose pages are wanted, not yet drained.
    pub(super) page_wishes: Vec<ContextId>,
    /// Why nothing is asked of the driver, where nothing may be.
    pub(super) refusal: Option<Error>,
    /// The latest time that was told.
    pub(super) now_ns: u64,
    pub(super) n_passes: u64,
    pub(super) totals: Totals,
}

impl Engine {
    /// An engine without processes.
    ///
    /// # Errors
    /// `invalid-config`, naming the setting, its value and the range.
    pub fn new(config: EngineConfig) -> Result<Self> {
        config.check()?;
        let config = config.within_driver();
        let driver = &config.driver;
        let store = PageStore::new(driver.page_size, driver.n_pages, driver.host_pages);
        let store = if config.prefix_cache {
            store
        } else {
            store.unsearched()
        };
        Ok(Self {
            owned: Owned::new(),
            waiting: Waiting::new(&config),
            device: Device::new(store),
            market: Ledger::default(),
            ready: Vec::new(),
            draws: Vec::new(),
            draft_events: Vec::new(),
            page_wishes: Vec::new(),
            refusal: None,
            now_ns: 0,
            n_passes: 0,
            totals: Totals::default(),
            config,
        })
    }

    /// What the engine was made with.
    pub const fn config(&self) -> &EngineConfig {
        &self.config
    }

    /// The requests that became ready since they were last drained. Ask after every call.
    pub fn drain_ready(&mut self) -> Vec<RequestId> {
        std::mem::take(&mut self.ready)
    }
}
