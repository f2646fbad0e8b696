"""Makes a machine ready to build Rust for wasm: `python3 -m pie.bakery.toolchain`. Runs under a bare Python 3.11.

Downloads come from the Cargo registry, rustup where it answers, and the Debian mirrors that the machine already uses.
"""
