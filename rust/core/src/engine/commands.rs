//! Commands to the driver, in order with batches.
//!
//! A command is a request as a pass is: it is entered, the driver gets it, and who asked takes the answer. It is given
//! when no batch runs, and no batch is given while it runs, so that every driver meets both in one order, also one that
//! is given a batch while another one runs. Commands are given in the order in which they were entered. After each of
//! them a batch goes first where one can be made, so that who enters many keeps nobody from computing.
//!
//! A command counts as a batch where a driver hangs or is lost: it fails with `driver-failed` after
//! `driver_timeout_ns`, the engine gives nothing until the driver answers, and that answer is dropped; with
//! `driver-lost` where the device goes. The device that comes next is first given the adapters that the one before had
//! ([`super::adapters`]); then commands that wait go on.
//!
//! Which pages a move of pages concerns is found when it is given (`page_moves`), so that none is held for one that
//! waits.

use super::command_queue::{QueuedCommand, RunningCommand, Transfer};
use super::forwarding::refused;
use super::requests::{Answer, Progress, RequestState};
use super::{Engine, NextWork};
use crate::command::{AdapterName, Command, CommandFailure, DriverCommand};
use crate::config::nanoseconds;
use crate::errors::{Error, ErrorCode, Result};
use crate::ids::{CommandId, ProcessId, RequestId, UserId};

/// The longest path, in bytes.
const MAX_PATH_BYTES: usize = 4096;

impl Engine {
    /// Enters a command at the wish of a process, or of the operator of the engine.
    pub(super) fn submit_command(
        &mut self,
        request: RequestId,
        process: Option<ProcessId>,
        command: Command,
    ) -> Result<Progress> {
        self.check_room_for_command(process)?;
        if !self.config.driver.adapters {
            return Err(Error::new(
                ErrorCode::Unsupported,
                format!(
                    "there are no adapters on this driver, that of {}; run the model on another one",
                    self.config.model
                ),
            ));
        }
        if command.adapters().any(|adapter| adapter.id == 0) {
            return Err(refused(
                "an adapter has the identity 0, which is that of none; give another one",
            ));
        }
        if matches!(
            command,
            Command::ExportPages { .. } | Command::ImportPages { .. }
        ) {
            return Err(refused(
                "pages are moved by their contents, not by their places in the pool; submit a move of pages",
            ));
        }
        check_path("an adapter", command.path())?;
        self.owned.add_command(request, process);
        self.device
            .commands
            .waiting
            .push_back((request, QueuedCommand::Command(command)));
        Ok(Progress::Waiting)
    }

    /// What a driver should do next, where that concerns commands; none where a batch may be given.
    pub(super) fn plan_command(&mut self, now_ns: u64) -> Option<NextWork> {
        let commands = &self.device.commands;
        if commands.running.is_some() {
            return Some(NextWork::Idle);
        }
        if commands.adapters.are_missing() {
            return Some(self.next_command(now_ns).unwrap_or(NextWork::Idle));
        }
        let is_idle = commands.waiting.is_empty() && !commands.adapters.are_unwanted();
        if is_idle || commands.yields && self.waiting.queue.len() > 0 {
            return None;
        }
        if !self.device.in_flight.is_empty() {
            // Batches that run are answered first.
            return Some(NextWork::Idle);
        }
        self.next_command(now_ns)
    }

    /// The next command, where nothing runs.
    pub(super) fn next_command(&mut self, now_ns: u64) -> Option<NextWork> {
        if !self.device.in_flight.is_empty() {
            return None;
        }
        let commands = &mut self.device.commands;
        // What is not wanted any more goes before what waits, which may name it anew.
        let unasked = commands.adapters.load_next();
        let unasked = unasked.or_else(|| commands.adapters.drop_next());
        let (request, command, transfer) = match unasked {
            Some(command) => (None, command, Transfer::Nothing),
            None => self.next_asked()?,
        };
        let commands = &mut self.device.commands;
        commands.n_given += 1;
        // A batch goes first behind what somebody asked for.
        commands.yields = request.is_some();
        let (id, again) = (CommandId(commands.n_given), request.is_none());
        commands.running = Some(RunningCommand {
            id,
            request,
            command: command.clone(),
            transfer,
            since_ns: now_ns,
            abandoned: false,
        });
        self.totals.n_commands += 1;
        Some(NextWork::Command(DriverCommand { id, command, again }))
    }

