"""Pie: an LLM serving engine whose unit of work is a program.

pie.run("program.py", {"name": "Ada"}) runs a program in an engine of this process; `pie.Engine` is such an engine,
`pie.client` talks to a server, and `pie.testing` is for tests.
"""

# The name is known to type checkers. `typing` would be loaded in front of the handler of Ctrl-C (`pie.cli`).
TYPE_CHECKING = False

if TYPE_CHECKING:
    from pie import client, testing
    from pie.errors import PieError
    from pie.events import AnyEvent, Event
    from pie.inprocess import Engine, Process, run, run_async, source

__all__ = ["AnyEvent", "Engine", "Event", "PieError", "Process", "client", "run", "run_async", "source", "testing"]

if not TYPE_CHECKING:
    # What is large is imported when it is asked for: commands start at once.
    _PLACES = {
        "AnyEvent": "pie.events",
        "Engine": "pie.inprocess",
        "Event": "pie.events",
        "PieError": "pie.errors",
        "Process": "pie.inprocess",
        "run": "pie.inprocess",
        "run_async": "pie.inprocess",
        "source": "pie.inprocess",
    }
    _MODULES = ("client", "testing")

    def __getattr__(name: str) -> object:
        if name not in _PLACES and name not in _MODULES:
            raise AttributeError(f"module 'pie' has no attribute {name!r}")

        from importlib import import_module  # noqa: PLC0415  # as above

        if name in _MODULES:
            return import_module(f"pie.{name}")
        value = globals()[name] = getattr(import_module(_PLACES[name]), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_PLACES, *_MODULES})
