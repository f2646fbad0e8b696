"""The commands and their options. Each imports what it needs when it runs, so that `pie --help` starts at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from pie.cli import bakery_commands, client_commands
from pie.cli.commands import App, LocalCommand, ProgramCommand
from pie.cli.completing import complete_program, complete_setting
from pie.cli.key_commands import key_app
from pie.cli.options import (
    AllowNetOption,
    ConfigOption,
    DummyOption,
    FilesOption,
    JsonOption,
    LimitOption,
    ModelOption,
    MountOption,
    config_flags,
    surroundings,
)
from pie.cli.remote import KeyOption, LaunchUserOption, PrivateKeyOption, Server, ServerOption, UserOption, refuse_server_options
from pie.cli.snapshot_commands import snapshots_app

app = App(name="pie", help="Serve programs that run beside a language model.")

LogLevel = Literal["off", "error", "warn", "info", "debug", "trace"]
"""As `pie.config.tree` has it, which takes the engine to import."""


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(version("pie-engine"))
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)] = False,
) -> None:
    """Serve programs that run beside a language model."""


@app.command(cls=ProgramCommand, context_settings={"allow_extra_args": True})
def run(
    context: typer.Context,
    program: Annotated[
        str | None,
        typer.Argument(
            metavar="PROGRAM",
            help="A .py, .js, .ts or .wasm file, a project folder, or NAME@VERSION, one that is installed in a server.",
            show_default=False,
            autocompletion=complete_program,
        ),
    ] = None,
    config: ConfigOption = None,
    model: ModelOption = None,
    dummy: DummyOption = False,
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=2**64 - 1, metavar="N", help="The launch seed: the same one repeats the run.", show_default=False),
    ] = None,
    input_text: Annotated[
        str | None,
        typer.Option(
            "--input",
            metavar="JSON",
            help='The input, in place of arguments after `--`: JSON, or a plain text, which becomes {"input": text}; '
            "@FILE reads it from a file, and - from stdin.",
            show_default=False,
        ),
    ] = None,
    limit: LimitOption = None,
    mount: MountOption = None,
    allow_net: AllowNetOption = None,
    path: Annotated[Path | None, typer.Option("--path", metavar="PROGRAM", help="The same as PROGRAM.", show_default=False)] = None,
    manifest: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The Pie.toml that the input is checked against; that of PROGRAM if not given.", show_default=False
        ),
    ] = None,
    named: Annotated[
        list[str] | None,
        typer.Option(
            "--program",
            metavar="NAME=FILE",
            help="A program that PROGRAM can start by that name, `runtime.spawn(NAME, ...)`; may be repeated.",
            show_default=False,
        ),
    ] = None,
    files: FilesOption = None,
    server: ServerOption = None,
    user: LaunchUserOption = None,
    key: KeyOption = None,
    private_key: PrivateKeyOption = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, metavar="N", help="Serve HTTP on this port of 127.0.0.1, 0 for a free one, until Ctrl-C.", show_default=False
        ),
    ] = None,
    shared: Annotated[bool, typer.Option("--shared", help="With --port: answer all requests by one instance.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="With --server: print the number of the process, and leave it running.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Run again when a file of the program changes, until Ctrl-C.")] = False,
    token_budget: Annotated[
        int | None,
        typer.Option(min=0, max=2**64 - 1, metavar="N", help="The most tokens that may enter the program's contexts.", show_default=False),
    ] = None,
    endowment: Annotated[
        float | None,
        typer.Option(
            "--credits",
            min=0,
            max=1e9,
            metavar="N",
            help="What it begins with in each model, to bid for pages where those are short.",
            show_default=False,
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Report the launch seed and what the engine did, on stderr.")] = False,
) -> None:
    """Run PROGRAM in an engine of its own, or in that of a server (`--server URL`).

    It prints what the program sends and returns. A NAME@VERSION is one that is installed in a server, that of
    `client.url` where --server is not given.

    Arguments for the program come after `--`: `pie run chat.py -- --prompt "Hello" --max-tokens 32`; `-- --help` prints
    what the program takes. Lines on stdin, of at most 4 MiB, reach the program as messages. With --port it
    answers requests by HTTP until Ctrl-C. The exit code is 0, 1 after an error, 2 for a command line that is wrong and
    130 after Ctrl-C.
    """
    if mount and server is not None:
        raise typer.BadParameter("the folders of a server are set by its configuration: fs_mounts in [runtime]", param_hint="--mount")
    if allow_net and server is not None:
        raise typer.BadParameter(
            "what programs of a server reach is set by its configuration: allow_net in [runtime]", param_hint="--allow-net"
        )
    if port is not None and server is not None:
        raise typer.BadParameter("a server has a port of its own: install the program there with --http", param_hint="--port")
    if shared and port is None:
        raise typer.BadParameter("it says how a program serves HTTP: give --port too", param_hint="--shared")
    if watch and (server is not None or port is not None):
        message = "a program that is watched runs to its end in an engine of its own; leave --server and --port out"
        raise typer.BadParameter(message, param_hint="--watch")
    flags = config_flags(config, model, dummy, limit, surroundings(mount, allow_net))
    chosen, arguments = _program_and_arguments(program, path, context.args)

    from pie.cli.launch import Launch, named_programs

    launch = Launch(
        program=chosen,
        manifest=manifest,
        arguments=arguments,
        input_text=input_text,
        seed=seed,
        token_budget=token_budget,
        credits=endowment,
        user=user,
        files=files,
        detach=detach,
        verbose=verbose,
        programs=named_programs(named or ()),
    )
    where = Server(server, user, key, private_key, flags)
    if server is not None:
        from pie.cli.remote_run import run_in_server

        raise typer.Exit(run_in_server(where, launch))

    from pie.cli.program import check_place, installed_name

    if (installed := installed_name(chosen)) is not None:
        from pie.cli.remote_run import run_installed

        here = {"--mount": mount, "--allow-net": allow_net, "--port": port is not None, "--watch": watch}
        raise typer.Exit(run_installed(where, launch, installed, [option for option, given in here.items() if given]))
    refuse_server_options({"--key": key, "--private-key": private_key})
    check_place(chosen)
    if watch:
        from pie.cli.watch_run import watch_program

        raise typer.Exit(watch_program(launch, flags))
    if port is not None:
        from pie.cli.serve_program import serve_program

        raise typer.Exit(serve_program(launch, flags, port, shared=shared))

    from pie.cli.run import run_program

    raise typer.Exit(run_program(launch, flags))


@app.command(cls=LocalCommand)
def chat(
    config: ConfigOption = None,
    model: ModelOption = None,
    dummy: DummyOption = False,
    system: Annotated[str | None, typer.Option(metavar="TEXT", help="The system message.", show_default=False)] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="The most tokens of an answer; 1024 if not given.", show_default=False)
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(min=0.0, metavar="T", help="How freely it draws; 0.7 if not given.", show_default=False)
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=2**64 - 1, metavar="N", help="The launch seed: the same one repeats the answers.", show_default=False),
    ] = None,
) -> None:
    """Talk to a model.

    Lines that begin with a slash are commands: /system TEXT and /reset begin anew, /save NAME writes the conversation
    to a file in JSON, /quit ends. Ctrl-C stops an answer, Ctrl-D ends. Where stdin is not a terminal, each line of it
    is said.
    """
    from pie.cli.chat import converse

    options = {"system": system, "max_tokens": max_tokens, "temperature": temperature}
    raise typer.Exit(converse(config_flags(config, model, dummy, None), options, seed=seed))


@app.command()
def serve(
    config: ConfigOption = None,
    model: ModelOption = None,
    dummy: DummyOption = False,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="The address to serve on; 127.0.0.1 if not given.", show_default=False)
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, metavar="N", help="The port; 8080 if not given, 0 for a free one.", show_default=False)
    ] = None,
    limit: LimitOption = None,
    mount: MountOption = None,
    allow_net: AllowNetOption = None,
    isolate: Annotated[
        bool | None,
        typer.Option(
            "--isolate/--no-isolate",
            help="Run each driver in a process of its own; so it is unless the configuration says otherwise.",
            show_default=False,
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir",
            metavar="DIR",
            help="Where installed programs, files and keys are kept; ~/.pie if not given. Servers that run at once need one each.",
            show_default=False,
        ),
    ] = None,
    log_level: Annotated[
        LogLevel | None,
        typer.Option("--log-level", help="What is written to stderr, from errors to everything; warn if not given.", show_default=False),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Write no line for a launch and an end, nor what programs write to stderr.")
    ] = False,
) -> None:
    """Serve programs that clients install and launch.

    Prints a line for each model, then the address, and on stderr a line for each launch and each end. SIGTERM lets what
    runs end, a second one does not; the exit code is 0 after the first, 143 after the second and 130 after Ctrl-C.
    """
    from pie.cli.serve import serve as serve_until_signal

    given: dict[str, object] = {
        "server.host": host,
        "server.port": port,
        "server.log_level": log_level,
        "server.log_programs": False if quiet else None,
        "engine.data_dir": None if data_dir is None else str(data_dir.absolute()),
    }
    flags = config_flags(config, model, dummy, limit, given | surroundings(mount, allow_net))
    raise typer.Exit(serve_until_signal(flags, isolate=isolate))


@app.command()
def doctor(
    config: ConfigOption = None,
    model: ModelOption = None,
    dummy: DummyOption = False,
    limit: LimitOption = None,
    server: ServerOption = None,
    user: UserOption = None,
    key: KeyOption = None,
    private_key: PrivateKeyOption = None,
) -> None:
    """Check this machine and what `pie serve` needs, a line each: ok, warn or fail, with the remedy.

    Versions, processor, GPU, what builds programs, folders, keys, access, port, memory, models, compiler. With --server
    it says who holds what in one that runs.

    The exit code is 1 where something fails.
    """
    from pie.cli.doctor import examine, print_holders

    flags = config_flags(config, model, dummy, limit)
    if server is None:
        refuse_server_options({"--user": user, "--key": key, "--private-key": private_key})
        raise typer.Exit(examine(flags))
    from pie.cli.remote import talk

    raise typer.Exit(talk(Server(server, user, key, private_key, flags), lambda client, _: print_holders(client)))


config_app = App(help="Show and change the configuration: defaults, then the file, the environment and the flags.")
app.add_typer(config_app, name="config")


@config_app.command("show")
def config_show(
    config: ConfigOption = None,
    model: ModelOption = None,
    dummy: DummyOption = False,
    limit: LimitOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print every setting with where it comes from, in the form of a configuration file."""
    from pie.cli.config import show_config

    raise typer.Exit(show_config(config_flags(config, model, dummy, limit), as_json=as_json))


