//! The pools and the store of pages.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pie_fuzz::pages(data));
