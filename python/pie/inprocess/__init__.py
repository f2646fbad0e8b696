"""Engines in this process that run programs: what `import pie` offers."""

from pie.inprocess.engine import Engine, LaunchOptions, run, run_async
from pie.inprocess.following import Message, OnEvent, followed
from pie.inprocess.output import Output
from pie.inprocess.process import Events, Process
from pie.inprocess.programs import Program, source

__all__ = [
    "Engine",
    "Events",
    "LaunchOptions",
    "Message",
    "OnEvent",
    "Output",
    "Process",
    "Program",
    "followed",
    "run",
    "run_async",
    "source",
]
