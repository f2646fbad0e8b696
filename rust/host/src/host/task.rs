//! The life of a process: one task, from the launch to the last event.

use std::sync::Arc;
use std::time::Duration;

use pie_core::ErrorCode;
use serde::de::IgnoredAny;
use wasmtime::Store;

use super::handling;
use super::state::HostState;
use super::stores::new_store;
use crate::Error;
use crate::errors::stopped;
use crate::event::{Event, Failure};
use crate::http_in::answered_nothing;
use crate::interface::bindings::ProgramPre;
use crate::interface::bindings::exports::pie::inferlet::run;
use crate::interface::linkers::Prepared;
use crate::json_depth::{MAX_DEPTH, nests_too_deep};
use crate::process::handles::HandleTable;
use crate::process::queue::EventQueue;
use crate::process::record::ProcessRecord;
use crate::process::state::ProcessState;
use crate::process::stdio::Output;
use crate::program::Program;
use crate::program::opened::Code;
use crate::program::source::RuntimeInput;
use crate::sandbox::cpu::Metered;
use crate::sandbox::fault;

/// The interface by which a runtime checks sources.
const CHECK_INTERFACE: &str = "pie:inferlet/check@0.1.0";

/// Reports the end of a process once, whatever becomes of its task: also where it panics, or is dropped with the
/// threads of the host.
pub(super) struct EndReporter {
    host: Arc<HostState>,
    record: Arc<ProcessRecord>,
    is_reported: bool,
}

impl EndReporter {
    /// Of a process that lives from now on.
    pub(super) fn new(host: Arc<HostState>, record: Arc<ProcessRecord>) -> Self {
        Self {
            host,
            record,
            is_reported: false,
        }
    }

    /// Closes the outputs and reports how the process ended. One whose last output has no room has failed.
    fn report(&mut self, outcome: Result<String, Failure>, outputs: &[Output; 2]) {
        let mut closed = Ok(());
        for output in outputs {
            closed = closed.and(output.finish());
        }
        // Before it is told anywhere that the process has ended.
        closed = closed.and(self.record.events.pass_rest());
        self.report_last(match (outcome, closed) {
            (Ok(value), Ok(())) => Event::Return(value),
            (Ok(_), Err(error)) => Event::Error(error.into()),
            (Err(failure), _) => Event::Error(failure),
        });
    }

    fn report_last(&mut self, last: Event) {
        if std::mem::replace(&mut self.is_reported, true) {
            return;
        }
        self.host.live.end(&self.record);
        let standstill = &self.host.surroundings.standstill;
        if let Event::Error(failure) = &last {
            let code = failure.code.as_ref().unwrap_or(&failure.kind);
            standstill.fail(self.record.pid, code);
        }
        let last = self.record.ended(last);
        standstill.leave(self.record.pid);
        self.record.events.finish(last);
    }
}

impl Drop for EndReporter {
    fn drop(&mut self) {
        let error = if std::thread::panicking() {
            Error::internal(
                "the engine met a fault of its own while the program ran; what it printed on stderr says more",
            )
        } else {
            stopped()
        };
        self.report_last(Event::Error(Failure::from(error)));
    }
}

/// Runs a program to its end and reports that. Before the last event can be read, the store is dropped, and everything
/// that the process held in the engine is released.
pub(super) async fn run(mut reporter: EndReporter, program: Program, input: String) {
    let (host, record) = (reporter.host.clone(), reporter.record.clone());
    let outputs = [
        Output::stdout(record.clone()),
        Output::stderr(record.clone()),
    ];
    let program = Metered::new(
        record.cpu.clone(),
        execute(host, record.clone(), program, input, &outputs),
    );
    let outcome = tokio::select! {
        biased;
        reason = record.stopped() => Err(Failure::from(reason)),
        error = past_wall_limit(record.limits.wall) => Err(Failure::from(error)),
        outcome = program => outcome.and_then(|value| answered(&record, value)),
    };
    let outcome = outcome.and_then(|value| {
        // What it wrote itself comes before a warning.
        record.events.pass_rest()?;
        Ok(value)
    });
    if outcome.is_ok() {
        record.warn_at_end();
    }
    record.end_children().await;
    reporter.report(outcome, &outputs);
}

