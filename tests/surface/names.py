"""Answers which of the names that it is given are there: paths from the root of the SDK, as in `Context.fork`."""

import importlib

import inferlet


def is_there(path):
    value = inferlet
    for name in path.split("."):
        # A field of a class, or an option, has a type and no value.
        if not hasattr(value, name) and name in getattr(value, "__annotations__", {}):
            value = None
        else:
            try:
                value = getattr(value, name) if hasattr(value, name) else importlib.import_module(f"{value.__name__}.{name}")
            except (AttributeError, ModuleNotFoundError):
                return False
    return True


def main(names):
    return [name for name in names if is_there(name)]
