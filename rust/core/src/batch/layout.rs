//! The arena: one array of 32-bit words that holds a batch. This file is its definition.
//!
//! Words are little endian; floats cross by their bits; a 64-bit value is two words, the low one first. Symbols: T
//! tokens of the batch, B sequences, R rows of logits wanted, V tokens of the vocabulary. CSR arrays bear FlashInfer's
//! names.
//!
//! It begins with a header of [`HEADER_WORDS`] words ([`Head`]), in which the two words `FIELDS_AT + 2 f` are the first
//! word of field f and its length in words; words that have no name are 0. The fields ([`Field`]) stand behind it.
//! `tools/gen_driver_docs.py` writes from this file what the kernels and Python know of the layout.
//!
//! A driver works in this order: all swap-outs, which read what was there before the batch; all swap-ins; all page
//! copies, whose sources may have been swapped in just now; then all tokens. So a page may be swapped out and, in the
//! same batch, be swapped in to, copied to, or written by a sequence. It answers with logits, float32 `[R, V]`,
//! C-contiguous. A batch may consist of copies alone: T, B and R are 0 then.

/// The first word: "PIEB".
pub const MAGIC: u32 = 0x4245_4950;
/// The second word: raised with every change that a reader must know of.
pub const VERSION: u32 = 3;
/// Words before the first array.
pub const HEADER_WORDS: usize = 96;
/// Where the pairs of first word and length begin.
pub(crate) const FIELDS_AT: usize = 16;
/// Words of a row of [`Field::RowSampler`].
pub const SAMPLER_WORDS: usize = 8;

/// Words of the header. A 64-bit value has the named word and the one behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Head {
    /// [`MAGIC`].
    Magic = 0,
    /// [`VERSION`].
    Version = 1,
    /// Words of the whole arena.
    Words = 2,
    /// `[2]` number of the batch.
    BatchId = 3,
    /// Tokens that a page holds.
    PageSize = 5,
    /// T.
    Tokens = 6,
    /// B.
    Sequences = 7,
    /// R.
    Rows = 8,
    /// `[2]` number of the batch before, where a sequence follows one of its rows; else 0.
    Before = 9,
}

/// The arrays of an arena, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Field {
    /// `[T]` token ids, sequence by sequence, each in the order of storage.
    Tokens = 0,
    /// `[T]` positions, for rotary embeddings. They may repeat or jump; causality follows the order of storage.
    Positions,
    /// `[B + 1]` the tokens of sequence b are `[qo_indptr[b], qo_indptr[b + 1])`, at least one.
    QoIndptr,
    /// `[B + 1]` the pages of sequence b are `kv_indices[kv_indptr[b]..kv_indptr[b + 1]]`, at least one.
    KvIndptr,
    /// `[kv_indptr[B]]` page ids in the order of storage. The new tokens of a sequence go to its last slots, in the
    /// order of storage.
    KvIndices,
    /// `[B]` slots in use in the last page, the new tokens counted: 1 to the page size.
    KvLastPageLen,
    /// `[B, 2]` the context of a sequence.
    SeqContext,
    /// `[B, 2]` the request of a sequence.
    SeqRequest,
    /// `[B, 2]` identity of the adapter; 0 is none.
    SeqAdapter,
    /// `[B]` version of the adapter.
    SeqAdapterVersion,
    /// `[B, 3]` flag (1: perturb the adapter), and the seed of the perturbation.
    SeqZoSeed,
    /// `[R]` indices into the tokens whose rows of logits are wanted, never descending. A token may want several rows,
    /// each with a sampler of its own: they lie side by side, and a driver may compute them once.
    RowToken,
    /// `[T + 1]` the mask of token t is `mask_runs[mask_indptr[t]..mask_indptr[t + 1]]`.
    MaskIndptr,
    /// `[mask_indptr[T]]` attention masks as run lengths, forbidden first, 1 = allowed, over the slots
    /// `[0, length after the batch)` of the sequence, to be ANDed with causality. Beyond the last run everything is
    /// forbidden. No run: causality alone.
    MaskRuns,
    /// `[C]` pages to copy, whole, after the swaps and before anything is computed.
    CopySrc,
    /// `[C]` where to. No page is both source and destination of a copy in one batch, or written by two copies or
    /// swap-ins.
    CopyDst,
    /// `[R, 8]` kind (0 argmax, 1 sample), temperature (f32), top-k (0: off), top-p (f32, 1: off), min-p (f32, 0: off),
    /// seed (2 words), position. Position is the index in the context of the token that is drawn.
    RowSampler,
    /// `[R]` which of the sampled rows of its pass a row is.
    RowSlot,
    /// `[R]` independent draws from the row; 0 where the row alone is wanted.
    RowDraws,
    /// `[R + 1]` the token mask of row r is `row_mask_runs[row_mask_indptr[r]..row_mask_indptr[r + 1]]`.
    RowMaskIndptr,
    /// `[row_mask_indptr[R]]` token masks as run lengths over the vocabulary. Applied where the token is drawn, never
    /// by a driver that answers with logits.
    RowMaskRuns,
    /// `[B, 2]` digest of the media of a sequence; 0 is none.
    SeqMedia,
    /// `[B]` 1: the only token of the sequence is in its slot already. Its row is computed and nothing is written,
    /// since the page may be shared, and the adapter may be another one than the token was written with.
    SeqReread,
    /// `[O]` pages to copy to host memory, whole, before anything else.
    SwapOutSrc,
    /// `[O]` the host slots that they go to, each once.
    SwapOutDst,
    /// `[I]` host slots to copy back, whole, after the swap-outs. None of them is swapped out to in the same batch.
    SwapInSrc,
    /// `[I]` the pages that they go to, each once.
    SwapInDst,
    /// `[R]` 1: the row itself is wanted, beside what is drawn from it. A driver that draws on the device answers such
    /// rows too. 2: wanted is the hidden state of the token in place of its logits, and nothing is drawn. The row holds
    /// as many values as the driver declares in `embeddings`, and zeros behind them.
    RowKeep,
    /// `[B]` 1 plus the index of a row of the batch before: the only token of the sequence is the one that is drawn
    /// from that row, and its word in `tokens` is 0. 0: its tokens are in `tokens`, as in every batch for a driver that
    /// does not declare `follows`.
    SeqFollows,
}

impl Field {
    /// How many there are.
    pub const COUNT: usize = 29;

    /// Every field, in order.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Tokens,
        Self::Positions,
        Self::QoIndptr,
        Self::KvIndptr,
        Self::KvIndices,
        Self::KvLastPageLen,
        Self::SeqContext,
        Self::SeqRequest,
        Self::SeqAdapter,
        Self::SeqAdapterVersion,
        Self::SeqZoSeed,
        Self::RowToken,
        Self::MaskIndptr,
        Self::MaskRuns,
        Self::CopySrc,
        Self::CopyDst,
        Self::RowSampler,
        Self::RowSlot,
        Self::RowDraws,
        Self::RowMaskIndptr,
        Self::RowMaskRuns,
        Self::SeqMedia,
        Self::SeqReread,
        Self::SwapOutSrc,
        Self::SwapOutDst,
        Self::SwapInSrc,
        Self::SwapInDst,
        Self::RowKeep,
        Self::SeqFollows,
    ];
}

/// What a driver answers of a row, though it draws by itself: a word of [`Field::RowKeep`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Keep {
    /// Nothing but what is drawn.
    Draws = 0,
    /// Its logits.
    Logits = 1,
    /// The hidden state of its token, in place of its logits. Nothing is drawn.
    Embedding = 2,
}

/// The two words of a 64-bit value, the low one first.
pub(super) const fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}
