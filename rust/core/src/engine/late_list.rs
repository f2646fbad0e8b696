//! The passes with rows whose token masks come late.

use std::collections::BTreeMap;

use crate::context::{Context, Pass};
use crate::ids::{ContextId, PassId, ProcessId};
use crate::slab::Slab;

/// Passes with rows whose masks come late, in the order of their submission. One that ended stays until somebody looks
/// for room.
#[derive(Debug, Default)]
pub(super) struct LateList {
    passes: BTreeMap<PassId, LatePass>,
    /// Since when the first of those waits that began since somebody asked.
    begun_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LatePass {
    context: ContextId,
    /// Since when it waits for nothing but masks, where it does.
    since_ns: u64,
}

impl LateList {
    /// A pass is entered that has such rows; those that ended are forgotten.
    pub(super) fn add(&mut self, pass: PassId, context: ContextId, contexts: &Slab<Context>) {
        self.sweep(contexts);
        let since_ns = 0;
        self.passes.insert(pass, LatePass { context, since_ns });
    }

    /// From now on the pass waits for nothing but masks. False: it has no such rows.
    pub(super) fn begin(&mut self, pass: PassId, now_ns: u64) -> bool {
        self.begun_ns = self.begun_ns.or(Some(now_ns));
        let pass = self.passes.get_mut(&pass);
        pass.map(|pass| pass.since_ns = now_ns).is_some()
    }

    /// Since when the first waits of those that began since this was asked last.
    pub(super) const fn take_begun_ns(&mut self) -> Option<u64> {
        self.begun_ns.take()
    }

    /// The passes that wait for nothing but masks, and since when.
    pub(super) fn awaiting<'a>(
        &'a self,
        contexts: &'a Slab<Context>,
    ) -> impl Iterator<Item = (PassId, ContextId, u64)> {
        let live = self.live(contexts);
        let awaiting = live.filter(|(.., pass)| pass.awaits_masks() && pass.lacks_mask());
        awaiting.map(|(id, late, ..)| (id, late.context, late.since_ns))
    }

    /// Whether a pass is in the list.
    pub(super) fn has(&self, pass: PassId) -> bool {
        self.passes.contains_key(&pass)
    }

    /// The passes that have such rows still, each with its process.
    pub(super) fn live<'a>(
        &'a self,
        contexts: &'a Slab<Context>,
    ) -> impl Iterator<Item = (PassId, LatePass, ProcessId, &'a Pass)> {
        self.passes.iter().filter_map(|(&id, &late)| {
            let (process, pass) = late.live(id, contexts)?;
            Some((id, late, process, pass))
        })
    }

    /// Forgets passes that ended.
    fn sweep(&mut self, contexts: &Slab<Context>) {
        self.passes
            .retain(|&id, late| late.live(id, contexts).is_some());
    }
}

impl LatePass {
    /// The pass with its process; none where it has ended, or has no such rows any more.
    fn live(self, id: PassId, contexts: &Slab<Context>) -> Option<(ProcessId, &Pass)> {
        let context = contexts.get(self.context.0)?;
        let pass = context.pass.as_ref()?;
        (pass.id == id && pass.n_late() > 0).then_some((context.process, pass))
    }
}
