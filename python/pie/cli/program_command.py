"""A command of the command line that launches a program, which has arguments of its own."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


class ProgramCommand(TyperCommand):
    """Says where the arguments of the program go, to whoever gives one in the place of the command's."""

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
