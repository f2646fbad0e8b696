//! A driver that is gone, with everything that its device held.
//!
//! Pages are only ever a shortcut: whatever a context says is kept as tokens, in the nodes of the store and behind
//! them. So a device that is lost costs the requests of its batches, which fail, and time: what is wanted again is
//! computed again. Programs see nothing else of it.

use super::Engine;
use crate::command::AdapterName;
use crate::context::Pass;
use crate::errors::{Error, ErrorCode};
use crate::ids::{BatchId, ContextId, PassId};
use crate::sched::Ticket;

impl Engine {
    /// The device is gone, its pages, and those in the memory of its host. Nothing may use it any more. The requests of
    /// the batches that run become ready, each with the error `driver-lost`, and their contexts are as they were; a
    /// batch is not answered afterwards. Requests that wait go on with the device that comes next, which holds nothing:
    /// the adapters are loaded again first. Returns one that is not, since several devices in a row were lost over it.
    pub fn lose_device(&mut self, message: &str, now_ns: u64) -> Option<AdapterName> {
        self.now_ns = now_ns;
        self.totals.n_device_losses += 1;
        let mut running: Vec<BatchId> =
            self.device.in_flight.iter().map(|batch| batch.id).collect();
        // A batch that follows another one ends after it.
        running.sort_unstable_by_key(|batch| batch.0);
        for batch in running {
            if let Some(index) = self.device.in_flight.iter().position(|it| it.id == batch) {
                self.end_batch(index, Err(lost(message)), now_ns);
            }
        }
        let given_up = self.lose_command(|| lost_command(message));
        for id in self.owned.contexts.ids() {
            if let Some(context) = self.owned.contexts.get_mut(id) {
                context.lane.reset(&mut self.device.store);
            }
        }
        self.device.store.lose();
        for id in self.owned.contexts.ids() {
            self.renew_ticket(ContextId(id));
        }
        given_up
    }

    /// Nothing may be asked of the driver from now on, for the reason that is given: whatever waits fails with it, and
    /// so does what is asked later. None: requests are taken again.
    pub fn refuse(&mut self, reason: Option<Error>) {
        self.refusal = reason;
        let Some(refusal) = self.refusal.clone() else {
            return;
        };
        for ticket in self.waiting.queue.iter().copied().collect::<Vec<Ticket>>() {
            self.waiting.queue.remove(ticket.pass);
            self.fail(ticket.context, ticket.pass, refusal.clone());
        }
        // Those that wait for drafts or for pages are in no queue.
        let others = self.owned.contexts.iter().filter_map(|(id, context)| {
            let waits_for_pages = |pass: &Pass| context.awaits_pages() && pass.is_waiting();
            let pass = context.pass.as_ref();
            let pass = pass.filter(|pass| pass.is_drafting() || waits_for_pages(pass))?;
            Some((ContextId(id), pass.id))
        });
        for (context, pass) in others.collect::<Vec<(ContextId, PassId)>>() {
            self.fail(context, pass, refusal.clone());
        }
        self.refuse_commands(&refusal);
    }
}

fn lost_command(message: &str) -> Error {
    Error::new(
        ErrorCode::DriverLost,
        format!(
            "the process of the driver was lost: {message}; adapters that were loaded are loaded again, try the command again"
        ),
    )
}

fn lost(message: &str) -> Error {
    Error::new(
        ErrorCode::DriverLost,
        format!(
            "the process of the driver was lost: {message}; the context is as it was, try the pass again"
        ),
    )
}
