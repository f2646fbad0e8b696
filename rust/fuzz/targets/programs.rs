//! Random programs on a whole engine.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pie_fuzz::programs(data));
