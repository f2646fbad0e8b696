//! Files of snapshots, and contexts that come from them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pie_fuzz::snapshots(data));
