"""Builds programs: a project or a file becomes one `.wasm` that runs anywhere."""
