//! The layout of a batch. Generated from rust/core/src/batch/layout.rs by tools/gen_driver_docs.py; do not edit it.

#![allow(dead_code)] // A model needs a part of it.

pub(super) const MAGIC: u32 = 0x4245_4950;
pub(super) const VERSION: u32 = 3;
pub(super) const HEADER_WORDS: usize = 96;
pub(super) const FIELDS_AT: usize = 16;
pub(super) const KEEP_DRAWS: u32 = 0;
pub(super) const KEEP_LOGITS: u32 = 1;
pub(super) const KEEP_EMBEDDING: u32 = 2;

/// Words of the header.
pub(super) mod head {
    pub(in super::super) const MAGIC: usize = 0;
    pub(in super::super) const VERSION: usize = 1;
    pub(in super::super) const WORDS: usize = 2;
    pub(in super::super) const BATCH_ID: usize = 3;
    pub(in super::super) const PAGE_SIZE: usize = 5;
    pub(in super::super) const TOKENS: usize = 6;
    pub(in super::super) const SEQUENCES: usize = 7;
    pub(in super::super) const ROWS: usize = 8;
    pub(in super::super) const BEFORE: usize = 9;
}

/// Arrays, by their number.
pub(super) mod array {
    pub(in super::super) const TOKENS: usize = 0;
    pub(in super::super) const POSITIONS: usize = 1;
    pub(in super::super) const QO_INDPTR: usize = 2;
    pub(in super::super) const KV_INDPTR: usize = 3;
    pub(in super::super) const KV_INDICES: usize = 4;
    pub(in super::super) const KV_LAST_PAGE_LEN: usize = 5;
    pub(in super::super) const SEQ_CONTEXT: usize = 6;
    pub(in super::super) const SEQ_REQUEST: usize = 7;
    pub(in super::super) const SEQ_ADAPTER: usize = 8;
    pub(in super::super) const SEQ_ADAPTER_VERSION: usize = 9;
    pub(in super::super) const SEQ_ZO_SEED: usize = 10;
    pub(in super::super) const ROW_TOKEN: usize = 11;
    pub(in super::super) const MASK_INDPTR: usize = 12;
    pub(in super::super) const MASK_RUNS: usize = 13;
    pub(in super::super) const COPY_SRC: usize = 14;
    pub(in super::super) const COPY_DST: usize = 15;
    pub(in super::super) const ROW_SAMPLER: usize = 16;
    pub(in super::super) const ROW_SLOT: usize = 17;
    pub(in super::super) const ROW_DRAWS: usize = 18;
    pub(in super::super) const ROW_MASK_INDPTR: usize = 19;
    pub(in super::super) const ROW_MASK_RUNS: usize = 20;
    pub(in super::super) const SEQ_MEDIA: usize = 21;
    pub(in super::super) const SEQ_REREAD: usize = 22;
    pub(in super::super) const SWAP_OUT_SRC: usize = 23;
    pub(in super::super) const SWAP_OUT_DST: usize = 24;
    pub(in super::super) const SWAP_IN_SRC: usize = 25;
    pub(in super::super) const SWAP_IN_DST: usize = 26;
    pub(in super::super) const ROW_KEEP: usize = 27;
    pub(in super::super) const SEQ_FOLLOWS: usize = 28;
}
