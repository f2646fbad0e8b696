//! The engine as the contract in `wit/` describes it: the world of a language runtime, the two streams that the
//! console writes to, and files.
#![allow(missing_docs)]

wit_bindgen::generate!({
    inline: "
        package pie:js-runtime;

        world js-runtime {
            include pie:inferlet/language-runtime@0.1.0;
            import wasi:cli/stdout@0.2.12;
            import wasi:cli/stderr@0.2.12;
            import wasi:filesystem/types@0.2.12;
            import wasi:filesystem/preopens@0.2.12;
        }
    ",
    path: "../../wit",
    world: "pie:js-runtime/js-runtime",
    generate_all,
    pub_export_macro: true,
});

/// QuickJS asks for the time of day by this name, in microseconds since 1970: on this target it has no C library to
/// ask. A context that is made asks too, for a seed of `Math.random`, which is not QuickJS's here; no clock runs then.
#[unsafe(no_mangle)]
pub extern "C" fn __rquickjs_host_now_us() -> f64 {
    if crate::clock::began().is_none() {
        return 0.0;
    }
    let now = wasi::clocks::wall_clock::now();
    now.seconds as f64 * 1e6 + f64::from(now.nanoseconds / 1000)
}