/// What a program returned, unless it was to answer requests and has failed to.
fn answered(record: &ProcessRecord, value: String) -> Result<String, Failure> {
    match &record.requests {
        Some(requests) if requests.has_only_failed() => Err(answered_nothing().into()),
        _ => Ok(value),
    }
}

/// Checks a program without running any of it, and reports what is wrong with it as its failure: `null` where nothing
/// is.
pub(super) async fn check(mut reporter: EndReporter, program: Program) {
    let (host, record) = (reporter.host.clone(), reporter.record.clone());
    let outputs = [
        Output::stdout(record.clone()),
        Output::stderr(record.clone()),
    ];
    let work = Metered::new(
        record.cpu.clone(),
        examine(host, record.clone(), program, &outputs),
    );
    let outcome = tokio::select! {
        biased;
        reason = record.stopped() => Err(Failure::from(reason)),
        outcome = work => outcome,
    };
    reporter.report(outcome.map(|()| "null".to_owned()), &outputs);
}

/// Instantiates the program and calls its entry: gives the return value, a JSON text.
async fn execute(
    host: Arc<HostState>,
    record: Arc<ProcessRecord>,
    program: Program,
    input: String,
    outputs: &[Output; 2],
) -> Result<String, Failure> {
    let opened = program.opened(&host.config.limits).await?;
    let input = match &opened.manifest {
        Some(manifest) => manifest.checked_input(input)?,
        None => input,
    };
    let (prepared, source, is_own) = prepare(&host, &opened.code, &record.username).await?;
    let name = opened.name();
    // What a running process holds of its program is what it can start again.
    drop((program, opened));
    let (stack_bytes, is_source) = (host.config.stack_bytes, source.is_some());
    if let Some(handler) = handling::handler(&prepared, &record) {
        let handled = handling::HandledProcess {
            host: &host,
            record: &record,
            program: &name,
            outputs,
        };
        return handled.answer_all(handler).await;
    }
    let Some(pre) = &prepared.program else {
        return Err(Error::internal("a program was bound that exports nothing").into());
    };
    let mut store = new_store(&host, record.clone(), name, source, outputs);
    if is_own {
        store.data_mut().memory.share_image();
    }
    let result = call(pre, &mut store, &record, &input).await;
    let refused = store.data().memory.refused().cloned();
    match result {
        Ok(Ok(value)) => checked_json(value).map_err(Failure::from),
        Ok(Err(failure)) => {
            let mut failure = program_failure(failure, &store.data().table);
            // A language runtime knows that memory was refused, and the engine what the limit was.
            if let Some(refused) = refused
                && failure.code.as_deref() == Some(ErrorCode::LimitMemory.as_str())
            {
                let error = refused.error(&record.limits);
                failure.code = Some(error.code.as_str().to_owned());
                failure.message = error.message;
            }
            Err(failure)
        }
        Err(error) => {
            let ended = fault::Ended {
                stack_bytes,
                refused,
                is_source,
                panic: outputs[1].panic(),
            };
            Err(fault::describe(&error, &record.limits, ended))
        }
    }
}

/// Checks a program: its component, or its sources through the runtime of their language.
async fn examine(
    host: Arc<HostState>,
    record: Arc<ProcessRecord>,
    program: Program,
    outputs: &[Output; 2],
) -> Result<(), Failure> {
    let opened = program.opened(&host.config.limits).await?;
    let (prepared, source, is_own) = prepare(&host, &opened.code, &record.username).await?;
    let Some(source) = source else {
        return Ok(());
    };
    let stack_bytes = host.config.stack_bytes;
    let compile = host.config.limits.compile;
    let mut store = new_store(&host, record.clone(), opened.name(), Some(source), outputs);
    if is_own {
        store.data_mut().memory.share_image();
    }
    let result = tokio::time::timeout(compile, check_source(&prepared, &mut store)).await;
    let refused = store.data().memory.refused().cloned();
    let Ok(result) = result else {
        return Err(too_long_to_check(compile).into());
    };
    let ended = fault::Ended {
        stack_bytes,
        refused: refused.clone(),
        is_source: true,
        panic: None,
    };
    let fault = |error| fault::describe(&error, &record.limits, ended);
    match (result.map_err(fault)?, refused) {
        (Ok(()), _) => Ok(()),
        (Err(_), Some(refused)) => Err(refused.error(&record.limits).into()),
        (Err(message), None) => Err(Error::new(ErrorCode::InvalidProgram, message).into()),
    }
}

