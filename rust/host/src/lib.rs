//! The wasmtime host: interfaces, programs, limits and the driver loop.
