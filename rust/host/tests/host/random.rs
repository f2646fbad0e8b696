//! Programs that make calls at random, with handles that they hold and handles that they do not: whatever they do is an answer or an error
//! of theirs, and the host serves on.

use pie_host::{Event, Host, Program};

use crate::guest::{events, host_with, launch, plain, returned, talking};

const TRUE: &str = r#"(func (export "run") (param i32 i32) (result i32) (call $ok (i32.const 1024) (i32.const 4)))"#;
const PROGRAMS: u64 = 150;
const CALLS: u64 = 30;
/// What a program may bring upon itself.
const OWN_FAULTS: [&str; 5] = [
    "trap",
    "limit-resources",
    "limit-message",
    "limit-output",
    "limit-calls",
];

/// Numbers from a seed: splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

/// A handle: mostly one that an earlier call gave, sometimes any number.
fn handle(random: &mut Random) -> String {
    match random.below(8) {
        0 => format!("(i32.const {})", random.below(40)),
        1 => "(i32.const -1)".to_owned(),
        _ => format!("(local.get {})", 2 + random.below(4)),
    }
}

fn call(random: &mut Random) -> String {
    let into = 2 + random.below(4);
    let at = random.below(70_000);
    let length = random.below(2000);
    match random.below(8) {
        0 | 1 => format!("(local.set {into} (call $receive))"),
        2 => format!("(local.set {into} (call $pollable {}))", handle(random)),
        3 => format!("(call $get {} (i32.const {}))", handle(random), at & !3),
        4 => format!("(call $drop_future {})", handle(random)),
        5 => format!("(call $drop_pollable {})", handle(random)),
        6 => format!("(call $send (i32.const {at}) (i32.const {length}))"),
        _ => format!("(call $block {})", handle(random)),
    }
}

fn program(seed: u64) -> Program {
    let mut random = Random(seed);
    let calls: Vec<String> = (0..1 + random.below(CALLS))
        .map(|_| call(&mut random))
        .collect();
    talking(&format!(
        r#"(func (export "run") (param i32 i32) (result i32) (local i32 i32 i32 i32) {} (call $ok (i32.const 1024) (i32.const 4)))"#,
        calls.join(" ")
    ))
}

fn check(host: &Host, seed: u64) {
    let process = launch(host, &program(seed), "null");
    // Every wait ends: there is one message, and then nobody.
    process.send("x".to_owned()).unwrap();
    process.close_input();
    match events(&process).last() {
        Some(Event::Return(value)) => assert_eq!(value, "true", "seed {seed}"),
        Some(Event::Error(failure)) => {
            let code = failure.code.as_deref().unwrap_or_default();
            assert!(OWN_FAULTS.contains(&code), "seed {seed}: {failure:?}");
        }
        other => panic!("seed {seed}: {other:?}"),
    }
}

#[test]
fn calls_at_random_are_answers_or_errors_of_the_program() {
    let host = host_with(|config| {
        config.limits.resources = 16;
        config.limits.output_bytes = 8 << 10;
    });
    for seed in 0..PROGRAMS {
        check(&host, seed);
    }
    assert_eq!(returned(&host, &plain(TRUE), "null"), "true");
}
