//! Programs that take more of the engine's memory than it has for their user, and what is left of it when they have
//! ended.

use std::time::Duration;

use pie_host::{ErrorCode, Host, Launch, Program};

use crate::guest::{bytes, check, events, host_with, launch, plain, returned, sent, talking};

const TRUE: &str = r#"(func (export "run") (param i32 i32) (result i32) (call $ok (i32.const 1024) (i32.const 4)))"#;

/// A host in which one user may hold 72 MiB, and several together more.
fn small() -> Host {
    host_with(|config| {
        config.memory_bytes = 1 << 30;
        config.user_memory_bytes = 72 << 20;
    })
}

fn nothing_is_held(host: &Host) {
    assert_eq!(host.budget().held_bytes(), 0, "{:?}", host.budget().usage());
}

/// Private memory of this process, in bytes.
fn private_bytes() -> u64 {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let of_line = |line: &str| {
        let line = line.strip_prefix("Private_")?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    rollup.lines().filter_map(of_line).sum::<u64>() << 10
}

#[test]
fn memory_that_the_engine_has_not_is_refused_by_name() {
    let greedy = plain(
        r#"(func (export "run") (param i32 i32) (result i32)
            (loop $again (br_if $again (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
            (unreachable))"#,
    );
    let host = small();
    let failure = crate::guest::failed(&host, &greedy);
    check(
        &failure,
        "limit-engine-memory",
        &["for guests", "\"anonymous\"", "engine.memory_bytes"],
    );
    assert_eq!(returned(&host, &plain(TRUE), "null"), "true");
    nothing_is_held(&host);
}

#[test]
fn one_users_memory_is_not_anothers() {
    let hoarder = talking(
        r#"(func (export "run") (param i32 i32) (result i32)
            (drop (memory.grow (i32.const 1000)))
            (call $send (i32.const 1024) (i32.const 4))
            (call $block (call $pollable (call $receive)))
            (call $ok (i32.const 1024) (i32.const 4)))"#,
    );
    let host = small();
    let of = |user: &str| {
        let launch = Launch {
            username: Some(user.to_owned()),
            ..Launch::new(hoarder.clone(), "null")
        };
        let process = host.launch(launch).unwrap();
        let told = process.next_event(Some(crate::guest::PATIENCE));
        assert_eq!(told, Some(sent("true")));
        process
    };
    let first = of("mallory");
    let held = || host.budget().account("mallory").usage().n_bytes();
    assert!(held() >= 1000 << 16, "{}", held());
    // The second one's growth is refused, with which it goes on.
    let second = of("mallory");
    assert!(held() < 2000 << 16, "{}", held());
    let third = of("ada");
    assert!(host.budget().account("ada").usage().n_bytes() >= 1000 << 16);
    for process in [first, second, third] {
        process.close_input();
        assert_eq!(events(&process).len(), 1);
    }
    nothing_is_held(&host);
}

#[test]
fn a_memory_that_begins_large_is_charged_when_it_begins() {
    let large = Program::from(pie_host::Component::new(bytes(
        r#"(component
            (core module $main_module
              (memory (export "memory") 1500)
              (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 64))
              (func (export "run") (param i32 i32) (result i32) (unreachable)))
            (core instance $main (instantiate $main_module))
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
            (export "pie:inferlet/run@0.1.0" (instance $instance)))"#,
    )));
    let host = small();
    let failure = crate::guest::failed(&host, &large);
    check(&failure, "limit-engine-memory", &["for guests"]);
    nothing_is_held(&host);
}

#[test]
fn the_stacks_of_programs_that_recurse_are_charged_and_given_back() {
    const N: usize = 12;
    // Recurses to a depth of a few megabytes, and waits there.
    let deep = talking(
        r#"(func $deeper (param $n i32) (result i32)
              (if (result i32) (local.get $n)
                (then (i32.add (i32.const 1) (call $deeper (i32.sub (local.get $n) (i32.const 1)))))
                (else
                  (call $send (i32.const 1024) (i32.const 4))
                  (call $block (call $pollable (call $receive)))
                  (i32.const 0))))
            (func (export "run") (param i32 i32) (result i32)
              (drop (call $deeper (i32.const 300000)))
              (call $ok (i32.const 1024) (i32.const 4)))"#,
    );
    let host = host_with(|config| config.memory_bytes = 4 << 30);
    assert_eq!(returned(&host, &plain(TRUE), "null"), "true");
    let before = private_bytes();
    let processes: Vec<_> = (0..N).map(|_| launch(&host, &deep, "null")).collect();
    for process in &processes {
        let told = process.next_event(Some(crate::guest::PATIENCE));
        assert_eq!(told, Some(sent("true")));
    }
    let taken = private_bytes().saturating_sub(before);
    assert!(taken > (N as u64) << 22, "{taken}");
    // The turn in which a program began to wait is charged when it is over.
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while host.budget().held_bytes() < (N as u64) << 22 && std::time::Instant::now() < deadline {
        std::thread::yield_now();
    }
    let held = host.budget().held_bytes();
    assert!(held >= (N as u64) << 22, "{held} of {taken}");
    for process in processes {
        process.close_input();
        assert_eq!(events(&process).len(), 1);
    }
    nothing_is_held(&host);
    let left = private_bytes().saturating_sub(before);
    assert!(left < taken / 2, "{left} of {taken}");
}

#[test]
fn a_launch_for_which_there_is_no_room_is_refused() {
    let host = host_with(|config| {
        config.memory_bytes = 32 << 20;
        config.user_memory_bytes = 1 << 20;
    });
    let waits = talking(
        r#"(func (export "run") (param i32 i32) (result i32) (call $block (call $pollable (call $receive))) (unreachable))"#,
    );
    let launch = |input: &str| host.launch(Launch::new(waits.clone(), input));
    let long = format!("\"{}\"", "x".repeat(2 << 20));
    assert_eq!(
        launch(&long).unwrap_err().code,
        ErrorCode::LimitEngineMemory
    );
    let mut processes = Vec::new();
    let refused = loop {
        match launch("null") {
            Ok(process) => processes.push(process),
            Err(error) => break error,
        }
        assert!(processes.len() < 64);
    };
    assert_eq!(refused.code, ErrorCode::LimitEngineMemory);
    for process in &processes {
        process.cancel();
        assert!(!events(process).is_empty());
    }
    nothing_is_held(&host);
}
