//! Operations of a plan, as the caller gives them and as they are once checked.

/// `pie_k_op`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawOp {
    /// Which operation: see `Op`.
    pub kind: u32,
    /// Buffer read.
    pub src: u32,
    /// Buffer written.
    pub dst: u32,
    /// Layer of the pool; of a change by adapters, its slot.
    pub layer: u32,
    /// Index of a linear or vector; of a change by adapters, its first column in `dst`.
    pub weight: u32,
    /// Index of a second vector; of a change by adapters, its columns.
    pub weight_2: u32,
    /// Epsilon or scale.
    pub value: f32,
}

/// A checked operation; the numbers are those of `RawOp::kind`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    /// 1: rows of the embedding table times `value`, to `dst` (f32).
    Embed { dst: usize, scale: f32 },
    /// 2: `src` (f32) normalised, times the vector `weight`, to `dst` (rounded).
    RmsNorm {
        src: usize,
        dst: usize,
        weight: usize,
        epsilon: f32,
    },
    /// 3: `src` (rounded) through the linear `weight` to `dst` (f32); 4: added to `dst`.
    Linear {
        src: usize,
        dst: usize,
        weight: usize,
        accumulate: bool,
    },
    /// 5: queries and keys of `dst` (f32) normalised by `weight` and `weight_2`, if given, and rotated; keys and values
    /// stored.
    RotaryWrite {
        qkv: usize,
        layer: usize,
        norms: Option<(usize, usize)>,
        epsilon: f32,
    },
    /// 6: attention of the queries in `src` (f32) with score factor `value`, to `dst` (rounded).
    Attention {
        src: usize,
        dst: usize,
        layer: usize,
        scale: f32,
    },
    /// 7: silu of the first half of `src` (f32) times its second half, to `dst` (rounded).
    SwiGlu { src: usize, dst: usize },
    /// 8: the rows of `src` whose logits are wanted, to `dst` of the same kind.
    SelectRows { src: usize, dst: usize },
    /// 9: `src` (rounded) through the linear `weight` to the caller's logits.
    Logits { src: usize, weight: usize },
    /// 10: the vector `weight` added to each row of `dst` (f32).
    AddVector { dst: usize, weight: usize },
    /// 11: what adapters change in a linear of `src` (rounded), named by a slot, added to some columns of `dst` (f32).
    Lora {
        src: usize,
        dst: usize,
        slot: u32,
        column: usize,
        n_outputs: usize,
    },
}
