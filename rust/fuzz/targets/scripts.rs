//! Scripts in the worker that removes their types, which is this program too.
#![no_main]

mod worker_counters;

use std::sync::LazyLock;

/// What makes this program a worker; the memory for its counters follows.
const WORKER: &str = "worker";
static COMMAND: LazyLock<Vec<String>> = LazyLock::new(|| {
    let program = std::env::current_exe().unwrap_or_default();
    let counters = worker_counters::shared().path();
    vec![
        program.to_string_lossy().into_owned(),
        WORKER.to_owned(),
        counters,
    ]
});

libfuzzer_sys::fuzz_target!(
    init: {
        let mut arguments = std::env::args().skip(1);
        if arguments.next().is_some_and(|argument| argument == WORKER) {
            pie_fuzz::spare_libraries();
            worker_counters::count_in(&arguments.next().unwrap_or_default()).expect("the memory of the fuzzer");
            pie_host::compile_worker();
        }
    },
    |data: &[u8]| {
        pie_fuzz::scripts(data, &COMMAND);
        worker_counters::shared().show();
    }
);
