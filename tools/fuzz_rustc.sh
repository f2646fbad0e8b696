#!/bin/sh
# What `tools/fuzz.py` has cargo call instead of rustc for the crates of this workspace: their code counts what it runs (the counters
# of libFuzzer) and checks its assertions. Dependencies are compiled as ever, and shared with every other build.
case " $* " in
*" --crate-type proc-macro "* | *" --crate-name build_script_build "* | *" -vV "*) exec "$@" ;;
esac
exec "$@" -Cdebug-assertions=on -Coverflow-checks=on -Ccodegen-units=1 -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares
