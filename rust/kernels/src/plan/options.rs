//! The sizes of a plan, checked.

use crate::arena::ArenaBounds;
use crate::element::Dtype;
use crate::error::{Error, Result};
use crate::kv::KvShape;
use crate::ops::rotary::Heads;
use crate::simd::Isa;

/// `pie_k_options`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawOptions {
    /// Type of weights, linears' inputs, keys and values: 1 bfloat16, 2 float32.
    pub dtype: u32,
    /// Instruction set: 0 the best of this CPU, 1 portable, 2 AVX-512, 3 AVX2.
    pub isa: u32,
    /// Threads, the caller included.
    pub n_threads: u32,
    /// Most tokens (and rows of logits) of a batch.
    pub max_tokens: u32,
    /// Tokens of the vocabulary.
    pub vocab_size: u32,
    /// Positions are below this.
    pub max_positions: u32,
    /// Tokens of a page.
    pub page_size: u32,
    /// Pages of the pool.
    pub n_pages: u32,
    /// Layers.
    pub n_layers: u32,
    /// Heads of queries in a layer.
    pub n_heads: u32,
    /// Heads of keys and values in a layer.
    pub n_kv_heads: u32,
    /// Elements of a head.
    pub head_dim: u32,
}

/// The same, in the crate's own types.
pub(crate) struct Options {
    pub(crate) dtype: Dtype,
    pub(crate) isa: Isa,
    pub(crate) n_threads: usize,
    pub(crate) limits: ArenaBounds,
    pub(crate) kv: KvShape,
    pub(crate) heads: Heads,
}

impl Options {
    /// Checks each size by itself.
    pub(crate) fn new(raw: &RawOptions) -> Result<Self> {
        let Some(dtype) = Dtype::from_code(raw.dtype) else {
            return Err(Error::argument(format!(
                "dtype {} is unknown; 1 is bfloat16, 2 float32",
                raw.dtype
            )));
        };
        let sizes = [
            ("n_threads", raw.n_threads, 1024),
            ("max_tokens", raw.max_tokens, 1 << 16),
            ("vocab_size", raw.vocab_size, 1 << 24),
            ("max_positions", raw.max_positions, 1 << 24),
            ("page_size", raw.page_size, 1 << 12),
            ("n_pages", raw.n_pages, 1 << 28),
            ("n_layers", raw.n_layers, 1 << 12),
            ("n_heads", raw.n_heads, 1 << 12),
            ("n_kv_heads", raw.n_kv_heads, 1 << 12),
            ("head_dim", raw.head_dim, 1 << 12),
        ];
        for (name, value, limit) in sizes {
            if value == 0 || value > limit {
                return Err(Error::argument(format!(
                    "{name} is {value}; it must be 1 to {limit}"
                )));
            }
        }
        if !raw.n_heads.is_multiple_of(raw.n_kv_heads) {
            return Err(Error::argument(format!(
                "{} heads are not a multiple of {} heads of keys and values",
                raw.n_heads, raw.n_kv_heads
            )));
        }
        if !raw.head_dim.is_multiple_of(2) {
            return Err(Error::argument(format!(
                "head_dim is {}; rotation needs an even one",
                raw.head_dim
            )));
        }
        let size = |n: u32| n as usize;
        Ok(Self {
            dtype,
            isa: Isa::choose(raw.isa)?,
            n_threads: size(raw.n_threads),
            limits: ArenaBounds {
                vocab_size: size(raw.vocab_size),
                max_positions: size(raw.max_positions),
                page_size: size(raw.page_size),
                n_pages: size(raw.n_pages),
                host_pages: 0,
                max_tokens: size(raw.max_tokens),
            },
            kv: KvShape {
                n_pages: size(raw.n_pages),
                page_size: size(raw.page_size),
                n_layers: size(raw.n_layers),
                n_kv_heads: size(raw.n_kv_heads),
                head_dim: size(raw.head_dim),
            },
            heads: Heads {
                n_heads: size(raw.n_heads),
                n_kv_heads: size(raw.n_kv_heads),
                head_dim: size(raw.head_dim),
            },
        })
    }
}
