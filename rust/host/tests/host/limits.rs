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
        &["stack_bytes = 1048576"],
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
