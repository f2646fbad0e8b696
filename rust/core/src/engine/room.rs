//! Room for one thing more: in the engine, and for each process, so that none takes the room of the others.

use super::Engine;
use crate::config::LateLimit;
use crate::errors::{Error, ErrorCode, Result};
use crate::ids::{ContextId, ProcessId, UserId};

/// Generators that may live for each context that may.
const GENERATORS_PER_CONTEXT: u32 = 4;
/// What the masks and the kept rows of the passes of one process may take, in bytes; rows that wait for their token
/// masks count as kept.
const MAX_FORWARD_BYTES: usize = 256 << 20;

impl Engine {
    /// The user of `process`; `limit-resources` where it may not have another context, `invalid-argument` where it is
    /// unknown.
    pub(super) fn check_room_for_context(&self, process: ProcessId) -> Result<UserId> {
        let check =
            |n, limit, why: &str| check_room(ErrorCode::LimitResources, "contexts", n, limit, why);
        let owner = self.owned.process(process)?;
        check(
            owner.contexts.len(),
            self.config.process_contexts(),
            "contexts of the program live and one program may hold at most {limit}; release some, or raise \
             max_process_contexts",
        )?;
        check(
            self.owned.user(owner.user).n_contexts,
            self.config
                .user_contexts(self.owned.others(owner.user).n_contexts),
            "contexts of the user live and one user may hold at most {limit}; release some, end a program of the user, or \
             raise max_user_contexts",
        )?;
        check(
            self.owned.contexts.len(),
            self.config.max_contexts,
            "contexts live and the engine holds at most {limit}; release some, or raise max_contexts",
        )?;
        Ok(owner.user)
    }

    /// `limit-resources` where the process of `context` may not have another generator.
    pub(super) fn check_room_for_generator(&self, context: ContextId) -> Result<()> {
        let state = self.owned.live(context)?;
        if state.drafts {
            // It has one at a time, and whether it may have that does not depend on others.
            return Ok(());
        }
        let owner = self.owned.process(state.process)?;
        let check = |n, n_contexts: u32, why: &str| {
            let limit = n_contexts.saturating_mul(GENERATORS_PER_CONTEXT);
            check_room(ErrorCode::LimitResources, "generators", n, limit, why)
        };
        check(
            owner.generators.len() - owner.n_draft_generators,
            self.config.process_contexts(),
            "generators of the program live and one program may hold at most {limit}; drop some, or raise \
             max_process_contexts",
        )?;
        check(
            self.owned.generators.len(),
            self.config.max_contexts,
            "generators live and the engine holds at most {limit}; drop some, or raise max_contexts",
        )
    }

    /// `limit-queue` where the process of `context` may not enter another request, `model-unavailable` where nobody
    /// may.
    pub(super) fn check_room_for_request(&self, context: ContextId) -> Result<()> {
        let state = self.owned.live(context)?;
        if state.counts_requests() {
            return self.check_room_for_command(Some(state.process));
        }
        // It has one at a time, so that there are no more of them than contexts.
        self.refusal.clone().map_or(Ok(()), Err)
    }

    /// The same of a process, or of the operator of the engine.
    pub(super) fn check_room_for_command(&self, process: Option<ProcessId>) -> Result<()> {
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        if let Some(process) = process {
            self.check_own_room_for_request(process)?;
        }
        self.check_all_room_for_request()
    }

    fn check_own_room_for_request(&self, process: ProcessId) -> Result<()> {
        let check =
            |n, limit, why: &str| check_room(ErrorCode::LimitQueue, "requests", n, limit, why);
        let owner = self.owned.process(process)?;
        check(
            owner.n_requests,
            self.config.process_waiting(),
            "requests of the program are entered and one program may enter at most {limit}; take the answer of one first, or \
             raise max_process_waiting",
        )?;
        check(
            self.owned.user(owner.user).n_requests,
            self.config
                .user_waiting(self.owned.others(owner.user).n_requests),
            "requests of the user are entered and one user may enter at most {limit}; take the answer of one first, or raise \
             max_user_waiting",
        )
    }

