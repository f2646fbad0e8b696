#!/bin/sh
# What `tools/fuzz.py` has cargo call instead of rustc for everything: the parsers that it names count what they run too,
# and are otherwise those of the product.
name=
previous=
for argument in "$@"; do
    [ "$previous" = --crate-name ] && name=$argument
    previous=$argument
done
# shellcheck disable=SC2086 # several flags
case " $PIE_FUZZ_PARSERS " in
*" $name "*) exec "$@" $PIE_FUZZ_COUNTERS ;;
esac
exec "$@"
