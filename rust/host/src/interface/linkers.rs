//! All interfaces together, in the two worlds of components.

use wasmtime::Engine;
use wasmtime::component::{Component, InstancePre, Linker};
use wasmtime_wasi_http::p2::bindings::ProxyPre;

use super::bindings::ProgramPre;
use super::{
    adapter, chat, clocks, context, files, filesystem, forward, futures, generation, grammar, http,
    http_server, masks, mcp, messaging, model, poll, reasoning, runtime, sampling, scheduling,
    session, source, tokenizer, tools, types, wasi_http,
};
use crate::Error;
use crate::process::state::ProcessState;
use crate::program::artefact::{Binder, World, causes, invalid};

/// A program that is ready to be instantiated. It exports one of these at least.
pub(crate) struct Prepared {
    instance: InstancePre<ProcessState>,
    /// By `pie:inferlet/run`.
    pub(crate) program: Option<ProgramPre<ProcessState>>,
    /// By `wasi:http/incoming-handler`, which answers requests.
    pub(crate) handler: Option<ProxyPre<ProcessState>>,
}

impl Prepared {
    /// The instance to be, whatever it exports.
    pub(crate) const fn instance_pre(&self) -> &InstancePre<ProcessState> {
        &self.instance
    }
}

/// The linkers for the two kinds of components.
pub(crate) struct Linkers {
    programs: Linker<ProcessState>,
    /// For language runtimes, which get the source beside.
    runtimes: Linker<ProcessState>,
}

impl Linkers {
    /// Those of an engine.
    ///
    /// # Errors
    /// Where two interfaces have one name.
    pub(crate) fn new(engine: &Engine) -> wasmtime::Result<Self> {
        let mut programs = Linker::new(engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut programs)?;
        poll::add_to_linker(&mut programs)?;
        clocks::add_to_linker(&mut programs)?;
        filesystem::add_to_linker(&mut programs)?;
        types::add_to_linker(&mut programs)?;
        futures::add_to_linker(&mut programs)?;
        runtime::add_to_linker(&mut programs)?;
        model::add_to_linker(&mut programs)?;
        tokenizer::add_to_linker(&mut programs)?;
        context::add_to_linker(&mut programs)?;
        adapter::add_to_linker(&mut programs)?;
        sampling::add_to_linker(&mut programs)?;
        masks::add_to_linker(&mut programs)?;
        grammar::add_to_linker(&mut programs)?;
        forward::add_to_linker(&mut programs)?;
        generation::add_to_linker(&mut programs)?;
        scheduling::add_to_linker(&mut programs)?;
        session::add_to_linker(&mut programs)?;
        messaging::add_to_linker(&mut programs)?;
        files::add_to_linker(&mut programs)?;
        http::add_to_linker(&mut programs)?;
        http_server::add_to_linker(&mut programs)?;
        wasi_http::add_to_linker(&mut programs)?;
        chat::add_to_linker(&mut programs)?;
        reasoning::add_to_linker(&mut programs)?;
        tools::add_to_linker(&mut programs)?;
        mcp::add_to_linker(&mut programs)?;
        let mut runtimes = programs.clone();
        source::add_to_linker(&mut runtimes)?;
        Ok(Self { programs, runtimes })
    }
}

impl Binder for Linkers {
    type Prepared = Prepared;

    fn bind(&self, component: &Component, world: World) -> Result<Prepared, Error> {
        let linker = match world {
            World::Program => &self.programs,
            World::Runtime => &self.runtimes,
        };
        let instance = linker.instantiate_pre(component).map_err(|error| {
            invalid(format!(
                "the component does not fit the world pie:inferlet: {}",
                causes(&error)
            ))
        })?;
        let handler = ProxyPre::new(instance.clone()).ok();
        let program = match ProgramPre::new(instance.clone()) {
            Ok(program) => Some(program),
            Err(_) if handler.is_some() => None,
            Err(error) => {
                return Err(invalid(format!(
                    "the component does not fit the world pie:inferlet: {}; a program exports pie:inferlet/run@0.1.0, or wasi:http/incoming-handler to answer requests; in Rust, `#[inferlet::main]` above its entry function exports it",
                    causes(&error)
                )));
            }
        };
        Ok(Prepared {
            instance,
            program,
            handler,
        })
    }

    fn image_bytes(prepared: &Prepared) -> u64 {
        let image = prepared.instance_pre().component().image_range();
        (image.end as usize - image.start as usize) as u64
    }
}
