//! Hostile programs: each meets a limit that names itself, and the host serves on.

use std::time::Duration;

use crate::guest::{check, failed, failure_of, host, host_with, launch, plain, returned, talking};

const TRUE: &str = r#"(func (export "run") (param i32 i32) (result i32) (call $ok (i32.const 1024) (i32.const 4)))"#;
const LOOP: &str =
    r#"(func (export "run") (param i32 i32) (result i32) (loop $again (br $again)) (unreachable))"#;

#[test]
fn an_endless_loop_meets_the_limit_of_processor_time() {
    let host = host_with(|config| config.limits.cpu = Some(Duration::from_millis(30)));
    check(
        &failed(&host, &plain(LOOP)),
        "limit-cpu",
        &["limits.cpu_s = 0.03", "raise the limit"],
    );
    assert_eq!(returned(&host, &plain(TRUE), "null"), "true");
}

#[test]
fn an_endless_loop_meets_the_limit_of_time() {
    let host = host_with(|config| config.limits.wall = Some(Duration::from_millis(30)));
    check(
        &failed(&host, &plain(LOOP)),
        "limit-wall",
        &["limits.wall_s = 0.03"],
    );
}

#[test]
fn waiting_costs_no_processor_time_but_time() {
    let host = host_with(|config| {
        config.limits.cpu = Some(Duration::from_secs(5));
        config.limits.wall = Some(Duration::from_millis(100));
    });
    let waits = talking(
        r#"(func (export "run") (param i32 i32) (result i32) (call $block (call $pollable (call $receive))) (unreachable))"#,
    );
    let process = launch(&host, &waits, "null");
    check(&failure_of(&process), "limit-wall", &[]);
    assert!(
        process.cpu() < Duration::from_millis(90),
        "{:?}",
        process.cpu()
    );
}

#[test]
fn many_endless_loops_leave_room_for_others() {
    let host = host_with(|config| config.worker_threads = 2);
    let spinning: Vec<_> = (0..8)
        .map(|_| launch(&host, &plain(LOOP), "null"))
        .collect();
    assert_eq!(returned(&host, &plain(TRUE), "null"), "true");
    for process in &spinning {
        process.cancel();
        check(&failure_of(process), "cancelled", &[]);
    }
}

#[test]
fn endless_recursion_meets_the_limit_of_the_stack() {
    let recursion = plain(
        r#"(func $deeper (param i32) (result i32) (i32.add (i32.const 1) (call $deeper (local.get 0))))
        (func (export "run") (param i32 i32) (result i32) (call $deeper (i32.const 0)))"#,
    );
    let host = host_with(|config| config.stack_bytes = 1 << 20);
    check(
        &failed(&host, &recursion),
        "limit-stack",
        &["engine.stack_bytes = 1048576"],
    );
    assert_eq!(returned(&host, &plain(TRUE), "null"), "true");
}

#[test]
fn memory_is_bounded() {
    let greedy = plain(
        r#"(func (export "run") (param i32 i32) (result i32)
            (loop $again (br_if $again (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
            (unreachable))"#,
    );
    let host = host_with(|config| config.limits.memory_bytes = 8 << 20);
    check(
        &failed(&host, &greedy),
        "limit-memory",
        &["limits.memory_bytes = 8388608", "raise the limit"],
    );
}

#[test]
fn a_program_that_is_refused_memory_may_go_on() {
    let modest = plain(
        r#"(func (export "run") (param i32 i32) (result i32)
            (drop (memory.grow (i32.const 60000)))
            (call $ok (i32.const 1024) (i32.const 4)))"#,
    );
    assert_eq!(returned(&host(), &modest, "null"), "true");
}

#[test]
fn handles_are_bounded() {
    let hoarder = talking(
        r#"(func (export "run") (param i32 i32) (result i32) (loop $again (drop (call $receive)) (br $again)) (unreachable))"#,
    );
    let host = host_with(|config| config.limits.resources = 100);
    check(
        &failed(&host, &hoarder),
        "limit-resources",
        &["limits.resources = 100", "release"],
    );
}

#[test]
fn what_a_call_carries_is_bounded() {
    let wordy = talking(
        r#"(func (export "run") (param i32 i32) (result i32)
            (drop (memory.grow (i32.const 400)))
            (call $send (i32.const 0) (i32.const 20000000))
            (unreachable))"#,
    );
    check(
        &failed(&host(), &wordy),
        "limit-message",
        &["limits.message_bytes = 8388608"],
    );
}

#[test]
fn a_fault_of_the_program_is_a_trap() {
    let cases = [
        (
            r#"(func (export "run") (param i32 i32) (result i32) (unreachable))"#,
            "unreachable",
        ),
        (
            r#"(func (export "run") (param i32 i32) (result i32) (i32.load (i32.const -8)))"#,
            "out of bounds memory access",
        ),
        (
            r#"(func (export "run") (param i32 i32) (result i32) (i32.div_u (i32.const 1) (i32.const 0)))"#,
            "divide by zero",
        ),
    ];
    let host = host();
    for (body, part) in cases {
        check(
            &failed(&host, &plain(body)),
            "trap",
            &["fault in its own code", part],
        );
    }
}

#[test]
fn a_fault_names_the_functions_that_led_to_it() {
    let nested = plain(
        r#"(func $_ZN4main5inner17h0123456789abcdefE (unreachable))
        (func $outer (export "run") (param i32 i32) (result i32) (call $_ZN4main5inner17h0123456789abcdefE) (unreachable))"#,
    );
    let failure = failed(&host(), &nested);
    assert_eq!(failure.traceback, "  in main::inner\n  in outer\n");
}

