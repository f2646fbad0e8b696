//! Clients that ask programs by any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pie_fuzz::routes(data));
