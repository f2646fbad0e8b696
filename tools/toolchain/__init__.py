"""Makes ready what building needs, on a machine where nothing is prepared: `python3 -m tools.toolchain`.

Runs under a bare Python 3.11, as often as one likes. Downloads come from the Cargo registry, PyPI, rustup where it answers, and the
Debian mirrors that the machine already uses.
"""
