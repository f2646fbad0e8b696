//! The fuzzers on random bytes from seeds: a few hundred inputs each, the same ones every time.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Bytes from a seed, by splitmix64: up to 4 KiB.
fn bytes(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let length = usize::try_from(next() % 4096).unwrap();
    (0..length).map(|_| next().to_le_bytes()[0]).collect()
}

fn check(target: impl Fn(&[u8]), n_seeds: u64) {
    for seed in 0..n_seeds {
        let input = bytes(seed);
        if catch_unwind(AssertUnwindSafe(|| target(&input))).is_err() {
            panic!("seed {seed} of {n_seeds}");
        }
    }
}

#[test]
fn programs_of_random_code_end() {
    check(pie_fuzz::components, 100);
}

#[test]
fn programs_that_make_random_calls_end_and_leave_nothing() {
    check(pie_fuzz::host_calls, 200);
}

#[test]
fn masks_mean_what_their_elements_do() {
    check(pie_fuzz::brle, 2000);
}

#[test]
fn built_programs_and_manifests_are_read_or_refused() {
    check(pie_fuzz::packed, 2000);
}

#[test]
fn snapshots_are_read_or_refused_and_opened_or_refused() {
    check(pie_fuzz::snapshots, 1000);
}

#[test]
fn clients_that_send_anything_are_answered_or_closed_and_others_served() {
    check(pie_fuzz::protocol, 200);
}

#[test]
fn requests_of_any_bytes_are_answered_or_closed_and_others_served() {
    check(pie_fuzz::routes, 150);
}

#[test]
fn servers_of_tools_that_write_anything_answer_their_own_calls_alone() {
    check(pie_fuzz::mcp, 500);
}

#[test]
fn scripts_are_answered_by_their_worker_or_refused_by_name() {
    let worker = [env!("CARGO_BIN_EXE_pie-fuzz-worker").to_owned()];
    check(
        |input| pie_fuzz::scripts(&input[..input.len().min(64)], &worker),
        40,
    );
}

#[test]
fn templates_of_random_words_end() {
    check(pie_fuzz::templates, 300);
}

#[test]
fn grammars_of_random_words_are_compiled_or_refused() {
    check(pie_fuzz::grammars, 300);
}

#[test]
fn tokenizers_of_random_steps_are_loaded_or_refused() {
    check(pie_fuzz::tokenizers, 300);
}
