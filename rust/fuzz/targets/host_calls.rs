//! Programs that make random calls.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pie_fuzz::host_calls(data));
