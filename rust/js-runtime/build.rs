//! Tells the linker how much stack the module has in its own memory.

/// Four times what `src/program.rs` allows JavaScript: QuickJS looks at the limit only when it enters a function.
const STACK_BYTES: u32 = 1024 * 1024;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-cdylib=-zstack-size={STACK_BYTES}");
}
