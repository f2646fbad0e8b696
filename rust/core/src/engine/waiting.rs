//! What waits for the device, and for how long it may: the queue, programs that are expected back, contexts at rest,
//! rows whose token masks come late.

use super::costs::Costs;
use super::idle::IdleList;
use super::late_list::LateList;
use super::requests::ticket;
use crate::config::{EngineConfig, nanoseconds};
use crate::context::Context;
use crate::faults::Faults;
use crate::ids::ContextId;
use crate::sched::{Hold, Pace, Queue};

/// All that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) queue: Queue,
    pub(super) hold: Hold,
    pub(super) idle: IdleList,
    pub(super) late: LateList,
    pub(super) costs: Costs,
}

impl Waiting {
    /// Nothing waits.
    pub(super) fn new(config: &EngineConfig) -> Self {
        Self {
            queue: Queue::new(Pace::new(nanoseconds(config.shared_step))),
            hold: Hold::new(nanoseconds(config.hold)),
            idle: IdleList::default(),
            late: LateList::default(),
            costs: Costs::default(),
        }
    }

    /// Takes a pass on that has more to compute: where the next batch has it already, it runs; if not, it waits.
    pub(super) fn go_on(
        &mut self,
        id: ContextId,
        context: &mut Context,
        served: u64,
        faults: &mut Faults,
    ) {
        if context.lease.is_some() {
            let starts = context.pass.as_mut().is_some_and(|pass| pass.start(true));
            return faults.expect(starts, "what is followed does not wait");
        }
        let ticket = ticket(id, context, served);
        faults.expect(ticket.is_some(), "what goes on has no pass");
        self.queue.extend(ticket);
    }
}
