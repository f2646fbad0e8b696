//! How a conversation continues after a cut through something that the template wrote.
//!
//! A context can be cut anywhere, and a template writes well-formed turns only. So what a cut left of a turn is made
//! whole before anything else is written. A message gets what is missing of its closing, whether its content is whole
//! or not. Where the cut lies before the content, in a header or a cue, nothing was said yet. If what is to be written
//! begins with the tokens that are left, it continues from them, as if the whole had been cut away. Otherwise the
//! header is completed, and closed with nothing in it. A message is encoded in one piece, and where its header runs
//! into its content a token holds parts of both. So what is left is a header only where it consists of the header's
//! tokens.

use super::call::{Addition, At, end};
use super::role::Role;
use super::script::Script;
use super::state::ChatState;
use super::turn::Turn;
use crate::error::Result;

/// A message in the place of what a cut left of an opening, where it begins with the same tokens.
pub(super) fn goes_on_as_message(
    script: &Script,
    state: &ChatState,
    at: At<'_>,
    role: Role,
    text: &str,
) -> Result<Option<Addition>> {
    let Some(kept) = opening(script, state, at)? else {
        return Ok(None);
    };
    let before = state.without_last();
    let (message, with) = script.message_of(&before, role, text)?;
    let closing = message.closing;
    let said = Turn::Said {
        role,
        closing,
        with,
    };
    Ok(goes_on(before, at, &kept, &message.tokens, said))
}

/// A cue in the place of what a cut left of an opening, where it begins with the same tokens.
pub(super) fn goes_on_as_cue(
    script: &Script,
    state: &ChatState,
    at: At<'_>,
) -> Result<Option<Addition>> {
    let Some(kept) = opening(script, state, at)? else {
        return Ok(None);
    };
    let before = state.without_last();
    let tokens = script.cue(&script.history(&before, Role::Assistant)?)?;
    let open = Turn::Open { whole: true };
    Ok(goes_on(before, at, &kept, &tokens, open))
}

/// Writes what is missing of a turn that was cut, and closes it. Returns those tokens, and the state after them.
pub(super) fn finish(
    script: &Script,
    state: &ChatState,
    at: At<'_>,
) -> Result<(Vec<u32>, ChatState)> {
    let Some(Turn::Cut { of, n_kept, n_gone }) = state.last() else {
        return Ok((Vec::new(), state.clone()));
    };
    let mut before = state.without_last();
    let (header, closing) = match &**of {
        Turn::Said {
            role,
            closing,
            with,
        } => {
            let header = script.header(&script.history(&before, *role)?, *role, with)?;
            (header, closing.clone())
        }
        Turn::Sealed { closing, .. } => (Vec::new(), closing.clone()),
        _ => {
            let history = script.history(&before, Role::Assistant)?;
            (script.cue(&history)?, script.closing(&history)?)
        }
    };
    let closes = !matches!(**of, Turn::Open { .. });
    let mut tokens = script.encode(&closing)?;
    let n_closing = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
    let n_written = tokens.len().saturating_sub(*n_gone as usize);
    if closes && (*n_gone as usize) < tokens.len() {
        tokens.drain(..n_written);
    } else {
        let rest = split(&header, *n_kept, at).map_or(&[][..], |(_, rest)| rest);
        tokens.splice(0..0, rest.iter().copied());
    }
    let whole = match &**of {
        Turn::Open { .. } => Turn::Sealed {
            closing,
            n_written: n_closing,
        },
        whole => whole.clone(),
    };
    before.push(end(at, &tokens), whole);
    Ok((tokens, before))
}

/// The tokens that a cut left of what opens a turn; none where it left all of that, or something else stands last.
fn opening(script: &Script, state: &ChatState, at: At<'_>) -> Result<Option<Vec<u32>>> {
    let Some(Turn::Cut { of, n_kept, n_gone }) = state.last() else {
        return Ok(None);
    };
    let before = state.without_last();
    let opening = match &**of {
        Turn::Open { .. } => script.cue(&script.history(&before, Role::Assistant)?)?,
        Turn::Said {
            role,
            closing,
            with,
        } if (*n_gone as usize) > script.encode(closing)?.len() => {
            script.header(&script.history(&before, *role)?, *role, with)?
        }
        _ => return Ok(None),
    };
    Ok(split(&opening, *n_kept, at).map(|(kept, _)| kept.to_vec()))
}

/// The tokens of a header or a cue that are left, and those that are missing; none where none is missing, or where the
/// context does not end with the former.
fn split<'a>(opening: &'a [u32], n_kept: u32, at: At<'_>) -> Option<(&'a [u32], &'a [u32])> {
    let (kept, rest) = opening.split_at_checked(n_kept as usize)?;
    (!rest.is_empty() && kept.ends_with(at.last(kept.len()))).then_some((kept, rest))
}

/// The rest of `tokens` behind those that stand there already, where `tokens` begin with those.
fn goes_on(
    mut before: ChatState,
    at: At<'_>,
    kept: &[u32],
    tokens: &[u32],
    turn: Turn,
) -> Option<Addition> {
    let tokens = tokens.strip_prefix(kept)?.to_vec();
    before.push(end(at, &tokens), turn);
    Some(Addition {
        tokens,
        state: before,
    })
}
