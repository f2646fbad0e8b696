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

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use pie_host::{Component, Event, Host, HostConfig, Launch, Program};
use serde_json::Value;
use support::{in_turns, number, report};
use wasmtime::component::{Component as Wasm, Func, Instance, Linker, Resource, ResourceType, Val};
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store};

const CALLS: u32 = 1_000_000;

/// What a program calls in a loop.
#[derive(Clone, Copy)]
struct Called {
    /// The imports of the component, which end with the core function `$call`.
    imports: &'static str,
    /// The type of that function, and how it is called for the handle `$handle`.
    module: [&'static str; 2],
    /// What is called once before, for the handle.
    before: [&'static str; 2],
}

const GETTER: Called = Called {
    imports: r#"
  (import "pie:core/runtime@0.1.0" (instance $runtime (export "launch-seed" (func (result u64)))))
  (core func $call (canon lower (func $runtime "launch-seed")))"#,
    module: ["(result i64)", "(drop (call $call))"],
    before: ["", ""],
};

/// A wait for what happened before: a call that may be suspended, and is not.
const RESOLVED: Called = Called {
    imports: r#"
  (import "wasi:io/poll@0.2.12" (instance $poll
    (export "pollable" (type $pollable (sub resource)))
    (export "[method]pollable.block" (func (param "self" (borrow $pollable))))))
  (alias export $poll "pollable" (type $pollable))
  (import "wasi:clocks/monotonic-clock@0.2.12" (instance $clock
    (alias outer 1 $pollable (type $given))
    (export "pollable" (type $timer (eq $given)))
    (export "subscribe-duration" (func (param "when" u64) (result (own $timer))))))
  (core func $subscribe (canon lower (func $clock "subscribe-duration")))
  (core func $call (canon lower (func $poll "[method]pollable.block")))"#,
    module: ["(param i32)", "(call $call (local.get $handle))"],
    before: [
        r#"(export "subscribe" (func $subscribe))"#,
        r#"(import "host" "subscribe" (func $subscribe (param i64) (result i32)))"#,
    ],
};

/// A program that calls something as often as given, and returns `true`.
fn caller(called: Called, n_calls: u32) -> Vec<u8> {
    let Called {
        imports,
        module: [of, call],
        before: [subscribe, import],
    } = called;
    let handle = match subscribe.is_empty() {
        true => "(i32.const 0)",
        false => "(call $subscribe (i64.const 0))",
    };
    wat::parse_str(format!(
        r#"(component{imports}
  (core module $module
    (import "host" "call" (func $call {of}))
    {import}
    (memory (export "memory") 1)
    (data (i32.const 64) "true")
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 128))
    (func (export "run") (param i32 i32) (result i32)
      (local $n i32) (local $handle i32)
      (local.set $handle {handle})
      (local.set $n (i32.const {n_calls}))
      (block $done
        (loop $again
          (br_if $done (i32.eqz (local.get $n)))
          {call}
          (local.set $n (i32.sub (local.get $n) (i32.const 1)))
          (br $again)))
      (i32.store (i32.const 4) (i32.const 64))
      (i32.store (i32.const 8) (i32.const 4))
      (i32.const 0)))
  (core instance $main (instantiate $module (with "host" (instance (export "call" (func $call)) {subscribe}))))
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

/// The world of [`caller`] on bare wasmtime: pooled, without interruption, limits or counting.
struct Bare {
    engine: Engine,
    linker: Linker<u64>,
}

/// What stands behind the handle of a wait that is over.
struct Past;

/// Runs what never waits.
fn ready<T>(work: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(work).poll(&mut context) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("it waits"),
    }
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
        let pollable = ResourceType::host::<Past>();
        let mut poll = linker.instance("wasi:io/poll@0.2.12").unwrap();
        poll.resource("pollable", pollable, |_, _| Ok(())).unwrap();
        poll.func_wrap_async("[method]pollable.block", |_, (_,): (Resource<Past>,)| {
            Box::new(async { Ok(()) })
        })
        .unwrap();
        let mut clock = linker
            .instance("wasi:clocks/monotonic-clock@0.2.12")
            .unwrap();
        clock.resource("pollable", pollable, |_, _| Ok(())).unwrap();
        clock
            .func_wrap("subscribe-duration", |_, (_,): (u64,)| {
                Ok((Resource::<Past>::new_own(1),))
            })
            .unwrap();
        Self { engine, linker }
    }

    /// Time of a call that may be suspended.
    fn run_async(&self, wasm: &Wasm) -> Duration {
        let prepared = self.linker.instantiate_pre(wasm).unwrap();
        ready(async {
            let mut store = Store::new(&self.engine, 7_u64);
            let instance = prepared.instantiate_async(&mut store).await.unwrap();
            let run = Self::entry(&mut store, &instance);
            let mut results = [Val::Bool(false)];
            let called = Instant::now();
            run.call_async(&mut store, &[Val::String("null".to_owned())], &mut results)
                .await
                .unwrap();
            called.elapsed()
        })
    }

    fn entry(store: &mut Store<u64>, instance: &Instance) -> Func {
        let interface = instance
            .get_export_index(&mut *store, None, "pie:inferlet/run@0.1.0")
            .unwrap();
        let function = instance
            .get_export_index(&mut *store, Some(&interface), "run")
            .unwrap();
        instance.get_func(&mut *store, function).unwrap()
    }

    /// Time of instantiating, and of the call after it.
    fn run(&self, wasm: &Wasm) -> (Duration, Duration) {
        let prepared = self.linker.instantiate_pre(wasm).unwrap();
        let started = Instant::now();
        let mut store = Store::new(&self.engine, 7_u64);
        let instance = prepared.instantiate(&mut store).unwrap();
        let instantiated = started.elapsed();
        let run = Self::entry(&mut store, &instance);
        let mut results = [Val::Bool(false)];
        let called = Instant::now();
        run.call(&mut store, &[Val::String("null".to_owned())], &mut results)
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

    let time_of = |called: Called| {
        let program: Program = Component::new(caller(called, CALLS)).into();
        let host = &host;
        move || {
            let (entered, ended) = launch(host, &program);
            per_call(ended - entered)
        }
    };
    let bare_of = |called: Called| {
        let program = caller(called, CALLS);
        Wasm::from_binary(&bare.engine, &program).unwrap()
    };
    let many = bare_of(GETTER);
    let peer = || per_call(bare.run(&many).1);
    let samples = in_turns(rounds, time_of(GETTER), peer);
    report("a getter over WIT", "ns", samples, Value::Null);

    let many = bare_of(RESOLVED);
    let peer = || per_call(bare.run_async(&many));
    let samples = in_turns(rounds, time_of(RESOLVED), peer);
    report(
        "an awaited call that is resolved",
        "ns",
        samples,
        Value::Null,
    );

    let none: Program = Component::new(caller(GETTER, 0)).into();
    let none_bare = Wasm::from_binary(&bare.engine, &caller(GETTER, 0)).unwrap();
    let ours = || launch(&host, &none).0.as_secs_f64() * 1e6;
    let samples = in_turns(rounds, ours, || bare.run(&none_bare).0.as_secs_f64() * 1e6);
    report(
        "launch to entry, a minimal component",
        "us",
        samples,
        Value::Null,
    );
}
