//! Runs a module up to its launch, so that an instance begins with what is then in its memory.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use anyhow::{Context as _, Result, anyhow, bail};
use wasmi::{Engine, Error, ExternType, Func, Instance, Linker, Module, Store, Val};
use wasmtime_wizer::{InstanceState, SnapshotVal, ValType, Wizer};

/// What the module exports to be run here; the export is gone afterwards.
const INITIALIZE: &str = "initialize";

/// The module with the memory that it has once `initialize` has run, which calls nothing of the engine.
pub(crate) fn initialized(module: &[u8]) -> Result<Vec<u8>> {
    let mut wizer = Wizer::new();
    wizer.init_func(INITIALIZE);
    let (context, instrumented) = wizer
        .instrument(module)
        .map_err(|error| anyhow!("{error:#}"))?;
    let mut ran = Ran::new(&instrumented)?;
    let mut snapshot = pin!(wizer.snapshot(&context, &mut ran));
    // An instance at hand answers at once.
    match snapshot
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(module) => module.map_err(|error| anyhow!("{error:#}")),
        Poll::Pending => bail!("the snapshot waits for an instance that has ended"),
    }
}

/// The instance after its `initialize`.
struct Ran {
    store: Store<()>,
    instance: Instance,
}

impl Ran {
    fn new(module: &[u8]) -> Result<Self> {
        let engine = Engine::default();
        let module = Module::new(&engine, module)?;
        let mut store = Store::new(&engine, ());
        let mut linker = Linker::new(&engine);
        for import in module.imports() {
            let ExternType::Func(signature) = import.ty() else {
                bail!("the runtime imports {import:?}, which is not a function");
            };
            let (of, name) = (import.module(), import.name());
            let refusal = format!("`{INITIALIZE}` calls {of} {name}; it may call nothing");
            let refuses = Func::new(&mut store, signature.clone(), move |_, _, _| {
                Err(Error::new(refusal.clone()))
            });
            linker.define(of, name, refuses)?;
        }
        let instance = linker.instantiate_and_start(&mut store, &module)?;
        instance
            .get_typed_func::<(), ()>(&store, INITIALIZE)?
            .call(&mut store, ())
            .context("the runtime could not be initialized")?;
        Ok(Self { store, instance })
    }
}

impl InstanceState for Ran {
    async fn global_get(&mut self, name: &str, _type_hint: ValType) -> SnapshotVal {
        let global = self.instance.get_global(&self.store, name);
        match global.map(|global| global.get(&self.store)) {
            Some(Val::I32(value)) => SnapshotVal::I32(value),
            Some(Val::I64(value)) => SnapshotVal::I64(value),
            Some(Val::F32(value)) => SnapshotVal::F32(value.to_bits()),
            Some(Val::F64(value)) => SnapshotVal::F64(value.to_bits()),
            other => unreachable!("{name} is {other:?} and no number"),
        }
    }

    async fn memory_contents(&mut self, name: &str, contents: impl FnOnce(&[u8]) + Send) {
        match self.instance.get_memory(&self.store, name) {
            Some(memory) => contents(memory.data(&self.store)),
            None => unreachable!("the instrumented module exports no memory {name}"),
        }
    }
}
