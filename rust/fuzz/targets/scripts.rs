//! Scripts in the worker that removes their types, which is this program too.
#![no_main]

use std::sync::LazyLock;

/// What makes this program a worker.
const WORKER: &str = "worker";
static COMMAND: LazyLock<Vec<String>> = LazyLock::new(|| {
    let program = std::env::current_exe().unwrap_or_default();
    vec![program.to_string_lossy().into_owned(), WORKER.to_owned()]
});

libfuzzer_sys::fuzz_target!(
    init: {
        if std::env::args().nth(1).is_some_and(|argument| argument == WORKER) {
            pie_host::compile_worker();
        }
    },
    |data: &[u8]| pie_fuzz::scripts(data, &COMMAND)
);
