//! Programs of random code.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pie_fuzz::components(data));
