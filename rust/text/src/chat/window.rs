//! A long conversation as a template is shown it.

use std::collections::HashSet;

use super::role::Role;

/// The most turns that are rendered as they are to find a frame.
const MAX_TURNS: usize = 12;
/// Of a longer conversation, how many turns of its beginning stay: a system prompt and the first exchange.
const N_FIRST: usize = 3;
/// And how many of its end.
const N_LAST: usize = 4;

/// A conversation short enough to render: turns in its middle are left out.
///
/// How a template writes a message depends on its neighbours, on how the conversation began, and on whether an even or
/// odd number of turns came before (roles that must alternate), not on how many. So an even number of turns is left
/// out, and the turn behind them keeps a neighbour of the same role.
pub(super) fn shortened(mut roles: Vec<Role>) -> Vec<Role> {
    while roles.len() > MAX_TURNS {
        if leave_out_calls(&mut roles) {
            continue;
        }
        let latest = roles.len() - N_LAST;
        let spot = |at: usize| (roles.get(at - 1), at % 2);
        let mut seen = HashSet::new();
        let cut = (N_FIRST..latest)
            .filter(|&start| seen.insert(spot(start)))
            .filter_map(|start| {
                Some(
                    start
                        ..(start + 1..=latest)
                            .rev()
                            .find(|&end| spot(end) == spot(start))?,
                )
            })
            .max_by_key(ExactSizeIterator::len);
        match cut {
            Some(cut) => roles.drain(cut),
            None => break,
        };
    }
    roles
}

/// Leaves out the first calls, with their answers, that lie in the middle of a conversation.
fn leave_out_calls(roles: &mut Vec<Role>) -> bool {
    let latest = roles.len() - N_LAST;
    let Some(start) = (N_FIRST..latest)
        .find(|&at| roles[at] == Role::Assistant && roles.get(at + 1) == Some(&Role::Tool))
    else {
        return false;
    };
    let answers = roles[start + 1..]
        .iter()
        .take_while(|role| **role == Role::Tool);
    let end = start + 1 + answers.count();
    if end > latest {
        return false;
    }
    roles.drain(start..end);
    true
}
