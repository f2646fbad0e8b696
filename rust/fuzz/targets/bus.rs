//! The queues and subscriptions of programs that talk to each other.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pie_fuzz::bus(data));
