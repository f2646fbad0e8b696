//! Grammars, and lists of tools.
#![no_main]

libfuzzer_sys::fuzz_target!(
    init: pie_fuzz::spare_libraries(),
    |data: &[u8]| pie_fuzz::grammars(data)
);