    /// The command that was asked for first and that there is something to do for.
    fn next_asked(&mut self) -> Option<(Option<RequestId>, Command, Transfer)> {
        loop {
            let (request, asked) = self.device.commands.waiting.pop_front()?;
            match asked {
                QueuedCommand::Command(command) => {
                    return Some((Some(request), command, Transfer::Nothing));
                }
                QueuedCommand::Pages(wanted) => match self.begin_move(&wanted) {
                    Ok((command, transfer)) => return Some((Some(request), command, transfer)),
                    Err(n_there) => self.end_command(Some(request), Ok(Answer::Moved(n_there))),
                },
            }
        }
    }

    /// The driver has carried out a command, or says why not: whoever asked can take the answer. That to a command that
    /// was abandoned or given up is dropped.
    ///
    /// # Errors
    /// `internal` when no such command runs; nothing changes then.
    pub fn complete_command(
        &mut self,
        command: CommandId,
        outcome: std::result::Result<(), CommandFailure>,
        now_ns: u64,
    ) -> Result<()> {
        let commands = &mut self.device.commands;
        let Some(mut running) = commands.running.take_if(|running| running.id == command) else {
            return Err(Error::internal(format!("{command:?} does not run")));
        };
        self.now_ns = now_ns;
        let transfer = std::mem::take(&mut running.transfer);
        // What an answer says that comes too late is so all the same.
        match (&outcome, running.request) {
            (Ok(()), _) => commands.adapters.note(&running.command),
            (Err(_), None) => {
                let again = running.command.adapters();
                again.for_each(|adapter| commands.adapters.forget(adapter));
            }
            (Err(_), Some(_)) => {}
        }
        // Whoever gave the file may have taken it back from a driver that was too late.
        let is_sound = outcome.is_ok() && !running.abandoned;
        let answer = self.end_move(transfer, is_sound);
        if !running.abandoned {
            let outcome = outcome.map_err(|failure| command_failed(&failure));
            self.end_command(running.request, outcome.map(|()| answer));
        }
        Ok(())
    }

    /// The request of a command is answered, where somebody waits for it still.
    fn end_command(&mut self, request: Option<RequestId>, outcome: Result<Answer>) {
        let Some(request) = request else { return };
        if let Some(RequestState::Commanded { answer, .. }) = self.owned.requests.get_mut(&request)
        {
            *answer = Some(outcome);
            self.ready.push(request);
        }
    }

    /// Gives up waiting for the command that runs, where it is overdue. Returns whether it is.
    pub(super) fn abandon_command(&mut self, error: impl FnOnce() -> Error) -> bool {
        let (limit_ns, now_ns) = (nanoseconds(self.config.driver_timeout), self.now_ns);
        let commands = &mut self.device.commands;
        let is_overdue = commands.due_ns(limit_ns).is_some_and(|due| due <= now_ns);
        let running = commands.running.as_mut().filter(|_| is_overdue);
        let Some(running) = running else { return false };
        running.abandoned = true;
        let request = running.request;
        self.end_command(request, Err(error()));
        true
    }

    /// The device is gone with its adapters, and with the command that it carried out. Returns the adapter that is not
    /// loaded again, where that command was the last attempt.
    pub(super) fn lose_command(&mut self, error: impl FnOnce() -> Error) -> Option<AdapterName> {
        let commands = &mut self.device.commands;
        let mut running = commands.running.take();
        let again = running.as_ref().filter(|it| it.request.is_none());
        let again = again.and_then(|it| it.command.adapters().next());
        let given_up = commands.adapters.lose(again);
        let transfer = running.as_mut().map(|it| std::mem::take(&mut it.transfer));
        self.end_move(transfer.unwrap_or_default(), false);
        if let Some(running) = running.filter(|it| !it.abandoned) {
            self.end_command(running.request, Err(error()));
        }
        given_up
    }

