//! The tree of pages by content, with the lanes of contexts.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pie_fuzz::prefix_tree(data));
