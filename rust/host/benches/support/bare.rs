//! The peer: bare wasmtime, pooled and synchronous, without interruption, limits, accounting or an async runtime.

use wasmtime::component::{Component, InstancePre, Linker, Val};
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store};

/// A component that can be instantiated. Whatever it imports traps when it is called.
pub struct Bare {
    engine: Engine,
    prepared: InstancePre<()>,
}

impl Bare {
    /// Compiles `wasm` for a pool of so many instances.
    pub fn new(wasm: &[u8], n_instances: u32) -> Self {
        let mut pool = PoolingAllocationConfig::new();
        pool.total_component_instances(n_instances)
            .total_core_instances(n_instances * 128)
            .total_memories(n_instances * 2)
            .total_tables(n_instances * 8)
            .total_stacks(0)
            .max_core_instances_per_component(128)
            .max_memories_per_component(2)
            .max_tables_per_component(8)
            .table_elements(100_000)
            .max_component_instance_size(4 << 20)
            .max_core_instance_size(4 << 20)
            .max_memory_size(256 << 20);
        let mut config = Config::new();
        config
            .memory_guaranteed_dense_image_size(256 << 20)
            .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        let engine = Engine::new(&config).unwrap();
        let component = Component::from_binary(&engine, wasm).unwrap();
        let mut linker: Linker<()> = Linker::new(&engine);
        linker.define_unknown_imports_as_traps(&component).unwrap();
        let prepared = linker.instantiate_pre(&component).unwrap();
        Self { engine, prepared }
    }

    /// A new instance in a store of its own.
    pub fn instantiate(&self) -> Store<()> {
        let mut store = Store::new(&self.engine, ());
        self.prepared.instantiate(&mut store).unwrap();
        store
    }

    /// A new instance and its entry `pie:inferlet/run.run`, called with `input`; gives the text that it answers.
    pub fn call(&self, input: &str) -> String {
        let mut store = Store::new(&self.engine, ());
        let instance = self.prepared.instantiate(&mut store).unwrap();
        let interface = instance
            .get_export_index(&mut store, None, "pie:inferlet/run@0.1.0")
            .unwrap();
        let function = instance
            .get_export_index(&mut store, Some(&interface), "run")
            .unwrap();
        let run = instance.get_func(&mut store, function).unwrap();
        let mut results = [Val::Bool(false)];
        let input = Val::String(input.to_owned());
        run.call(&mut store, &[input], &mut results).unwrap();
        match &results[0] {
            Val::Result(Ok(Some(value))) => match &**value {
                Val::String(text) => text.clone(),
                other => panic!("the entry answered {other:?}"),
            },
            other => panic!("the entry answered {other:?}"),
        }
    }
}