    /// Nobody computes with an adapter any more, and nobody will: the driver forgets it, in order with batches, before
    /// it is given commands that were entered later.
    pub fn forget_adapter(&mut self, adapter: AdapterName) {
        let commands = &mut self.device.commands;
        let running = commands.running.as_ref();
        let is_coming = running.is_some_and(|it| it.command.adapters().any(|it| it == adapter));
        commands.adapters.drop_unwanted(adapter, is_coming);
    }

    /// Whether the driver carries out a command.
    pub fn runs_command(&self) -> bool {
        self.device.commands.running.is_some()
    }

    /// Where the driver has read an adapter last; none where it does not have it.
    pub fn adapter_path(&self, adapter: AdapterName) -> Option<&str> {
        self.device.commands.adapters.path(adapter)
    }

    /// Passes that programs of a user have asked for and that are not done, and that are computed with an adapter.
    /// Others may have equal weights, which are nothing to that user.
    pub fn passes_with(&self, user: UserId, adapter: AdapterName) -> usize {
        let contexts = self.owned.contexts.iter().map(|(_, context)| context);
        let own = contexts.filter(|context| {
            let process = self.owned.process(context.process);
            process.is_ok_and(|process| process.user == user)
        });
        let passes = own.filter_map(|context| context.pass.as_ref());
        let asked = passes.filter(|pass| {
            let used = pass.adapter();
            let is_used = (used.id, used.version) == (adapter.id, adapter.version);
            is_used && !pass.is_ahead()
        });
        asked.count()
    }

    /// Every command that waits fails.
    pub(super) fn refuse_commands(&mut self, refusal: &Error) {
        for (request, _) in std::mem::take(&mut self.device.commands.waiting) {
            self.end_command(Some(request), Err(refusal.clone()));
        }
    }

    /// Commands that nobody waits for any more are not given.
    pub(super) fn forget_commands(&mut self) {
        let requests = &self.owned.requests;
        let waiting = &mut self.device.commands.waiting;
        waiting.retain(|(request, _)| requests.contains_key(request));
    }

    /// A command that waits, or runs and was not abandoned, has a request without an answer, or none where it runs.
    pub(super) fn check_commands(&self) -> std::result::Result<(), String> {
        let is_open = |request: &RequestId| match self.owned.requests.get(request) {
            Some(RequestState::Commanded { answer, .. }) => Some(answer.is_none()),
            _ => None,
        };
        let commands = &self.device.commands;
        commands.adapters.check()?;
        for (request, _) in &commands.waiting {
            if is_open(request) != Some(true) {
                return Err(format!("the command of {request:?} waits for nobody"));
            }
        }
        let waited_for = commands.running.iter().filter(|it| !it.abandoned);
        let n_running = waited_for
            .filter_map(|it| is_open(&it.request?))
            .filter(|&is_open| is_open);
        let n_open = n_running.count() + commands.waiting.len();
        let n_asked = self.owned.requests.keys().filter_map(is_open);
        let n_asked = n_asked.filter(|&is_open| is_open).count();
        if n_open != n_asked {
            return Err(format!(
                "{n_asked} commands are waited for, and {n_open} wait or run"
            ));
        }
        if commands.running.is_some() && !self.device.in_flight.is_empty() {
            return Err("a command runs beside a batch".to_owned());
        }
        Ok(())
    }
}

/// Refuses a path that no file can have. `what` lies there.
///
/// # Errors
/// `invalid-argument`.
pub(super) fn check_path(what: &str, path: Option<&str>) -> Result<()> {
    let Some(path) = path.filter(|it| it.is_empty() || it.len() > MAX_PATH_BYTES) else {
        return Ok(());
    };
    Err(refused(&format!(
        "the path of {what} has {} bytes; give 1 to {MAX_PATH_BYTES}",
        path.len()
    )))
}

fn command_failed(failure: &CommandFailure) -> Error {
    match failure {
        CommandFailure::NotServed(message) => Error::new(
            ErrorCode::Unsupported,
            format!("{message}; run the model on another driver"),
        ),
        CommandFailure::Failed(message) => Error::new(
            ErrorCode::DriverFailed,
            format!("the driver failed the command: {message}; nothing has changed, try it again"),
        ),
        CommandFailure::Refused(code, message) => Error::new(*code, message.clone()),
    }
}
