//! Masks as run lengths: forbidden first, then alternating, 1 = allowed.
//!
//! `[2, 3, 1]` forbids two elements, allows three and forbids one. Beyond the last run everything is forbidden; no run
//! at all restricts nothing. `len` is that of the row: the vocabulary for masks of tokens, the slots of the context
//! after the pass for attention masks. A mask that is longer than its row, and one of more runs than its row has
//! elements, are the error `invalid-argument`.

use crate::bindings::pie::core::masks as raw;
use crate::{ErrorCode, Result, errors};

/// The longest row of a mask where it is not known: no vocabulary and no context of a model is longer.
pub(crate) const MAX_ROW: u32 = 1 << 20;

/// Refuses a mask of more runs than its row needs at most. The engine does so too, but more runs may not fit a call.
pub(crate) fn check_runs(mask: &[u32], len: u32) -> Result<()> {
    if mask.len() as u64 <= u64::from(len) + 1 {
        return Ok(());
    }
    let n_runs = mask.len();
    let message = format!(
        "a mask has {n_runs} runs and its row at most {len} elements; leave out runs of 0, so that there is one for \
         each element at most"
    );
    Err(errors::text(ErrorCode::InvalidArgument, message))
}

/// The same of masks of several rows.
pub(crate) fn check_all_runs(masks: &[Vec<u32>], len: u32) -> Result<()> {
    masks.iter().try_for_each(|mask| check_runs(mask, len))
}

/// The shortest mask of a row of truth values, one an element; what is true is allowed.
///
/// # Errors
/// `invalid-argument` for a row that is too long.
pub fn from_bools(row: &[bool]) -> Result<Vec<u32>> {
    let mut bits = vec![0_u8; row.len().div_ceil(8)];
    for (index, _) in row.iter().enumerate().filter(|(_, allowed)| **allowed) {
        bits[index / 8] |= 1 << (index % 8);
    }
    unpack(&bits, u32::try_from(row.len()).unwrap_or(u32::MAX))
}

/// A truth value for each element of the row: whether the mask allows it.
///
/// # Errors
/// `invalid-argument`
pub fn to_bools(mask: &[u32], len: u32) -> Result<Vec<bool>> {
    let bits = pack(mask, len)?;
    let shown = |index: usize| bits[index / 8] >> (index % 8) & 1 == 1;
    Ok((0..len as usize).map(shown).collect())
}

/// The shortest mask that allows the same; equal masks have one shortest form.
///
/// # Errors
/// `invalid-argument`
pub fn shortest(mask: &[u32], len: u32) -> Result<Vec<u32>> {
    check_runs(mask, len)?;
    Ok(raw::shortest(mask, len)?)
}

/// The shortest mask of what all masks allow.
///
/// # Errors
/// `invalid-argument`
pub fn intersection(masks: &[Vec<u32>], len: u32) -> Result<Vec<u32>> {
    check_all_runs(masks, len)?;
    Ok(raw::intersection(masks, len)?)
}

/// The shortest mask that allows these elements, in any order.
///
/// # Errors
/// `invalid-argument` for one outside the row.
pub fn allowing(elements: &[u32], len: u32) -> Result<Vec<u32>> {
    Ok(raw::allowing(elements, len)?)
}

/// The elements that a mask allows, ascending.
///
/// # Errors
/// `invalid-argument`
pub fn allowed(mask: &[u32], len: u32) -> Result<Vec<u32>> {
    check_runs(mask, len)?;
    Ok(raw::allowed(mask, len)?)
}

/// A bit an element, the lowest bit of each byte first; bits beyond the row are 0.
///
/// # Errors
/// `invalid-argument`
pub fn pack(mask: &[u32], len: u32) -> Result<Vec<u8>> {
    check_runs(mask, len)?;
    Ok(raw::pack(mask, len)?)
}

/// The shortest mask of these bits.
///
/// # Errors
/// `invalid-argument` for bits of another length.
pub fn unpack(bits: &[u8], len: u32) -> Result<Vec<u32>> {
    Ok(raw::unpack(bits, len)?)
}

/// Attention masks of the `n` tokens from slot `start` on: each shows its own slot, the `window - 1` slots before it,
/// and the first `sinks` slots of the context.
///
/// # Errors
/// `invalid-argument` for a window of 0, and for slots beyond the limit.
pub fn window(start: u32, n: u32, window: u32, sinks: u32) -> Result<Vec<Vec<u32>>> {
    Ok(raw::window(start, n, window, sinks)?)
}

/// Attention masks of the `n` tokens from slot `start` on that show every slot up to their own.
///
/// # Errors
/// `invalid-argument` for slots beyond the limit.
pub fn causal(start: u32, n: u32) -> Result<Vec<Vec<u32>>> {
    Ok(raw::causal(start, n)?)
}
