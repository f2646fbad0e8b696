#!/bin/sh
# What `tools/fuzz.py` has cargo call instead of rustc for the crates of this workspace: their code counts what it runs
# (the counters of libFuzzer) and checks its assertions. Dependencies are compiled as ever, and shared with every other
# build, but for the parsers.
case " $* " in
*" --crate-type proc-macro "* | *" --crate-name build_script_build "* | *" -vV "*) exec "$@" ;;
esac
# shellcheck disable=SC2086 # several flags
exec "$@" -Cdebug-assertions=on -Coverflow-checks=on -Ccodegen-units=1 $PIE_FUZZ_COUNTERS
