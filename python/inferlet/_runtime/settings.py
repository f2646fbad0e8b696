"""How the snapshot is made. `tools/build_python_runtime.py --plain` builds a component in which PLAIN is true."""

PLAIN = False
"""Whether the interpreter is taken as it is once all is loaded. Launches are slower then, and nothing relies on how
this version of CPython works inside.
"""
