//! MCP servers that write anything.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pie_fuzz::mcp(data));
