//! How large the grammar of a schema may be.

use super::document::Refusal;

/// The most rules of a grammar.
pub(super) const MAX_RULES: usize = 10_000;
/// The most bytes of the text of a grammar.
pub(super) const MAX_TEXT_BYTES: usize = 4 << 20;

/// The refusal of one that is larger.
pub(super) fn too_large() -> Refusal {
    Refusal(format!(
        "the grammar of the schema has more than the limit of {MAX_RULES} rules or {MAX_TEXT_BYTES} bytes; use a smaller \
         schema"
    ))
}