@config_app.command("set")
def config_set(
    name: Annotated[
        str,
        typer.Argument(
            metavar="SETTING",
            help="A setting, as in server.port or model.NAME.kv_bytes; `pie config show` lists them.",
            show_default=False,
            autocompletion=complete_setting,
        ),
    ],
    value: Annotated[
        str,
        typer.Argument(metavar="VALUE", help="Its value, as in an environment variable: 8081, 1GiB, true, a,b.", show_default=False),
    ],
    config: ConfigOption = None,
) -> None:
    """Set one setting in the configuration file, which is made where it is missing. All else in it stays as it is."""
    from pie.cli.config import set_config

    raise typer.Exit(set_config(config_flags(config, None, False, None), name, value))


@config_app.command("path")
def config_path(config: ConfigOption = None) -> None:
    """Print the path of the configuration file, whether it is there or not."""
    from pie.cli.config import print_path

    raise typer.Exit(print_path(config_flags(config, None, False, None)))


client_commands.register(app)
app.add_typer(key_app, name="key")
app.add_typer(snapshots_app, name="snapshots")


model_app = App(help="Look at models.")
app.add_typer(model_app, name="model")


@model_app.command("list")
def model_list(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List the models that can be served.

    Those of the configuration, the default first, the one inside the package, and those that lie in ~/.pie/models and
    in the cache of Hugging Face.
    """
    from pie.cli.models import list_models

    raise typer.Exit(list_models(config_flags(config, None, False, None), as_json=as_json))


@model_app.command("show")
def model_show(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME|DIR]",
            help="A model of the configuration, or a folder in the Hugging Face format; the default model if not given.",
            show_default=False,
        ),
    ] = None,
    config: ConfigOption = None,
    digest: Annotated[bool, typer.Option(help="Hash the weight files, which are read for that.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Print what a model is.

    Architecture, sizes, dtype, context, vocabulary, template, end tokens, memory a token, its card.
    """
    from pie.cli.model import show_model

    flags = replace(config_flags(config, None if model is None else [model], False, None), models_given_by="the model")
    raise typer.Exit(show_model(flags, digest=digest, as_json=as_json))


bakery_commands.register(app)


@app.command("test-worker", hidden=True)
def run_for_tests(
    link: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Make the link to the SDK in a project, and end.", show_default=False)
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME|DIR", help="The model; the dummy driver if not given.", show_default=False)
    ] = None,
    replies: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="What the dummy driver says where it sees a text, by these texts.", show_default=False),
    ] = None,
) -> None:
    """Run programs for the tests of a project: a line of JSON on stdin for each."""
    from pie.cli.for_tests import prepare, work

    if link is not None:
        prepare(link)
    else:
        work(model, replies)


bakery_app = App(name="bakery", help="Build programs for pie.")
bakery_commands.register(bakery_app)


def _program_and_arguments(first: str | None, path: Path | None, rest: Sequence[str]) -> tuple[Path, tuple[str, ...]]:
    """The program, and what it is given.

    With `--path`, the word that stands in the program's place is for the program too.
    """
    if path is not None:
        return path, (*([] if first is None else [first]), *rest)
    if first is None:
        raise typer.BadParameter("name the program: as PROGRAM, or with --path", param_hint="PROGRAM")
    if not first:
        raise typer.BadParameter("the path is empty; name a file or a folder, as in `.` for this one", param_hint="PROGRAM")
    return Path(first), tuple(rest)
