//! The driver answers a batch.

use super::requests::ticket;
use super::{Engine, InFlight, RequestState, Running};
use crate::batch::{DriverFailure, Sampled};
use crate::context::PassKind;
use crate::errors::{Error, ErrorCode, Result};
use crate::generation::FinishReason;
use crate::ids::{BatchId, GeneratorId, RequestId};

impl Engine {
    /// Ends a batch: keys and values advance, drawn tokens are folded into their passes, and passes that need more wait again. After a
    /// failure of the driver every request of the batch becomes ready with an error of its own, and its context is as it was before.
    ///
    /// # Errors
    /// `internal` when no such batch runs, or when what was sampled belongs to another one; nothing changes then.
    pub fn complete(
        &mut self,
        batch: BatchId,
        outcome: std::result::Result<Sampled, DriverFailure>,
        now_ns: u64,
    ) -> Result<()> {
        let Some(index) = self
            .in_flight
            .iter()
            .position(|running| running.id == batch)
        else {
            return Err(Error::internal(format!("{batch:?} does not run")));
        };
        let n_sequences = self
            .in_flight
            .get(index)
            .map_or(0, |running| running.sequences.len());
        if let Ok(sampled) = &outcome
            && (sampled.batch != batch || sampled.n_sequences() != n_sequences)
        {
            return Err(Error::internal(format!(
                "{batch:?} was answered with what was sampled for {:?}",
                sampled.batch
            )));
        }
        let InFlight {
            sequences,
            since_ns,
            ..
        } = self.in_flight.swap_remove(index);
        self.hold.ran(now_ns.saturating_sub(since_ns));
        match outcome {
            Ok(sampled) => {
                for (index, sequence) in sequences.into_iter().enumerate() {
                    self.end_lease(&sequence, true);
                    self.advance(&sequence, sampled.first_token(index), batch, now_ns);
                }
            }
            Err(failure) => {
                self.totals.n_failed_batches += 1;
                for sequence in sequences {
                    self.end_lease(&sequence, false);
                    self.advance(&sequence, Err(driver_failed(&failure)), batch, now_ns);
                }
            }
        }
        Ok(())
    }

    /// The batch has let go of the pages of a context. `copied` tells whether its page copies were made.
    fn end_lease(&mut self, sequence: &Running, copied: bool) {
        let Some(context) = self.contexts.get_mut(sequence.context.0) else {
            return;
        };
        context.lease = None;
        if let Some(copy) = sequence.copy {
            if copied {
                context.table.adopt(&mut self.pool, copy)
            } else {
                self.pool.release(copy.dst)
            }
        }
        self.bury(sequence.context);
    }

    /// Takes a pass one batch further.
    fn advance(
        &mut self,
        sequence: &Running,
        drawn: Result<Option<u32>>,
        batch: BatchId,
        now_ns: u64,
    ) {
        let page_size = self.config.page_size;
        let Some(context) = self.contexts.get_mut(sequence.context.0) else {
            return;
        };
        let Some(pass) = context
            .pass
            .as_mut()
            .filter(|pass| pass.request == sequence.request)
        else {
            // The pass was cancelled under way: what it wrote is dropped.
            context.trim(&mut self.pool, page_size);
            return;
        };
        let token = match drawn {
            Ok(token) if pass.advance() => token,
            Ok(_) => return,
            Err(error) => return self.fail(sequence.request, error),
        };
        let mut finish = None;
        if let Some(token) = token {
            pass.push(token);
            let length = context.tokens.len() as u32 + pass.n_tokens();
            let (PassKind::Step(id) | PassKind::Run(id)) = pass.kind else {
                return;
            };
            finish = self.generators.get(id.0).and_then(|generator| {
                let n_drawn = pass.drawn().len() as u32;
                generator.judge(
                    token,
                    n_drawn,
                    length,
                    &self.config.end_tokens,
                    self.config.max_context,
                )
            });
        }
        let process = context.process;
        if let (PassKind::Run(_), None) = (pass.kind, finish)
            && let Some(budget) = self
                .processes
                .get(&process)
                .and_then(|process| process.budget.as_ref())
            && pass.drawn().len() as u64 >= budget.left()
        {
            let error = budget.exhausted(pass.drawn().len() as u64 + 1);
            return self.fail(sequence.request, error);
        }
        let done = match pass.kind {
            PassKind::Flush => pass.n_remaining() == 0,
            PassKind::Step(_) => token.is_some(),
            PassKind::Run(_) => finish.is_some(),
        };
        if !done {
            self.queue
                .push(ticket(sequence.context, context.process, pass, batch.0));
            return;
        }
        (pass.finish, pass.outcome) = (finish, Some(Ok(())));
        let kind = pass.kind;
        self.ready.push(sequence.request);
        if let PassKind::Step(id) = kind {
            self.expect_back(id, finish, now_ns);
        }
    }

    /// A program was answered a step: it may come back for the next one.
    fn expect_back(&mut self, id: GeneratorId, finish: Option<FinishReason>, now_ns: u64) {
        let Some(generator) = self.generators.get_mut(id.0) else {
            return;
        };
        if finish.is_none() && !generator.retired && !generator.dropped {
            generator.answered_ns = Some(now_ns);
            self.hold.expect(id, generator.return_ns, now_ns);
        }
    }

    /// Ends a pass with an error; what it computed is dropped.
    pub(super) fn fail(&mut self, request: RequestId, error: Error) {
        let Some(RequestState::Active(context)) = self.requests.get(&request) else {
            return;
        };
        let Some(context) = self.contexts.get_mut(context.0) else {
            return;
        };
        if let Some(pass) = context.pass.as_mut() {
            pass.fail(error);
            context.trim(&mut self.pool, self.config.page_size);
            self.ready.push(request);
        }
    }
}

fn driver_failed(failure: &DriverFailure) -> Error {
    Error::new(
        ErrorCode::DriverFailed,
        format!(
            "the driver failed the batch: {}; the context is as it was, try the pass again",
            failure.message
        ),
    )
}
