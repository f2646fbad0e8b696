//! Tokenizers.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pie_fuzz::tokenizers(data));
