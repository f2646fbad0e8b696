//! Programs in component text, and what the tests do with them.

use std::time::Duration;

use pie_host::{Component, Event, Failure, Form, Host, HostConfig, Launch, Process, Program};

/// How long a test waits for an event before it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Imports of `pie:core/session`, for [`component`].
pub(crate) const SESSION: &str = r#"
  (import "wasi:io/poll@0.2.12" (instance $poll (export "pollable" (type (sub resource)))
    (export "[method]pollable.block" (func (param "self" (borrow 0))))))
  (alias export $poll "pollable" (type $pollable))
  (import "pie:core/types@0.1.0" (instance $types
    (type $e (record (field "code" string) (field "message" string) (field "details" string)))
    (export "error" (type (eq $e)))))
  (alias export $types "error" (type $error))
  (import "pie:core/futures@0.1.0" (instance $futures
    (alias outer 1 $pollable (type $p)) (export "pollable" (type $pollable (eq $p)))
    (alias outer 1 $error (type $e)) (export "error" (type $error (eq $e)))
    (export "future-string" (type $future (sub resource)))
    (export "[method]future-string.pollable" (func (param "self" (borrow $future)) (result (own $pollable))))
    (export "[method]future-string.get" (func (param "self" (borrow $future)) (result (option (result string (error $error))))))))
  (alias export $futures "future-string" (type $future))
  (import "pie:core/session@0.1.0" (instance $session
    (alias outer 1 $future (type $f)) (export "future-string" (type $future (eq $f)))
    (export "send" (func (param "message" string)))
    (export "send-json" (func (param "value" string)))
    (export "print" (func (param "text" string)))
    (export "message" (func (param "text" string)))
    (export "receive" (func (result (own $future))))))
  (core module $libc_module
    (memory (export "memory") 1 2000)
    (global $free (mut i32) (i32.const 32768))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
      (global.set $free (i32.add (local.get $at) (local.get 3)))
      (local.get $at)))
  (core instance $libc (instantiate $libc_module))
  (core func $send (canon lower (func $session "send") (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
  (core func $send_json (canon lower (func $session "send-json") (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
  (core func $print (canon lower (func $session "print") (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
  (core func $message (canon lower (func $session "message") (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
  (core func $receive (canon lower (func $session "receive")))
  (core func $pollable (canon lower (func $futures "[method]future-string.pollable")))
  (core func $get (canon lower (func $futures "[method]future-string.get") (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
  (core func $block (canon lower (func $poll "[method]pollable.block")))
  (core func $drop_pollable (canon resource.drop $pollable))
  (core func $drop_future (canon resource.drop $future))
"#;

/// The arguments with which a program that uses [`SESSION`] is instantiated, and its imports as a core module sees
/// them.
pub(crate) const SESSION_ARGUMENTS: &str = r#"(with "libc" (instance $libc)) (with "host" (instance
    (export "send" (func $send)) (export "send-json" (func $send_json)) (export "print" (func $print)) (export "message" (func $message))
    (export "receive" (func $receive)) (export "pollable" (func $pollable)) (export "get" (func $get))
    (export "block" (func $block)) (export "drop-pollable" (func $drop_pollable)) (export "drop-future" (func $drop_future))))"#;
pub(crate) const SESSION_IMPORTS: &str = r#"
    (import "libc" "memory" (memory 1))
    (import "host" "send" (func $send (param i32 i32)))
    (import "host" "send-json" (func $send_json (param i32 i32)))
    (import "host" "print" (func $print (param i32 i32)))
    (import "host" "message" (func $message (param i32 i32)))
    (import "host" "receive" (func $receive (result i32)))
    (import "host" "pollable" (func $pollable (param i32) (result i32)))
    (import "host" "get" (func $get (param i32 i32)))
    (import "host" "block" (func $block (param i32)))
    (import "host" "drop-pollable" (func $drop_pollable (param i32)))
    (import "host" "drop-future" (func $drop_future (param i32)))"#;

/// Waits for a message, for [`talking`], sends it back and returns `true`; in the place of a message that could not be
/// had, the code of its error.
pub(crate) const ECHO: &str = r#"
    (func (export "run") (param i32 i32) (result i32)
      (local $future i32) (local $pollable i32)
      (local.set $future (call $receive))
      (local.set $pollable (call $pollable (local.get $future)))
      (call $block (local.get $pollable))
      (call $drop_pollable (local.get $pollable))
      (call $get (local.get $future) (i32.const 64))
      (call $drop_future (local.get $future))
      ;; option at 64, result at 68, then the text or the code of the error
      (call $send (i32.load (i32.const 72)) (i32.load (i32.const 76)))
      (call $ok (i32.const 1024) (i32.const 4)))"#;

/// A memory and an allocator, for programs without imports.
const LIBC: &str = r#"
  (core module $libc_module
    (memory (export "memory") 1)
    (global $free (mut i32) (i32.const 32768))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
      (global.set $free (i32.add (local.get $at) (local.get 3)))
      (local.get $at)))
  (core instance $libc (instantiate $libc_module))
"#;

/// A program without imports whose `run` has the given body: the input lies at local 0 with the length in local 1, and
/// the result is the address of a `result<string, failure>`.
pub(crate) fn plain(body: &str) -> Program {
    Component::new(plain_bytes(body)).into()
}

/// The bytes of [`plain`].
pub(crate) fn plain_bytes(body: &str) -> Vec<u8> {
    component(
        LIBC,
        r#"(with "libc" (instance $libc))"#,
        r#"(import "libc" "memory" (memory 1))"#,
        body,
    )
}

/// The event of a text that a program sent.
pub(crate) fn sent(text: &str) -> Event {
    Event::Sent(text.to_owned(), Form::Text)
}

/// A program that uses the session, with the functions of [`SESSION_IMPORTS`].
pub(crate) fn talking(body: &str) -> Program {
    Component::new(talking_bytes(body)).into()
}

/// The bytes of [`talking`].
pub(crate) fn talking_bytes(body: &str) -> Vec<u8> {
    component(SESSION, SESSION_ARGUMENTS, SESSION_IMPORTS, body)
}

fn component(imports: &str, arguments: &str, core_imports: &str, body: &str) -> Vec<u8> {
    bytes(&format!(
        r#"(component {imports}
  (core module $main_module {core_imports}
    ;; Texts that programs send or return.
    (data (i32.const 1024) "true" "not json" "\"\ff\"" "hello")
    (func $ok (param $at i32) (param $length i32) (result i32)
      (i32.store (i32.const 0) (i32.const 0))
      (i32.store (i32.const 4) (local.get $at))
      (i32.store (i32.const 8) (local.get $length))
      (i32.const 0))
    {body})
  (core instance $main (instantiate $main_module {arguments}))
  (type $failure (record (field "kind" string) (field "message" string) (field "code" (option string)) (field "traceback" string)))
  (func $run (param "input" string) (result (result string (error $failure)))
    (canon lift (core func $main "run") (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
  (component $shim
    (type $record (record (field "kind" string) (field "message" string) (field "code" (option string)) (field "traceback" string)))
    (import "failure" (type $given (eq $record)))
    (import "run" (func $run (param "input" string) (result (result string (error $given)))))
    (export $failure "failure" (type $record))
    (export "run" (func $run) (func (param "input" string) (result (result string (error $failure))))))
  (instance $instance (instantiate $shim (with "failure" (type $failure)) (with "run" (func $run))))
  (export "pie:inferlet/run@0.1.0" (instance $instance)))"#
    ))
}

/// Component text as a binary.
pub(crate) fn bytes(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

/// A host with the default configuration.
pub(crate) fn host() -> Host {
    Host::new(HostConfig::default()).unwrap()
}

/// A host whose configuration `change` has changed.
pub(crate) fn host_with(change: impl FnOnce(&mut HostConfig)) -> Host {
    let mut config = HostConfig::default();
    change(&mut config);
    Host::new(config).unwrap()
}

/// Launches a program with an input.
pub(crate) fn launch(host: &Host, program: &Program, input: &str) -> Process {
    let launch = Launch {
        seed: Some(7),
        ..Launch::new(program.clone(), input)
    };
    host.launch(launch).unwrap()
}

/// Every event of a process, to the last.
pub(crate) fn events(process: &Process) -> Vec<Event> {
    let mut events = Vec::new();
    while !process.is_drained() {
        match process.next_event(Some(PATIENCE)) {
            Some(event) => events.push(event),
            None => assert!(
                process.is_drained(),
                "no event within {PATIENCE:?} after {events:?}"
            ),
        }
    }
    events
}

/// The return value of a program without other events.
pub(crate) fn returned(host: &Host, program: &Program, input: &str) -> String {
    match events(&launch(host, program, input)).as_slice() {
        [Event::Return(value)] => value.clone(),
        other => panic!("{other:?}"),
    }
}

/// The error with which a program ended, after no other events.
pub(crate) fn failed(host: &Host, program: &Program) -> Failure {
    failure_of(&launch(host, program, "null"))
}

/// The error with which a process ended, after no other events.
pub(crate) fn failure_of(process: &Process) -> Failure {
    match events(process).as_slice() {
        [Event::Error(failure)] => failure.clone(),
        other => panic!("{other:?}"),
    }
}

/// Checks the code of a failure, and that its message holds each of `parts`.
pub(crate) fn check(failure: &Failure, code: &str, parts: &[&str]) {
    assert_eq!(failure.code.as_deref(), Some(code), "{failure:?}");
    for part in parts {
        assert!(
            failure.message.contains(part),
            "{part:?} is missing in {:?}",
            failure.message
        );
    }
}