    fn check_all_room_for_request(&self) -> Result<()> {
        let (n, limit) = (self.owned.requests.len(), self.config.max_waiting);
        if n < limit as usize {
            return Ok(());
        }
        let mut values = vec![("requests", n as u64), ("limit", u64::from(limit))];
        let when = self
            .waiting
            .costs
            .next_end_ms()
            .map_or(String::new(), |ms| {
                values.push(("retry_after_ms", ms));
                format!(", in about {ms} ms")
            });
        Err(Error::with_values(
            ErrorCode::LimitQueue,
            format!(
                "{n} requests are entered and the engine takes at most {limit}; come back when one is done{when}, or \
                 raise max_waiting"
            ),
            &values,
        ))
    }

    /// `limit-resources` where passes of the process may not have as many bytes more.
    pub(super) fn check_room_for_forward(&self, process: ProcessId, n_bytes: usize) -> Result<()> {
        if n_bytes == 0 {
            return Ok(());
        }
        let owner = self.owned.process(process)?;
        let n_held = owner.pass_bytes.n_held();
        debug_assert_eq!(n_held, self.owned.added_up(owner), "the sum is kept");
        if n_held + n_bytes <= MAX_FORWARD_BYTES {
            return Ok(());
        }
        Err(Error::with_values(
            ErrorCode::LimitResources,
            format!(
                "the masks of a pass and what is read of its rows take {n_bytes} bytes, those of the program's other \
                 passes {n_held}, and together they may take {MAX_FORWARD_BYTES}; take the answers of others first, or read less"
            ),
            &[
                ("bytes", (n_held + n_bytes) as u64),
                ("limit", MAX_FORWARD_BYTES as u64),
            ],
        ))
    }

    /// `limit-resources` where `n` rows more may not wait for their token masks: of the process, of its user, or of
    /// all.
    pub(super) fn check_room_for_late(&self, process: ProcessId, n: usize) -> Result<()> {
        if n == 0 {
            return Ok(());
        }
        let user = self.owned.process(process)?.user;
        let held = self.late_rows_beside(process, user);
        let config = &self.config;
        check_late(
            n,
            held.of_process,
            config.process_late_rows(),
            "the program",
        )?;
        let of_others = held.of_all - held.of_user;
        check_late(
            n,
            held.of_user,
            config.user_late_rows(of_others),
            "the user",
        )?;
        check_late(n, held.of_all, config.late_rows(), "the engine")
    }

    /// `limit-snapshots` where the user may not have another snapshot.
    pub(super) fn check_room_for_snapshot(&self, user: UserId) -> Result<()> {
        let check =
            |n, limit, why: &str| check_room(ErrorCode::LimitSnapshots, "snapshots", n, limit, why);
        check(
            self.owned.snapshots.n_of(user),
            self.config.user_snapshots(),
            "snapshots of the user are kept and one user may have at most {limit}; delete some, or raise \
             max_user_snapshots",
        )?;
        check(
            self.owned.snapshots.len(),
            self.config.max_snapshots,
            "snapshots are kept and the engine keeps at most {limit}; delete some, or raise max_snapshots",
        )
    }
}

/// An error where there are `n` of `limit` already. `why` follows the number, with the limit in place of `{limit}`.
fn check_room(code: ErrorCode, what: &str, n: usize, limit: u32, why: &str) -> Result<()> {
    if n < limit as usize {
        return Ok(());
    }
    let why = why.replace("{limit}", &limit.to_string());
    let values = [(what, n as u64), ("limit", u64::from(limit))];
    Err(Error::with_values(code, format!("{n} {why}"), &values))
}

/// An error where `n_held` rows wait for their token masks, and `n` more may not.
fn check_late(n: usize, n_held: usize, limit: LateLimit, whose: &str) -> Result<()> {
    let LateLimit {
        n_rows,
        setting,
        value,
    } = limit;
    if n_held + n <= n_rows as usize {
        return Ok(());
    }
    Err(Error::with_values(
        ErrorCode::LimitResources,
        format!(
            "{n} rows are to wait for their token masks, {n_held} of {whose} do, and at most {n_rows} may, since \
             {setting} is {value}; give the masks of others first, or raise {setting}"
        ),
        &[("rows", (n_held + n) as u64), ("limit", u64::from(n_rows))],
    ))
}
