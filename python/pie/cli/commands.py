"""What all commands have in common: how their options stand in help, and how errors in them are told."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

F = TypeVar("F", bound=Callable[..., Any])


_ELSEWHERE = {
    ("snapshot", "export"): "`pie snapshots export` writes those on disk",
    ("snapshot", "show"): "`pie snapshots show` reads those on disk",
}
"""What a group of commands lacks and another one has."""
_PROGRAMS = (".py", ".js", ".mjs", ".ts", ".wasm")
"""How files of programs end."""
_UNPARSED = re.compile(r"Input should be a valid (number|integer), unable to parse")
"""What the library says of a word that is not a number. It does not show the word."""


class Command(TyperCommand):
    """A command whose switches show no type in help: they take no value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments left over, as the library reads them."""
        given = tuple(args)  # the library empties the list
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            # By name: the library keeps the class to itself.
            unparsed = _UNPARSED.match(str(getattr(error, "message", "")))
            if type(error).__name__ == "BadParameter" and unparsed is not None and hasattr(error, "message"):
                word = _value_of(getattr(getattr(error, "param", None), "opts", ()), given)
                kind = "a number" if unparsed[1] == "number" else "a whole number"
                error.message = f"{'this' if word is None else repr(word)} is not {kind}."
            raise

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, those of help among them."""
        return _switches_bare(super().get_params(ctx))


class Group(TyperGroup):
    """The same for what only holds commands.

    Says where a command is that another group has.
    """

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The name of the command, the command, and the arguments left over."""
        try:
            return super().resolve_command(ctx, args)
        except Exception as error:
            elsewhere = _ELSEWHERE.get((ctx.info_name or "", args[0] if args else ""))
            if elsewhere is not None and hasattr(error, "message"):
                error.message += f" {elsewhere}."
            elif ctx.info_name == "pie" and args and args[0].endswith(_PROGRAMS) and hasattr(error, "message"):
                error.message = f"No such command {args[0]!r}. To run a program, write `pie run {args[0]}`."
            raise

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, those of help among them."""
        return _switches_bare(super().get_params(ctx))


class ProgramCommand(Command):
    """A command that launches a program, which has arguments of its own.

    Says where the arguments of the program go, to whoever gives one in the place of the command's.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments left over, as the library reads them."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            # By name: the library keeps the class to itself.
            if type(error).__name__ == "NoSuchOption" and hasattr(error, "message"):
                option = getattr(error, "option_name", "--name")
                error.message += f". What is for the program comes after `--`: {ctx.command_path} PROGRAM -- {option} ..."
            raise


class NamedCommand(Command):
    """A command about one thing that a model has under a name.

    Says how both are given, to whoever gives one of them.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments left over, as the library reads them."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if type(error).__name__ == "MissingParameter" and hasattr(error, "message"):
                listing = f"{ctx.parent.command_path} list" if ctx.parent is not None else "the list"
                error.message = f"Give MODEL and NAME, as `{listing}` shows them; whose it is follows --of"
            raise


class LocalCommand(Command):
    """A command that has a model on this machine. Says what does the same in a server, to whoever names one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments left over, as the library reads them."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if getattr(error, "option_name", None) == "--server" and hasattr(error, "message"):
                error.message += (
                    f". {ctx.command_path} talks to a model of this machine; a server runs the program that does so, "
                    "examples/python/conversation.py: pie run conversation.py --server ADDRESS"
                )
            raise


class App(typer.Typer):
    """A command line, or a part of it, of such commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(cls=Group, pretty_exceptions_enable=False, no_args_is_help=True, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[F], F]:
        """Adds a command."""
        return super().command(name, **{"cls": Command, **settings})


def _value_of(options: Sequence[str], given: Sequence[str]) -> str | None:
    """The word that an option of these names was given as its value, the last time; None where it stands elsewhere."""
    found = None
    for index, word in enumerate(given):
        if word == "--":
            break
        name, equals, value = word.partition("=")
        if name in options:
            found = value if equals else next(iter(given[index + 1 :]), None)
    return found


def _switches_bare(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params
