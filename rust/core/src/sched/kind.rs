//! What a request wants in the end, and what it needs of the next batch.

/// What a request wants in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    /// Its tokens computed.
    Tokens,
    /// The token behind its last one drawn, and where there are drafts, those judged: they come last among its tokens.
    /// A few tokens that were accepted with the step before count among `n_drafts`: they are computed in one step, too.
    Draw { n_drafts: u32 },
    /// The rows that a program asked for.
    Rows,
}

/// What a request needs of the next batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One token: the next of a generation, or as little as that.
    Decode,
    /// One token and its drafts, or as many of them as there is room for.
    Verify { n_drafts: u32 },
    /// Tokens, in chunks.
    Prefill,
    /// Tokens of a pass that a program put together, in chunks.
    Forward,
}

impl Wants {
    /// What a request needs of the next batch of which so many tokens are left to compute.
    pub(crate) const fn kind(self, n_tokens: u32) -> Kind {
        match self {
            _ if n_tokens <= 1 => Kind::Decode,
            Self::Draw { n_drafts } if n_tokens <= 1 + n_drafts => Kind::Verify { n_drafts },
            Self::Draw { .. } | Self::Tokens => Kind::Prefill,
            Self::Rows => Kind::Forward,
        }
    }
}

impl Kind {
    /// Whether it is a step of a generation: those come before the rest.
    pub(crate) const fn is_step(self) -> bool {
        matches!(self, Self::Decode | Self::Verify { .. })
    }
}
