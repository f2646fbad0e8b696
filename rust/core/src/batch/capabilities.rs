//! What a driver declares.

crate::settings! {
    /// What a driver serves, and its limits: the engine keeps within them. `pie.backends.base.Capabilities` is the same
    /// in Python.
    #[derive(PartialEq, Eq)]
    pub struct Capabilities in "driver" {
        /// The name of the driver, for messages.
        backend "backend": String = String::new(), 0 => 256;
        /// V, the length of a row of logits; tokens are below it.
        vocab_size "vocab_size": u32 = 1, 1 => MAX_VOCABULARY;
        /// Positions are below this; it also bounds the length of contexts.
        max_positions "max_positions": u32 = 32_768, 1 => MAX_POSITIONS;
        /// Tokens of a page.
        page_size "page_size": u32 = 16, 1 => 1024;
        /// Pages of the pool of keys and values.
        n_pages "n_pages": u32 = 4096, 1 => 1 << 24;
        /// Most tokens, and most rows of logits, of a batch.
        max_batch_tokens "max_batch_tokens": u32 = MAX_BATCH_TOKENS, 1 => MAX_BATCH_TOKENS;
        /// Pages that its host memory holds; 0: it cannot swap, and what is displaced is computed again.
        host_pages "host_pages": u32 = 0, 0 => 1 << 24;
        /// What copying a page to host memory or back costs, one way, in nanoseconds, measured when the driver is
        /// opened. The engine weighs it against computing the page again; 0: not measured.
        copy_page_ns "copy_page_ns": u64 = 0, 0 => u64::MAX;
        /// Whether attention masks are honoured.
        masks "masks": bool = false;
        /// Whether positions may repeat, jump and reorder.
        positions "positions": bool = false;
        /// Whether sequences may have adapters; where not, one that has fails alone.
        adapters "adapters": bool = false;
        /// Whether sequences may have media; where not, one that has fails alone.
        media "media": bool = false;
        /// Values of the hidden state behind a token, which it answers where that is asked for; 0: it does not. A row
        /// of logits has room for them: at most `vocab_size`.
        embeddings "embeddings": u32 = 0, 0 => 1 << 21;
        /// Whether it draws by itself and feeds what it draws into its next batch. It is given that one while one runs,
        /// and runs them in order.
        follows "follows": bool = false;
        /// Bytes of a page as it gives it away and takes it back, all its layers one behind the other; 0: it does
        /// neither, and pages of snapshots on disk are computed again.
        page_bytes "page_bytes": u64 = 0, 0 => 1 << 40;
        /// What the bits of its pages depend on besides the weights, the tokens and the size of a page: pages of
        /// another maker are computed again.
        pages_made_by "pages_made_by": String = String::new(), 0 => 256;
    }
}

/// The most tokens that a vocabulary may have.
pub(crate) const MAX_VOCABULARY: u32 = 1 << 21;
/// Values of a hidden state of the dummy driver, where a row has room for them.
pub(crate) const DUMMY_EMBEDDINGS: u32 = 8;
/// The most positions that there may be.
pub(crate) const MAX_POSITIONS: u32 = 1 << 24;
/// The most tokens that a batch may have.
pub(crate) const MAX_BATCH_TOKENS: u32 = 1 << 20;
