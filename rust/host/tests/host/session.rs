//! The channel between a program and its client.

use std::time::Duration;

use pie_host::{Event, Form};

use crate::guest::{
    ECHO, PATIENCE, check, events, failure_of, host, host_with, launch, sent, talking,
};

#[test]
fn a_program_waits_for_a_message() {
    let host = host();
    let process = launch(&host, &talking(ECHO), "null");
    assert_eq!(process.next_event(Some(Duration::from_millis(50))), None);
    process.send("what?".to_owned()).unwrap();
    assert_eq!(
        events(&process),
        [sent("what?"), Event::Return("true".to_owned())]
    );
    // receive, pollable, block, get, send
    assert_eq!(process.n_calls(), 5);
    assert_eq!(
        process.send("late".to_owned()).unwrap_err().code.as_str(),
        "session-closed"
    );
}

#[test]
fn what_is_sent_is_marked_and_what_is_printed_or_said_beside_is_told_apart() {
    let each = talking(
        r#"(func (export "run") (param i32 i32) (result i32)
            (call $send (i32.const 1024) (i32.const 4))
            (call $send_json (i32.const 1024) (i32.const 4))
            (call $print (i32.const 1024) (i32.const 4))
            (call $message (i32.const 1024) (i32.const 4))
            (call $ok (i32.const 1024) (i32.const 4)))"#,
    );
    let text = || "true".to_owned();
    assert_eq!(
        events(&launch(&host(), &each, "null")),
        [
            Event::Sent(text(), Form::Text),
            Event::Sent(text(), Form::Json),
            Event::Stdout(text()),
            Event::Message(text()),
            Event::Return(text()),
        ]
    );
}

#[test]
fn a_disconnect_ends_the_wait() {
    let host = host();
    let process = launch(&host, &talking(ECHO), "null");
    process.close_input();
    assert_eq!(
        events(&process),
        [sent("session-closed"), Event::Return("true".to_owned())]
    );
}

#[test]
fn what_was_sent_before_the_program_asks_is_kept() {
    let host = host();
    let process = launch(&host, &talking(ECHO), "null");
    process.send("first".to_owned()).unwrap();
    process.close_input();
    assert_eq!(events(&process)[0], sent("first"));
}

#[test]
fn a_second_get_is_an_error() {
    let twice = talking(
        r#"(func (export "run") (param i32 i32) (result i32)
            (local $future i32)
            (local.set $future (call $receive))
            (call $block (call $pollable (local.get $future)))
            (call $get (local.get $future) (i32.const 64))
            (call $get (local.get $future) (i32.const 64))
            (call $send (i32.load (i32.const 72)) (i32.load (i32.const 76)))
            (call $ok (i32.const 1024) (i32.const 4)))"#,
    );
    let host = host();
    let process = launch(&host, &twice, "null");
    process.send("x".to_owned()).unwrap();
    assert_eq!(events(&process)[0], sent("future-taken"));
}

#[test]
fn a_cancelled_wait_loses_no_message() {
    let host = host();
    // The first future is ready when it is dropped; the second one gets its message.
    let again = talking(&format!(
        r#"(func $first (export "first")
            (local $future i32) (local $pollable i32)
            (local.set $future (call $receive))
            (local.set $pollable (call $pollable (local.get $future)))
            (call $block (local.get $pollable))
            (call $drop_pollable (local.get $pollable))
            (call $drop_future (local.get $future)))
        {}"#,
        ECHO.replace(
            "(local.set $future (call $receive))",
            "(call $first) (local.set $future (call $receive))"
        )
    ));
    let process = launch(&host, &again, "null");
    process.send("kept".to_owned()).unwrap();
    assert_eq!(events(&process)[0], sent("kept"));
}

#[test]
fn a_slow_client_suspends_the_program() {
    let host = host_with(|config| config.limits.queue_events = 2);
    let chatty = talking(
        r#"(func (export "run") (param i32 i32) (result i32)
            (local $n i32)
            (loop $again
              (call $send (i32.const 1039) (i32.const 5))
              (local.set $n (i32.add (local.get $n) (i32.const 1)))
              (br_if $again (i32.lt_u (local.get $n) (i32.const 500))))
            (call $ok (i32.const 1024) (i32.const 4)))"#,
    );
    let process = launch(&host, &chatty, "null");
    let events = events(&process);
    assert_eq!(events.len(), 501);
    assert!(events[..500].iter().all(|event| *event == sent("hello")));
}

#[test]
fn a_full_queue_towards_the_program_refuses() {
    let host = host_with(|config| config.limits.queue_events = 1);
    let process = launch(
        &host,
        &talking(
            r#"(func (export "run") (param i32 i32) (result i32) (loop $again (br $again)) (unreachable))"#,
        ),
        "null",
    );
    process.send("one".to_owned()).unwrap();
    assert_eq!(
        process.send("two".to_owned()).unwrap_err().code.as_str(),
        "limit-queue"
    );
    assert!(!process.wait_for_room(Duration::from_millis(1)));
    process.cancel();
    check(&failure_of(&process), "cancelled", &[]);
    assert!(
        process.wait_for_room(PATIENCE),
        "a process that has ended takes no message, and says so when one is sent"
    );
}
