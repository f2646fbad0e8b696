//! What keeps programs apart: the wasmtime configuration, and what one instance may use.

pub(crate) mod cpu;
pub(crate) mod fault;
pub(crate) mod footprint;
pub(crate) mod memory;
pub(crate) mod pages;
pub(crate) mod panicked;
pub(crate) mod priority;
pub(crate) mod ticker;
pub(crate) mod trim;

use pie_core::ErrorCode;
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::{Error, HostConfig};

/// Core instances that one component may consist of; the Python runtime takes about 40.
const CORE_INSTANCES: u32 = 128;
/// Memories that one component may have.
const MEMORIES: u32 = 2;
/// Tables that one component may have, and elements of each; the Python runtime takes 5 tables with 20,000 elements in
/// the largest.
const TABLES: u32 = 8;
const TABLE_ELEMENTS: usize = 100_000;
/// The host's own part of the stack that a call runs on, above what the program may use.
const HOST_STACK_BYTES: usize = 1 << 20;
/// Bytes at the top of a native stack that stay when its program has ended, wiped; the rest is given back to the
/// system. The stacks of most programs are shallower.
const KEPT_STACK_BYTES: usize = 16 << 10;
/// Bytes of a table that stay when its program has ended, wiped: as much as a small program uses. The next one in its
/// place finds the page there, and the processors need not be told that it is gone.
///
/// Nothing of a memory stays. wasmtime would find the pages that were written to by `PAGEMAP_SCAN`, and passes over one
/// that is swapped out or being moved at that moment: the next program would read what another has left there.
const KEPT_TABLE_BYTES: usize = 4 << 10;
/// A memory image up to this size is mapped copy-on-write even where it has holes; the snapshot of the Python runtime
/// is 30 MB.
const DENSE_IMAGE_BYTES: u64 = 256 << 20;

/// The wasmtime engine of a host.
///
/// Instances come from a pool: memory, tables and stacks are reserved once and mapped afresh for each instance, so that
/// a launch costs microseconds and nothing of one instance is left for the next.
pub(crate) fn wasm_engine(config: &HostConfig) -> Result<Engine, Error> {
    let n_processes = config.max_processes;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(n_processes)
        .total_core_instances(n_processes.saturating_mul(CORE_INSTANCES))
        .total_memories(n_processes.saturating_mul(MEMORIES))
        .total_tables(n_processes.saturating_mul(TABLES))
        .total_stacks(n_processes)
        .async_stack_keep_resident(KEPT_STACK_BYTES)
        .table_keep_resident(KEPT_TABLE_BYTES)
        .max_unused_warm_slots(n_processes.saturating_mul(MEMORIES))
        .max_core_instances_per_component(CORE_INSTANCES)
        .max_memories_per_component(MEMORIES)
        .max_memories_per_module(MEMORIES)
        .max_tables_per_component(TABLES)
        .max_tables_per_module(TABLES)
        .table_elements(TABLE_ELEMENTS)
        .max_component_instance_size(4 << 20)
        .max_core_instance_size(4 << 20)
        .max_memory_size(usize::try_from(config.limits.memory_bytes).unwrap_or(usize::MAX));
    let mut wasm = Config::new();
    wasm.wasm_component_model(true)
        .epoch_interruption(true)
        .memory_init_cow(true)
        .memory_guaranteed_dense_image_size(DENSE_IMAGE_BYTES)
        .max_wasm_stack(config.stack_bytes)
        .async_stack_size(config.stack_bytes + HOST_STACK_BYTES)
        .async_stack_zeroing(true)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Engine::new(&wasm).map_err(|error| {
        Error::new(
            ErrorCode::InvalidConfig,
            format!("the sandbox cannot be set up with max_processes = {n_processes} and stack_bytes = {}: {error:#}", config.stack_bytes),
        )
    })
}
