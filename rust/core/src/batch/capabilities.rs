//! What a driver declares.

use crate::config::EngineConfig;

/// What a driver serves, and its limits: the engine keeps within them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The length of a row of logits; tokens are below it.
    pub vocab_size: u32,
    /// Positions are below this.
    pub max_positions: u32,
    /// Tokens of a page.
    pub page_size: u32,
    /// Pages of the pool.
    pub n_pages: u32,
    /// Pages that its host memory holds; 0: it cannot swap.
    pub host_pages: u32,
    /// What copying a page to host memory or back costs, in nanoseconds; 0 where it was not measured.
    pub copy_page_ns: u64,
    /// Attention masks are honoured.
    pub masks: bool,
    /// Positions may repeat, jump and reorder.
    pub positions: bool,
    /// Sequences may have adapters.
    pub adapters: bool,
    /// Sequences may have media.
    pub media: bool,
}

impl EngineConfig {
    /// The same for a model behind this driver: sizes are the driver's, and a context has at most as many tokens as it has positions.
    #[must_use]
    pub fn for_driver(self, driver: &Capabilities) -> Self {
        Self {
            vocab_size: driver.vocab_size,
            page_size: driver.page_size,
            n_pages: driver.n_pages,
            host_slots: driver.host_pages,
            copy_page_ns: driver.copy_page_ns,
            max_context: self.max_context.min(driver.max_positions),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dummy::Driver;

    #[test]
    fn an_engine_is_as_large_as_its_driver() {
        let driver = Driver::new("m", 70, 9, 8).with_host_slots(5);
        let engine = EngineConfig::new("m", 3).for_driver(&driver.capabilities());
        assert_eq!((engine.vocab_size, engine.page_size), (70, 8));
        assert_eq!((engine.n_pages, engine.host_slots), (9, 5));
        assert_eq!(engine.max_context, EngineConfig::new("m", 3).max_context);
        let short = Capabilities {
            max_positions: 100,
            copy_page_ns: 7,
            ..driver.capabilities()
        };
        let engine = engine.for_driver(&short);
        assert_eq!((engine.max_context, engine.copy_page_ns), (100, 7));
    }
}