#[test]
fn handles_that_the_program_does_not_hold_are_traps() {
    let cases = [
        "(call $block (i32.const 77))",
        "(call $get (i32.const 0) (i32.const 64))",
        "(call $drop_future (i32.const 5))",
        // A future is no pollable.
        "(call $block (call $receive))",
    ];
    let host = host();
    for call in cases {
        let body =
            format!(r#"(func (export "run") (param i32 i32) (result i32) {call} (unreachable))"#);
        check(&failed(&host, &talking(&body)), "trap", &[]);
    }
}

#[test]
fn a_future_cannot_be_dropped_before_its_pollable() {
    let careless = talking(
        r#"(func (export "run") (param i32 i32) (result i32)
            (local $future i32)
            (local.set $future (call $receive))
            (drop (call $pollable (local.get $future)))
            (call $drop_future (local.get $future))
            (unreachable))"#,
    );
    check(&failed(&host(), &careless), "trap", &["children"]);
}

#[test]
fn futures_are_bounded() {
    let host = host_with(|config| config.limits.futures = 10);
    let hoarder = talking(
        r#"(func (export "run") (param i32 i32) (result i32) (loop $again (drop (call $receive)) (br $again)) (unreachable))"#,
    );
    check(
        &failed(&host, &hoarder),
        "limit-resources",
        &["limits.futures = 10", "wait for fewer"],
    );
    let frugal = talking(
        r#"(func (export "run") (param i32 i32) (result i32)
            (local $n i32)
            (loop $again
              (call $drop_future (call $receive))
              (local.set $n (i32.add (local.get $n) (i32.const 1)))
              (br_if $again (i32.lt_u (local.get $n) (i32.const 100))))
            (call $ok (i32.const 1024) (i32.const 4)))"#,
    );
    assert_eq!(returned(&host, &frugal, "null"), "true");
}

#[test]
fn calls_are_bounded() {
    let host = host_with(|config| config.limits.calls = 1000);
    let caller = talking(
        r#"(func (export "run") (param i32 i32) (result i32) (loop $again (call $drop_future (call $receive)) (br $again)) (unreachable))"#,
    );
    check(
        &failed(&host, &caller),
        "limit-calls",
        &["limits.calls = 1000", "raise the limit"],
    );
}

#[test]
fn output_is_bounded_in_total() {
    let host = host_with(|config| config.limits.output_bytes = 2000);
    let chatty = talking(
        r#"(func (export "run") (param i32 i32) (result i32) (loop $again (call $send (i32.const 1039) (i32.const 5)) (br $again)) (unreachable))"#,
    );
    let process = launch(&host, &chatty, "null");
    let events = crate::guest::events(&process);
    let (last, sent) = events.split_last().unwrap();
    assert_eq!(sent.len(), 400);
    let pie_host::Event::Error(failure) = last else {
        panic!("{last:?}");
    };
    check(failure, "limit-output", &["limits.output_bytes = 2000"]);
}

#[test]
fn tables_count_as_memory() {
    let greedy = plain(
        r#"(table $t 0 90000 funcref)
        (func (export "run") (param i32 i32) (result i32)
            (loop $again (br_if $again (i32.ne (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1))))
            (unreachable))"#,
    );
    let host = host_with(|config| config.limits.memory_bytes = 256 << 10);
    check(
        &failed(&host, &greedy),
        "limit-memory",
        &["limits.memory_bytes = 262144"],
    );
}

#[test]
fn a_stack_in_the_memory_of_the_program_is_a_stack() {
    // What compilers make of a recursion: each call moves a stack pointer down from the beginning of the memory.
    let recursion = plain(
        r#"(global $stack (mut i32) (i32.const 4096))
        (func $deeper
            (global.set $stack (i32.sub (global.get $stack) (i32.const 64)))
            (i32.store (global.get $stack) (i32.const 1))
            (call $deeper))
        (func (export "run") (param i32 i32) (result i32) (call $deeper) (unreachable))"#,
    );
    check(
        &failed(&host(), &recursion),
        "limit-stack",
        &["stack in its own memory", "recurse less deeply"],
    );
}

#[test]
fn a_launch_lowers_limits_for_itself_alone() {
    let host = host();
    let lowered = pie_host::Launch {
        limits: [("cpu_s".to_owned(), pie_host::Value::Seconds(0.02))].into(),
        ..pie_host::Launch::new(plain(LOOP), "null")
    };
    let process = host.launch(lowered).unwrap();
    check(&failure_of(&process), "limit-cpu", &["limits.cpu_s = 0.02"]);
    let raised = pie_host::Launch {
        limits: [("resources".to_owned(), pie_host::Value::Integer(1_000_000))].into(),
        ..pie_host::Launch::new(plain(TRUE), "null")
    };
    let error = host.launch(raised).unwrap_err();
    assert_eq!(error.code.as_str(), "invalid-argument");
    assert!(
        error.message.contains("engine's 10000"),
        "{}",
        error.message
    );
}

#[test]
fn a_loop_in_the_start_function_meets_the_limit() {
    let host = host_with(|config| config.limits.cpu = Some(Duration::from_millis(30)));
    let starts = plain(
        r#"(func $spin (loop $again (br $again))) (start $spin)
        (func (export "run") (param i32 i32) (result i32) (unreachable))"#,
    );
    check(&failed(&host, &starts), "limit-cpu", &[]);
}

#[test]
fn a_program_with_too_many_tables_or_memories_is_refused() {
    let host = host();
    for part in ["(table 1 funcref)", "(memory 1)"] {
        let many = plain(&format!(
            r#"{} (func (export "run") (param i32 i32) (result i32) (unreachable))"#,
            part.repeat(20)
        ));
        check(&failed(&host, &many), "invalid-program", &[]);
    }
}