/// Calls the export `check` of a runtime. A runtime without such an export finds nothing wrong.
async fn check_source(
    prepared: &Prepared,
    store: &mut Store<ProcessState>,
) -> wasmtime::Result<Result<(), String>> {
    let runtime = prepared
        .instance_pre()
        .instantiate_async(&mut *store)
        .await?;
    let interface = runtime.get_export_index(&mut *store, None, CHECK_INTERFACE);
    let Some(function) = interface
        .and_then(|interface| runtime.get_export_index(&mut *store, Some(&interface), "check"))
    else {
        return Ok(Ok(()));
    };
    let check = runtime.get_typed_func::<(), (Result<(), String>,)>(&mut *store, function)?;
    let (answer,) = check.call_async(&mut *store, ()).await?;
    Ok(answer)
}

async fn call(
    pre: &ProgramPre<ProcessState>,
    store: &mut Store<ProcessState>,
    record: &ProcessRecord,
    input: &str,
) -> wasmtime::Result<Result<String, run::Failure>> {
    let instance = pre.instantiate_async(&mut *store).await?;
    record.note_entry();
    instance
        .pie_inferlet_run()
        .call_run(&mut *store, input)
        .await
}

/// The code, its sources where a language runtime runs them, and whether that runtime is the engine's own.
async fn prepare(
    host: &HostState,
    code: &Code,
    user: &str,
) -> Result<(Arc<Prepared>, Option<RuntimeInput>, bool), Failure> {
    let source = match code {
        Code::Component(_) => None,
        Code::Source { source, .. } => Some(host.programs.source(source, user).await?),
    };
    let prepared = host.programs.code(code, user).await?;
    Ok((prepared, source, host.programs.is_run_by_own(code).await?))
}

async fn past_wall_limit(limit: Option<Duration>) -> Error {
    let Some(limit) = limit else {
        return std::future::pending().await;
    };
    tokio::time::sleep(limit).await;
    Error::new(
        ErrorCode::LimitWall,
        format!(
            "the program ran longer than limits.wall_s = {} s; do less in one launch, or raise the limit",
            limit.as_secs_f64()
        ),
    )
}

fn too_long_to_check(limit: Duration) -> Error {
    Error::new(
        ErrorCode::LimitCompile,
        format!(
            "checking the sources of the program took longer than limits.compile_s = {} s; make them smaller, or raise the limit",
            limit.as_secs_f64()
        ),
    )
}

fn checked_json(value: String) -> Result<String, Error> {
    match serde_json::from_str::<IgnoredAny>(&value) {
        Ok(_) if nests_too_deep(&value) => Err(Error::new(
            ErrorCode::InvalidOutput,
            format!(
                "the program returned a value that is nested more than {MAX_DEPTH} deep; return it flatter, or as a text"
            ),
        )),
        Ok(_) => Ok(value),
        Err(error) => Err(Error::new(
            ErrorCode::InvalidOutput,
            format!(
                "the program returned a text that is not JSON ({error}): {}",
                beginning(&value)
            ),
        )),
    }
}

/// The first characters of a text, quoted.
fn beginning(text: &str) -> String {
    const SHOWN: usize = 80;
    let shown: String = text.chars().take(SHOWN).collect();
    format!(
        "{shown:?}{}",
        if shown.len() < text.len() { "..." } else { "" }
    )
}

/// Characters of the type of an exception that are kept: it stands in lists and logs.
const MAX_KIND_CHARS: usize = 256;

fn program_failure(failure: run::Failure, table: &HandleTable) -> Failure {
    let run::Failure {
        kind,
        message,
        code,
        traceback,
    } = failure;
    Failure {
        kind: kind.chars().take(MAX_KIND_CHARS).collect(),
        code: Some(table.code(code.as_deref()).as_str().to_owned()),
        message,
        traceback,
    }
}
