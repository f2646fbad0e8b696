//! Contexts at rest: none of their passes waits or runs, so their pages go first where others need room.

use std::collections::VecDeque;

use crate::context::{Context, Pass};
use crate::ids::ContextId;
use crate::slab::Slab;

/// Entries of the list per context that lives, beyond which it is cleared of those that count no more.
const ENTRIES_PER_CONTEXT: usize = 4;
/// Entries that are looked at for one that is not expected back.
const LOOKED_AT: usize = 64;

/// Contexts whose pass has ended, in the order of those ends: the first that have no other one since are the first to
/// give up their pages.
#[derive(Debug, Default)]
pub(super) struct IdleList {
    entries: VecDeque<Idle>,
    n_stamps: u64,
}

/// A context whose pass has ended.
#[derive(Clone, Copy, Debug)]
struct Idle {
    context: ContextId,
    /// That of the context, unless it had another pass since.
    stamp: u64,
    /// Until when it keeps its pages: its program is expected back.
    until_ns: u64,
}

impl IdleList {
    /// A context rests, and keeps its pages until `until_ns`.
    pub(super) fn add(&mut self, id: ContextId, until_ns: u64, contexts: &mut Slab<Context>) {
        let Some(context) = contexts.get_mut(id.0) else {
            // It was released, and its batch is done.
            return;
        };
        self.n_stamps += 1;
        context.idle_stamp = self.n_stamps;
        self.entries.push_back(Idle {
            context: id,
            stamp: self.n_stamps,
            until_ns,
        });
        if self.entries.len() > ENTRIES_PER_CONTEXT * (contexts.len() + 16) {
            let counts = |idle: &Idle| {
                let context = contexts.get(idle.context.0);
                context.is_some_and(|context| context.idle_stamp == idle.stamp)
            };
            self.entries.retain(counts);
        }
    }

    /// Takes out the context that has been at rest for the longest, of those whose programs are not expected back.
    /// `retry_ns` becomes when one of the others may go, where that is earlier.
    pub(super) fn take(
        &mut self,
        contexts: &Slab<Context>,
        now_ns: u64,
        retry_ns: &mut Option<u64>,
    ) -> Option<ContextId> {
        let mut index = 0;
        while let Some(&idle) = self.entries.get(index).filter(|_| index < LOOKED_AT) {
            let context = contexts.get(idle.context.0);
            let may_go = context.is_some_and(|context| {
                context.idle_stamp == idle.stamp && is_idle(context) && context.lane.is_resident()
            });
            if may_go && idle.until_ns > now_ns {
                let until_ns = retry_ns.map_or(idle.until_ns, |at_ns| at_ns.min(idle.until_ns));
                *retry_ns = Some(until_ns);
                index += 1;
                continue;
            }
            self.entries.remove(index);
            if may_go {
                return Some(idle.context);
            }
        }
        None
    }
}

/// Whether nothing of a context waits for a batch or runs in one.
fn is_idle(context: &Context) -> bool {
    context.lease.is_none() && !context.pass.as_ref().is_some_and(Pass::is_waiting)
}
