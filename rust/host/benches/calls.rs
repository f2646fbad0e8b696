//! What a call and a launch cost, beside bare wasmtime in the same run: `cargo bench --profile release -p pie-host`.
//!
//! Ours and the peer run in turns.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    missing_docs,
    reason = "a benchmark prints, and stops at the first fault"
)]

mod support;

use std::time::{Duration, Instant};

use pie_host::{Component, Event, Host, HostConfig, Launch, Program};
use serde_json::Value;
use support::{in_turns, number, report};
use wasmtime::component::{Component as Wasm, Linker};
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store};

const CALLS: u32 = 1_000_000;

/// A program that calls `launch-seed` as often as given, and returns `true`.
fn caller(n_calls: u32) -> Vec<u8> {
    wat::parse_str(format!(
        r#"(component
  (import "pie:core/runtime@0.1.0" (instance $runtime (export "launch-seed" (func (result u64)))))
  (core func $seed (canon lower (func $runtime "launch-seed")))
  (core module $module
    (import "host" "seed" (func $seed (result i64)))
    (memory (export "memory") 1)
    (data (i32.const 64) "true")
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 128))
    (func (export "run") (param i32 i32) (result i32)
      (local $n i32)
      (local.set $n (i32.const {n_calls}))
      (block $done
        (loop $again
          (br_if $done (i32.eqz (local.get $n)))
          (drop (call $seed))
          (local.set $n (i32.sub (local.get $n) (i32.const 1)))
          (br $again)))
      (i32.store (i32.const 4) (i32.const 64))
      (i32.store (i32.const 8) (i32.const 4))
      (i32.const 0)))
  (core instance $main (instantiate $module (with "host" (instance (export "seed" (func $seed))))))
  (type $failure (record (field "kind" string) (field "message" string) (field "code" (option string)) (field "traceback" string)))
  (func $run (param "input" string) (result (result string (error $failure)))
    (canon lift (core func $main "run") (memory (core memory $main "memory")) (realloc (core func $main "realloc"))))
  (component $shim
    (type $record (record (field "kind" string) (field "message" string) (field "code" (option string)) (field "traceback" string)))
    (import "failure" (type $given (eq $record)))
    (import "run" (func $run (param "input" string) (result (result string (error $given)))))
    (export $failure "failure" (type $record))
    (export "run" (func $run) (func (param "input" string) (result (result string (error $failure))))))
  (instance $instance (instantiate $shim (with "failure" (type $failure)) (with "run" (func $run))))
  (export "pie:inferlet/run@0.1.0" (instance $instance)))"#
    ))
    .unwrap()
}

/// The world of [`caller`] on bare wasmtime: pooled and synchronous, without interruption, limits or counting.
struct Bare {
    engine: Engine,
    linker: Linker<u64>,
}

impl Bare {
    fn new() -> Self {
        let mut config = Config::new();
        let mut pool = PoolingAllocationConfig::new();
        pool.total_memories(100).max_memory_size(256 << 20);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        let engine = Engine::new(&config).unwrap();
        let mut linker = Linker::new(&engine);
        let mut runtime = linker.instance("pie:core/runtime@0.1.0").unwrap();
        runtime
            .func_wrap("launch-seed", |store, ()| Ok((*store.data(),)))
            .unwrap();
        Self { engine, linker }
    }

    /// Time of instantiating, and of the call after it.
    fn run(&self, wasm: &Wasm) -> (Duration, Duration) {
        let prepared = self.linker.instantiate_pre(wasm).unwrap();
        let started = Instant::now();
        let mut store = Store::new(&self.engine, 7_u64);
        let instance = prepared.instantiate(&mut store).unwrap();
        let instantiated = started.elapsed();
        let interface = instance
            .get_export_index(&mut store, None, "pie:inferlet/run@0.1.0")
            .unwrap();
        let function = instance
            .get_export_index(&mut store, Some(&interface), "run")
            .unwrap();
        let run = instance.get_func(&mut store, function).unwrap();
        let mut results = [wasmtime::component::Val::Bool(false)];
        let called = Instant::now();
        run.call(
            &mut store,
            &[wasmtime::component::Val::String("null".to_owned())],
            &mut results,
        )
        .unwrap();
        (instantiated, called.elapsed())
    }
}

/// Time from the launch to the entry of the program, and from the launch to its last event.
fn launch(host: &Host, program: &Program) -> (Duration, Duration) {
    let launch = Launch {
        seed: Some(7),
        ..Launch::new(program.clone(), "null")
    };
    let started = Instant::now();
    let process = host.launch(launch).unwrap();
    assert_eq!(
        process.next_event(None),
        Some(Event::Return("true".to_owned()))
    );
    (process.launch_time().unwrap(), started.elapsed())
}

fn main() {
    let rounds = number("rounds", 21);
    let host = Host::new(HostConfig::default()).unwrap();
    let bare = Bare::new();
    let per_call = |time: Duration| time.as_secs_f64() * 1e9 / f64::from(CALLS);

    let many: Program = Component::new(caller(CALLS)).into();
    let many_bare = Wasm::from_binary(&bare.engine, &caller(CALLS)).unwrap();
    let ours = || {
        let (entered, ended) = launch(&host, &many);
        per_call(ended - entered)
    };
    let samples = in_turns(rounds, ours, || per_call(bare.run(&many_bare).1));
    report("a getter over WIT", "ns", samples, Value::Null);

    let none: Program = Component::new(caller(0)).into();
    let none_bare = Wasm::from_binary(&bare.engine, &caller(0)).unwrap();
    let ours = || launch(&host, &none).0.as_secs_f64() * 1e6;
    let samples = in_turns(rounds, ours, || bare.run(&none_bare).0.as_secs_f64() * 1e6);
    report(
        "launch to entry, a minimal component",
        "us",
        samples,
        Value::Null,
    );
}
