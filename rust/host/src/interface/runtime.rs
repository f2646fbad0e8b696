//! `pie:core/runtime`: what a program may know of the engine and of its own launch, and how it starts others.

use std::sync::Arc;

use pie_core::ErrorCode;
use serde::de::IgnoredAny;
use wasmtime::component::{Linker, Resource};

use super::bindings::pie::core::runtime::{self, HostChild, SpawnOptions};
use super::errors::CallResult;
use super::futures::FutureString;
use super::view::view;
use crate::Error;
use crate::limits::Limits;
use crate::process::MAX_ARGS;
use crate::process::arguments::folded;
use crate::process::child::{Child, Spawn};
use crate::process::handles::HandleTable;
use crate::process::programs::{Directory, Named};
use crate::process::record::ProcessRecord;
use crate::process::state::ProcessState;
use crate::process::surroundings::Surroundings;
use crate::program::Program;

view! {
    /// Who runs where, and the handles of its children.
    Launched { table: HandleTable, record: Arc<ProcessRecord>, surroundings: Arc<Surroundings> }
}

impl runtime::Host for Launched<'_> {
    fn models(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(self.surroundings.models.names())
    }

    fn version(&mut self) -> wasmtime::Result<String> {
        Ok(env!("CARGO_PKG_VERSION").to_owned())
    }

    fn instance_id(&mut self) -> wasmtime::Result<String> {
        Ok(self.surroundings.instance_id.clone())
    }

    fn username(&mut self) -> wasmtime::Result<String> {
        Ok(self.record.username.clone())
    }

    fn args(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(self.record.args())
    }

    fn launch_seed(&mut self) -> wasmtime::Result<u64> {
        Ok(self.record.launch_seed)
    }

    async fn spawn(
        &mut self,
        program: String,
        input: String,
        args: Vec<String>,
        options: SpawnOptions,
    ) -> CallResult<Resource<Child>> {
        // A child that nobody could hold is not started.
        self.table.make_room()?;
        check_json(&input)?;
        let spawn = Spawn {
            input,
            args,
            seed: options.seed,
            token_budget: options.token_budget,
            credits: options.credits,
            with_output: options.output,
            is_detached: options.detached,
        };
        let child = start(&program, spawn, self.record, self.surroundings).await?;
        Ok(self.table.push(child)?)
    }
}

impl HostChild for Launched<'_> {
    fn pid(&mut self, this: Resource<Child>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&this)?.pid())
    }

    fn wait(&mut self, this: Resource<Child>) -> wasmtime::Result<Resource<FutureString>> {
        let future = self.table.get(&this)?.wait();
        self.table.push_future(FutureString::Returned(future))
    }

    fn cancel(&mut self, this: Resource<Child>) -> wasmtime::Result<()> {
        self.table.get(&this)?.cancel();
        Ok(())
    }

    fn drop(&mut self, this: Resource<Child>) -> wasmtime::Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

/// Starts what a program calls `name`, where `record` is its process.
///
/// # Errors
/// Those of [`Spawner`](crate::process::child::Spawner); `unknown-program`, and those of reading it.
pub(crate) async fn start(
    name: &str,
    spawn: Spawn,
    record: &Arc<ProcessRecord>,
    surroundings: &Surroundings,
) -> Result<Child, Error> {
    let spawner = surroundings.spawner()?;
    // Nothing is looked for, or kept, for a child that is refused.
    let admitted = spawner.admit(record, spawn.is_detached)?;
    let named = named(name, record, &surroundings.directory).await?;
    let spawn = with_input(spawn, &named.program, &record.limits).await;
    spawner.spawn(record, admitted, named, spawn)
}

/// The child that is wanted, whose arguments become its input where it has no other, as on the command line.
async fn with_input(spawn: Spawn, program: &Program, limits: &Limits) -> Spawn {
    if spawn.args.is_empty() || spawn.args.len() > MAX_ARGS || spawn.input.trim() != "null" {
        return spawn;
    }
    // What is wrong with the program is told where it is launched.
    let opened = program.opened(limits).await.ok();
    let manifest = opened.and_then(|opened| opened.manifest);
    let is_text = |name: &str| {
        let manifest = manifest.as_ref();
        manifest.is_some_and(|manifest| manifest.takes_text(name))
    };
    Spawn {
        input: folded(&spawn.args, is_text),
        ..spawn
    }
}

/// What a program calls `name`, where `record` is its process: a program that it finds by itself, or an installed one.
async fn named(name: &str, record: &ProcessRecord, directory: &Directory) -> Result<Named, Error> {
    let nameable = record.kin.nameable();
    let nameable = nameable.ok_or_else(|| Error::internal("a program runs after its end"))?;
    if let Some(program) = nameable.find(name, &record.limits).await? {
        let label = name.to_owned();
        return Ok(Named { label, program });
    }
    let installed = directory.find(&record.username, name).await;
    installed.map_err(|error| match error.code {
        // A path, for example, is not the name of an installed program.
        ErrorCode::UnknownProgram | ErrorCode::InvalidName => nameable.unknown(name),
        _ => error,
    })
}

fn check_json(input: &str) -> Result<(), Error> {
    let read = serde_json::from_str::<IgnoredAny>(input);
    read.map(drop).map_err(|error| {
        let message = format!(
            "the input of a child must be a JSON text, and this is not one ({error}); give one, as `null`"
        );
        Error::new(ErrorCode::InvalidArgument, message)
    })
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    runtime::add_to_linker::<_, Launched<'static>>(linker, Launched::of)
}
