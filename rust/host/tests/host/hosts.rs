//! Several hosts in one process, and how they end.

use std::time::Duration;

use pie_host::{Event, Launch};

use crate::guest::{check, events, failure_of, host, host_with, launch, plain, returned, talking};

const SPIN: &str =
    r#"(func (export "run") (param i32 i32) (result i32) (loop $again (br $again)) (unreachable))"#;
const WAIT: &str = r#"(func (export "run") (param i32 i32) (result i32) (call $block (call $pollable (call $receive))) (unreachable))"#;
const TRUE: &str = r#"(func (export "run") (param i32 i32) (result i32) (call $ok (i32.const 1024) (i32.const 4)))"#;

#[test]
fn two_hosts_share_nothing() {
    let (first, second) = (
        host_with(|config| config.instance_id = Some("first".to_owned())),
        host(),
    );
    assert_eq!(first.instance_id(), "first");
    assert_ne!(second.instance_id(), "first");
    let waiting = launch(&second, &talking(WAIT), "null");
    assert_eq!(returned(&first, &plain(TRUE), "null"), "true");
    first.stop();
    assert_eq!(returned(&second, &plain(TRUE), "null"), "true");
    waiting.cancel();
    check(&failure_of(&waiting), "cancelled", &[]);
}

#[test]
fn cancelling_ends_programs_that_spin_and_programs_that_wait() {
    let host = host();
    for program in [plain(SPIN), talking(WAIT)] {
        let process = launch(&host, &program, "null");
        assert_eq!(process.next_event(Some(Duration::from_millis(20))), None);
        process.cancel();
        check(&failure_of(&process), "cancelled", &[]);
    }
}

#[test]
fn stopping_ends_every_process_by_name_and_refuses_launches() {
    let host = host();
    let processes = [
        launch(&host, &plain(SPIN), "null"),
        launch(&host, &talking(WAIT), "null"),
    ];
    host.stop();
    for process in &processes {
        check(&failure_of(process), "engine-stopped", &[]);
    }
    let launch = Launch::new(plain(TRUE), "null");
    assert_eq!(
        host.launch(launch).unwrap_err().code.as_str(),
        "engine-stopped"
    );
    host.stop();
}

#[test]
fn a_process_that_nobody_holds_ends() {
    let host = host_with(|config| config.max_processes = 1);
    drop(launch(&host, &plain(SPIN), "null"));
    // Its place becomes free; until then launches are refused.
    let next = || host.launch(Launch::new(plain(TRUE), "null"));
    let process = (0..10_000).find_map(|_| {
        std::thread::yield_now();
        next().ok().or_else(|| {
            std::thread::park_timeout(Duration::from_millis(1));
            None
        })
    });
    assert_eq!(
        events(&process.unwrap()),
        [Event::Return("true".to_owned())]
    );
}

#[test]
fn a_launch_seed_is_reported_and_random_unless_given() {
    let host = host();
    let seed = |seed| {
        host.launch(Launch {
            seed,
            ..Launch::new(plain(TRUE), "null")
        })
        .unwrap()
        .launch_seed()
    };
    assert_eq!(seed(Some(0)), 0);
    assert_ne!(seed(None), seed(None));
}
