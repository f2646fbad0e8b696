//! What a driver declares.

/// What a driver serves, and its limits: the engine keeps within them. `pie.backends.base.Capabilities` is the same in
/// Python.
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
    /// It draws by itself, and feeds what it draws into its next batch: it is given that one while one runs, and runs
    /// them in order.
    pub follows: bool,
}
