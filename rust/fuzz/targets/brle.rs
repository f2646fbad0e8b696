//! Masks as run lengths.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pie_fuzz::brle(data));
