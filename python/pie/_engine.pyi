"""The native half of the engine: models, programs, processes.

Errors are `pie.errors.PieError`; its `details` are the values behind the message. What waits or computes releases the
interpreter lock, and Ctrl-C ends a wait. Every object may be used from any thread.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal, NoReturn, Self, TypedDict, final

from typing_extensions import Buffer

from pie.events import AnyEvent
from pie.launch import Content, Launch
from pie.stats import MessageStats, ModelStats

__all__ = [
    "MAX_TEXT_BYTES",
    "Area",
    "Batch",
    "Command",
    "DriverEnd",
    "DummyDriver",
    "Engine",
    "HostEnd",
    "Model",
    "Process",
    "Server",
    "Setting",
    "__version__",
    "add_key",
    "check_access",
    "check_address",
    "compile_worker",
    "die_with_parent",
    "drain_log",
    "draw",
    "init_logging",
    "keep_little_free",
    "keep_small_pages",
    "list_keys",
    "pack_program",
    "read_manifest",
    "read_packed",
    "revoke_key",
    "settings",
    "take_short_turns",
]

__version__: str

def check_address(host: str, port: int) -> None:
    """Looks whether `Engine.serve` could listen there. Raises PieError `port-in-use` or `invalid-config`."""

def check_access(data_dir: str, settings: Mapping[str, object] | None = None) -> None:
    """Looks whether clients could come in, and not anybody as anybody, as `Engine.serve` does.

    Raises PieError `invalid-config`, with the remedy.
    """

def add_key(
    data_dir: str, name: str, user: str, *, scope: str = "user", expires_s: int | None = None, public_key: str | None = None
) -> tuple[str, str | None]:
    """Adds an API key to a data folder, or a public key (a line of OpenSSH).

    The answer is its record, JSON, and the text of a new secret.

    Nothing keeps that text. Raises PieError `invalid-name`, `invalid-argument`, `invalid-config`, `limit-keys`.
    """

def list_keys(data_dir: str) -> str:
    """The records of the keys in a data folder, as a JSON array. Raises PieError `invalid-config`."""

def revoke_key(data_dir: str, key_id: str) -> str:
    """Takes a key out of a data folder; its record as JSON. Raises PieError `unknown-key`, `invalid-config`."""

def init_logging(level: str, *, programs: bool = True) -> None:
    """Writes what the engine logs to stderr, from a level on; the first call decides.

    Levels are `off`, `error`, `warn`, `info`, `debug` and `trace`; another one is PieError `invalid-config`. With
    `programs`, a server has a line for each launch and each end, and what programs write to stderr, at `warn` too;
    without, it has none of them at any level. Lines below `warn`, and those of programs whatever their level, are left
    out, and counted, where stderr is not read.
    """

def drain_log(patience_s: float) -> bool:
    """Waits until the lines that wait for stderr, those below `warn` and those of programs, are written to it.

    False where some are not within `patience_s` seconds, as where stderr is not read. A time that is negative or not
    finite is PieError `invalid-argument`.
    """

def compile_worker() -> NoReturn:
    """Works on a program as an engine orders on standard input, answers on standard output, and ends the process."""

def keep_little_free() -> None:
    """Has the allocator of this process give back what is freed.

    It is for a process whose large pieces of memory come from clients.
    """

def keep_small_pages(alone: bool) -> None:
    """Has this process, and those that it starts, use small pages alone.

    So page faults count what memory programs touched.

    False: huge pages, too, as the system is set up.
    """

def settings() -> dict[str, list[Setting]]:
    """What the engine states, by section, in the order of the reference.

    `engine`, `limits`, `server` and `model` are sections of the configuration; `driver` is what a driver declares.
    """

@final
class Setting:
    """What there is to know of a setting of the engine."""

    @property
    def section(self) -> str:
        """The section that holds it."""

    @property
    def name(self) -> str:
        """Its key in its section of the configuration; the unit ends it."""

    @property
    def description(self) -> str:
        """What it is, in a sentence or two."""

    @property
    def kind(self) -> Literal["whole", "seconds", "flag", "text", "path", "choice", "texts"]:
        """What it may be: an int that is not negative, a float, a bool, a str, or a tuple of str."""

    @property
    def choices(self) -> list[str]:
        """The words of which one of kind `choice` is one."""

    @property
    def default(self) -> float | bool | str | tuple[str, ...] | None:
        """What holds where it is not given; None is no limit."""

    @property
    def low(self) -> float | None:
        """The least that a number may be, or that a text may be long in bytes; None where there is no bound."""

    @property
    def high(self) -> float | None:
        """The most that it may be."""

    @property
    def optional(self) -> bool:
        """Whether it may be None."""

class _Packed(TypedDict):
    language: Literal["python", "javascript", "component"]
    entry: str
    files: dict[str, bytes]
    runtime: str | None
    manifest: str | None
    standalone: bool

def pack_program(
    language: Literal["python", "javascript", "component"],
    files: Mapping[str, bytes],
    entry: str,
    manifest: str | None = None,
    runtime_digest: str | None = None,
    standalone: bytes | None = None,
) -> bytes:
    """The bytes of a built program, a `.wasm` that is launched as any other; the same arguments give the same bytes.

    `files` are the sources by path and `entry` is the path of the one that holds `main`. `manifest` is the text of a
    `Pie.toml`. `runtime_digest` (`sha256:` and 64 digits) names the language runtime that it was built for; none: any
    that the engine has. `standalone` are the bytes of that runtime, to be carried. The language `component` stands for
    a compiled program: no files, no entry, and `standalone` is the program itself.

    Raises PieError `invalid-manifest`, `invalid-program`, `limit-program` or `invalid-argument`.
    """

def read_packed(wasm: bytes, max_files_bytes: int = ...) -> _Packed | None:
    """The parts of a built program; None for an ordinary component.

    `max_files_bytes` bounds its sources (64 MiB if not given).

    Raises PieError `invalid-program` for one that is cut off, damaged or of another format, `limit-program` for one
    that is too large.
    """

def read_manifest(text: str, file: str = "Pie.toml") -> str:
    """A manifest as a JSON text: `package`, `program`, `parameters` (a list in order, or null) and `dependencies`.

    Raises PieError `invalid-manifest`, naming `file`, line, field, value and what is expected.
    """

def draw(
    logits: Buffer,
    sampler: tuple[float, int, float, float],
    mask: Sequence[int],
    *,
    seed: int,
    position: int,
    slot: int = 0,
    n_draws: int = 1,
) -> bytes:
    """Draws from a row, float32 [V], as the engine does: a sampler of a device is tested against it.

    `sampler` is temperature, top-k (0: off), top-p (1: off) and min-p (0: off), as in `row_sampler`; `mask` run lengths
    over the vocabulary, forbidden first, none: no restriction. Returns the tokens, uint32 [n_draws].

    Raises PieError `invalid-argument` for a mask that does not fit or allows nothing, for a logit that is not finite,
    and for more than 2^24 draws.
    """

@final
class Engine:
    """One engine: models are added to it, programs launched in it. Several live in one process and share nothing."""

    def __new__(
        cls,
        *,
        cache_dir: str | PathLike[str] | None = None,
        data_dir: str | PathLike[str] | None = None,
        runtimes_dir: str | PathLike[str] | None = None,
        instance_id: str | None = None,
        compiler: Sequence[str] | None = None,
        settings: Mapping[str, object] | None = None,
        limits: Mapping[str, float | None] | None = None,
        runtime: Mapping[str, object] | None = None,
        snapshots: Mapping[str, object] | None = None,
        mcp: Mapping[str, Mapping[str, object]] = ...,
        mcp_withheld: Sequence[str] = ...,
    ) -> Engine:
        """Makes an engine without models.

        `cache_dir` keeps compiled programs, for this user alone; none: nothing is kept. `data_dir` keeps, below
        `runtimes`, the language runtimes that the engine ran with, for programs that were built for them, and below
        `scratch` the files of programs, and below `snapshots` those on disk; none: programs have no files.
        `runtimes_dir` holds `python.wasm` and `javascript.wasm`. `instance_id` is the name that programs see (random if
        not given). `compiler` is the command of a process that calls `compile_worker`: components are compiled in such
        a one, and types removed from TypeScript and JavaScript, within `compile_s` and `compile_bytes`. If not given,
        components are compiled in this process, which is for those that one trusts, and sources in JavaScript are
        refused. `settings` are those of the section `engine`, `limits` those of the section `limits`, `runtime` those
        of the section `runtime`, `snapshots` those of the section `snapshots`, by the names of `settings()`; the
        defaults hold for the rest. `mcp` are the settings of MCP servers by their names; those that are processes do
        not get the variables of this process that `mcp_withheld` names. Where no `memory_bytes` are given, all users
        together may make the engine hold 4 GiB.

        Raises PieError `invalid-config`.
        """

    @property
    def instance_id(self) -> str:
        """The name by which programs know this engine."""

    @property
    def models(self) -> list[str]:
        """The names of the models, in the order in which they were added; the first is also called `default`."""

    def add_model(
        self,
        name: str,
        path: str | PathLike[str],
        settings: Mapping[str, object] | None = None,
        capabilities: Mapping[str, object] | None = None,
        *,
        is_isolated: bool = False,
    ) -> Model:
        """Adds a model, of whose folder the tokenizer, the chat template and the generation configuration are read.

        `settings` are those of the section `model`, `capabilities` what the driver declares (section `driver`; see
        `pie.backends.base.Capabilities`), by the names of `settings()`; the defaults hold for the rest. Batches are
        within what the driver takes, and contexts have at most `max_positions` tokens. `is_isolated` tells that the
        driver has a process of its own: whoever waits for it ends that process where a batch is overdue
        (`driver_timeout_s` of the engine), and the engine waits on.

        Ctrl-C ends the call, also while a tokenizer loads. Raises PieError `invalid-model` or `invalid-config`.
        """

    def memory(self) -> dict[str, dict[str, int]]:
        """The bytes that users make the engine hold, by user and by what they are held for."""

    def messages(self) -> MessageStats:
        """What programs sent to each other so far, and what waits."""

    def lacks_of_workers(self) -> list[str]:
        """What the processes that read programs can do that they should not, as far as one of them has run."""

    def is_prepared(self, program: bytes | Literal["python", "javascript"]) -> bool:
        """Whether a component, or the runtime of a language, can start without being compiled first."""

    def prepare(self, program: bytes | Literal["python", "javascript"]) -> None:
        """Loads or compiles a component, or the runtime of a language, and waits for that.

        Raises PieError `invalid-program`, `invalid-config` or `engine-stopped`.
        """

    def check(self, program: bytes) -> None:
        """Looks at a component or built program without running any of it, and waits for that.

        A component has to fit the host; of sources, the entry and what it imports have to compile, and there has to be
        something to call.

        Raises PieError `invalid-program`, with file, line and column of sources that do not parse; `unknown-runtime`,
        `invalid-manifest`; `limit-program`, `limit-compile`, `limit-memory` or `limit-stack` for one that takes too
        much; `engine-stopped`.
        """

    def launch(self, program: Content, launch: Launch) -> Process:
        """Launches a program.

        The program is a WebAssembly component or built program (`pack_program`), or the language, files and entry of
        sources. What is wrong with the program itself is its last event.

        The files are by path relative to their folder; the entry is the path of the one that holds `main`. `input` is a
        JSON text (any other text becomes `{"input": text}`), `args` are the unparsed arguments, `seed` is the launch
        seed (random if not given), 0 to 2^64 - 1. `manifest` is the text of a `Pie.toml`, in the place of the one that
        the program carries: the input is checked against its parameters. At most `token_budget` tokens enter the
        contexts of the process, which begins with `credits` in each model. `limits` lowers those of the engine for this
        process, by the names of `limit_settings`. `programs` are those that it can start by their names. With
        `is_alone` nothing else is launched while it lives. What is wrong with the program itself is its last event.

        Raises PieError `limit-processes`, `limit-message`, `invalid-argument`, `invalid-config`, `invalid-manifest`,
        `invalid-name` or `engine-stopped`.
        """

    def serve(self, data_dir: str | PathLike[str], settings: Mapping[str, object] | None = None) -> Server:
        """Serves the models and programs to clients of the network, as the reference of the protocol says.

        Installed programs are kept under `data_dir`. `settings` are those of the section `server` by the names of
        `settings()`; the defaults hold for the rest. Port 0 picks a free one. Raises PieError `port-in-use` or
        `invalid-config`.
        """

    def serve_program(
        self,
        program: Content,
        launch: Launch,
        *,
        label: str,
        data_dir: str | PathLike[str],
        shared: bool = False,
        settings: Mapping[str, object] | None = None,
    ) -> Server:
        """Serves requests by HTTP by one program alone: each by a launch of its own, or with `shared` all by one.

        Lists show its processes as `label`. `data_dir` and `settings` as in `serve`, which says what is raised.
        """

    def stop(self) -> None:
        """Ends every process with the error `engine-stopped`, and every model. A second call does nothing."""

@final
class Model:
    """A loaded model. One driver pulls its batches and answers each of them once."""

    @property
    def name(self) -> str:
        """The name by which programs load it."""

    @property
    def vocab_size(self) -> int:
        """The length of a row of logits."""

    @property
    def page_size(self) -> int:
        """Tokens of a page."""

    @property
    def stopped(self) -> bool:
        """Whether there will be no more batches."""

    def next_work(self, timeout_s: float) -> Batch | Command | None:
        """What to do next, waiting at most `timeout_s` for it.

        None when there is nothing; at once when the model was stopped.

        A command is given when every batch was answered, and nothing else is given before it is answered.
        """

    def complete(self, batch: Batch, logits: Buffer, failures: Sequence[tuple[int, str]] = ...) -> None:
        """Answers a batch with its logits: float32, C-contiguous, `[rows, vocab_size]`.

        They are read in place and must not change meanwhile.

        `failures` names sequences of the batch by index, with the reason why each could not be computed. A row that is
        missing or holds NaN fails the request behind it with `bad-logits`, and too many rows fail all of them, not this
        call. An answer to a batch whose requests have failed by `driver_timeout_s` is dropped.

        Raises PieError `invalid-argument` for rows of another width, and for a batch that was answered before or
        belongs to another model.
        """

    def complete_drawn(self, batch: Batch, tokens: Buffer, logits: Buffer, failures: Sequence[tuple[int, str]] = ...) -> None:
        """Answers a batch with what the driver drew.

        `tokens` are uint32, contiguous, of each row in turn as many as `row_draws` says. `logits` are the rows whose
        `row_keep` is 1; they, `failures` and errors are as for `complete`. A token that is 0xFFFFFFFF (a logit of its
        row is not finite), or that may not be drawn from its row, fails the request behind it with `bad-logits`. Other
        numbers of tokens or rows than are wanted fail all of them.
        """

    def complete_command(self, command: Command) -> None:
        """Answers a command that was carried out. Raises PieError as `complete` does."""

    def fail_command(self, command: Command, message: str, *, code: str = "driver-failed") -> None:
        """Answers a command with the reason why it was not carried out.

        It fails with the code: `driver-failed`, `unsupported` where it is not served, `invalid-adapter`, or
        `limit-adapters`. Raises PieError as `complete` does, and `invalid-argument` for another code.
        """

    def load_adapter(self, adapter: tuple[int, int], path: str) -> None:
        """Has the driver read an adapter, known by its identity and version from now on, and waits until it has.

        Commands are carried out in order with batches. Raises PieError `unsupported` where the driver has no adapters,
        `driver-failed`, `driver-lost`, `invalid-argument`, `model-unavailable`, `engine-stopped`.
        """

    def copy_adapter(self, source: tuple[int, int], copy: tuple[int, int]) -> None:
        """Has the driver copy an adapter that is loaded; as `load_adapter`."""

    def drop_adapter(self, adapter: tuple[int, int]) -> None:
        """Has the driver forget an adapter that is loaded; as `load_adapter`."""

    def fail(self, batch: Batch, message: str) -> None:
        """Answers a batch with the reason why it could not be run: each of its requests fails with `driver-failed`.

        Raises PieError as `complete` does.
        """

    def lose_device(self, message: str) -> None:
        """The driver is gone, with all its pages: the requests of the batches that run fail with `driver-lost`.

        What else was computed is computed again when it is needed, by the driver that comes next. A batch that was lost
        is not answered: it is dropped.
        """

    @property
    def state(self) -> tuple[Literal["serving", "restarting", "failed"], str]:
        """Where the driver stands, and why it does not serve."""

    def set_state(self, name: Literal["serving", "restarting", "failed"], reason: str, detail: str = ...) -> None:
        """Says where the driver stands.

        While it is `failed` everything that is asked of the model is refused with `model-unavailable`.

        Clients see the `reason`; the `detail` is for the log alone. Raises PieError `invalid-argument` for another
        state.
        """

    def run_dummy(self, script: Sequence[tuple[str, str]] = ...) -> None:
        """Drives the model with the dummy driver, in a thread of its own, until the engine stops.

        Where the text that the model sees holds the first of a pair of `script`, the second is what it says.

        Raises PieError `invalid-argument` for a reply that cannot be encoded.
        """

    def stats(self) -> ModelStats:
        """Counters and gauges of the model, taken at one moment; nothing is stopped for it.

        `pie.stats.ModelStats` documents each.
        """

    def check(self) -> None:
        """Verifies the invariants of the model's state.

        Raises PieError `internal`, naming the one that does not hold.
        """

@final
class Area:
    """Memory that is shared with another process, as a buffer of bytes.

    It stays mapped as long as a view of it lives.
    """

    def __buffer__(self, flags: int, /) -> memoryview:
        """Its bytes."""

@final
class HostEnd:
    """The side of the engine of the memory that it shares with the process of a driver.

    Used from one thread; Linux only.
    """

    def __new__(cls, vocab_size: int, looking_s: float) -> Self:
        """Memory for rows of as many logits. Who waits looks for `looking_s` before it sleeps.

        Raises PieError `internal` where the system has no descriptors or memory left, as every method.
        """

    def descriptors(self) -> list[int]:
        """What the process of the driver has to inherit, for `DriverEnd`."""

    def send(self, words: Buffer, n_rows: int) -> None:
        """Hands a batch over, uint32, of which `n_rows` rows are wanted. At most two are under way at once."""

    def wait(self, process: int, timeout_s: float) -> bool | None:
        """Waits for the answer to the batch that was sent first of those under way.

        True: it is there. None: it did not come within `timeout_s`.

        False: the process has ended, of which `process` is a descriptor that stays open meanwhile (`os.pidfd_open`).
        """

    def take(self) -> tuple[Literal["rows", "failures", "failed", "drawn"], int, int, int, int, str] | None:
        """The answer that was waited for.

        It has the outcome, the slot, how many rows there are, how many have room, the tokens, and what there is to say.
        Tokens stand behind the rows, a word each.

        The rows stay as they are until the batch after the next one is sent.
        """

    def rows(self, slot: int) -> Area:
        """The rows of a slot, float32: good as long as the slot has room for as many."""

@final
class DriverEnd:
    """The side of the process of a driver. Used from one thread; Linux only."""

    def __new__(cls, descriptors: Sequence[int], vocab_size: int, looking_s: float) -> Self:
        """Opens what `HostEnd.descriptors` gave, and keeps the descriptors."""

    def receive(self, host: int) -> tuple[int, int, int, int] | None:
        """Waits for a batch: its slot, its words, and for how many words and rows the slot has room.

        None: answer the oldest one first.

        Raises PieError `engine-stopped` where the engine is gone: `host` is a socket to it, which stays open meanwhile.
        """

    def words(self, slot: int) -> Area:
        """The words of a slot, uint32.

        They are good as long as the slot has room for as many; those of a batch stay until it is answered.
        """

    def rows(self, slot: int) -> Area:
        """Where the rows of a slot are written, float32.

        They are good as long as the slot has room for as many, which is more than its batch wants.
        """

    def answer(self, n_rows: int, failures: str | None) -> None:
        """Answers the oldest batch with the rows that its slot holds.

        `failures` holds what there is to say of sequences that failed.
        """

    def answer_drawn(self, n_rows: int, n_tokens: int, failures: str | None) -> None:
        """The same with rows that are wanted, and with tokens behind them, a word each."""

    def fail(self, message: str) -> None:
        """Answers the oldest batch with the reason why it could not be run."""

def die_with_parent(parent: int) -> bool:
    """Has the system kill this process when the thread that started it ends.

    False: the process `parent` has ended already. Linux only.
    """

def take_short_turns() -> None:
    """Has this thread, and those that it starts, run in short turns, so that it gets a core quickly when it wakes.

    Linux 6.12 and later.
    """

MAX_TEXT_BYTES: int
"""Bytes of what a driver in a process of its own may say of a batch."""

@final
class Batch:
    """A batch to run.

    Its buffer is the arena, uint32 words that are read without a copy; `pie.batch.Batch` is the typed view.

    One that is dropped without an answer fails.
    """

    @property
    def id(self) -> int:
        """Its number, counted from 1 in each model."""

    def __buffer__(self, flags: int, /) -> memoryview:
        """The arena as bytes, read-only."""

@final
class Command:
    """A command to carry out. One that is dropped without an answer fails."""

    @property
    def id(self) -> int:
        """Its number, counted from 1 in each model."""

    @property
    def what(self) -> tuple[str, list[tuple[int, int]], str]:
        """Its kind, the adapters that it names, and a path or "".

        `load-adapter`, `create-adapter`, `change-adapter`, `copy-adapter`, `drop-adapter`, `export-pages` or
        `import-pages`. An adapter is its identity and its version.
        """

    @property
    def pages(self) -> list[tuple[int, int]]:
        """The pages of `export-pages` and `import-pages`: the place of each in the file, and its index in the pool."""

    @property
    def recipe(self) -> tuple[int, float, float | None, list[tuple[int, float]]]:
        """How the adapter of `create-adapter` and `change-adapter` is made; zeros and nothing for others.

        The rank and the alpha of a new adapter; by how much it is perturbed; and the seeds of noise with their factors.
        """

@final
class DummyDriver:
    """The dummy driver: hashes in place of logits. It keeps what it is told to write in memory of its own."""

    def __new__(cls, model: str, capabilities: Mapping[str, object] | None) -> Self:
        """Memory for `n_pages` pages of `page_size` tokens, and for `host_pages` on the host.

        See `pie.backends.base.Capabilities`. With `follows` it feeds what it draws into its next batch. Raises PieError
        `invalid-argument` for a size out of its range.
        """

    def capabilities(self) -> dict[str, Any]:
        """What it serves, by the names of `pie.backends.base.Capabilities`."""

    def run(self, arena: Buffer) -> tuple[bytes, bytes | None, list[tuple[int, str]]]:
        """Runs a batch, uint32 words: float32 [R, V] as bytes, and the sequences that failed with their reasons.

        Where it follows, the rows are those that are wanted, float32 [K, V], and between the two stand the tokens that
        it drew, uint32.

        Raises PieError `driver-failed` for a batch that does not fit; nothing has changed then.
        """

    def load_adapter(self, adapter: tuple[int, int], path: str) -> None:
        """Keeps the name of an adapter: identity and version. The path is not read."""

    def create_adapter(self, adapter: tuple[int, int], path: str, recipe: tuple[int, float, float]) -> None:
        """Keeps the name of a new adapter of this rank, this alpha and this sigma. Nothing is written here."""

    def change_adapter(self, source: tuple[int, int], changed: tuple[int, int], path: str) -> None:
        """Keeps the name of a changed adapter. Raises PieError `driver-failed` where its source is not loaded."""

    def copy_adapter(self, source: tuple[int, int], copy: tuple[int, int]) -> None:
        """Keeps the name of a copy. Raises PieError `driver-failed` where the adapter is not loaded."""

    def drop_adapter(self, adapter: tuple[int, int]) -> None:
        """Forgets an adapter. Raises PieError `driver-failed` where it is not loaded."""

    def export_page(self, page: int) -> bytes:
        """What a page holds, slot by slot. Raises PieError `driver-failed` where there is no such page."""

    def import_page(self, page: int, content: bytes) -> None:
        """Puts that into a page. Raises PieError `driver-failed` where there is no such page, or that is none."""

@final
class Process:
    """A launched program. Dropping it ends the program: nobody could read its events."""

    @property
    def pid(self) -> int:
        """Its number, counted from 1 in each engine."""

    @property
    def launch_seed(self) -> int:
        """The seed from which every unseeded draw derives; launching with it again repeats the run."""

    @property
    def ended(self) -> bool:
        """Whether the last event was read."""

    @property
    def n_calls(self) -> int:
        """Calls that the program has made to the `pie:*` interfaces and to `wasi:io/poll`.

        Drops of handles are not counted.
        """

    @property
    def cpu_s(self) -> float:
        """Processor time that the program has used."""

    @property
    def launch_s(self) -> float | None:
        """Time from the launch to the call of the program's entry; None before."""

    def next_event(self, timeout_s: float | None = None) -> AnyEvent | None:
        """The next event, waiting at most `timeout_s` for it.

        None: nothing came in time, or the last one was read (`ended`).
        """

    def send(self, text: str, timeout_s: float | None = None) -> None:
        """Sends a message to the program, waiting at most `timeout_s` until its queue has room.

        Raises PieError `limit-queue` when it has none, `limit-message` for a text that is too long, `session-closed`
        when the program has ended or the input was closed.
        """

    def send_file(self, data: bytes | bytearray, timeout_s: float | None = None) -> None:
        """Sends a file to the program, waiting at most `timeout_s` until the queue of the files has room.

        Raises PieError as `send` does.
        """

    def close_input(self) -> None:
        """Disconnects: when the program has received what waits, its calls fail with `session-closed`.

        This concerns `receive` and `receive_file`.
        """

    def cancel(self) -> None:
        """Ends the program; its last event is the error `cancelled`, unless it has ended before."""

@final
class Server:
    """A running server. It stops when it is collected."""

    @property
    def address(self) -> str:
        """Where it listens, as in `127.0.0.1:8080`."""

    @property
    def n_live(self) -> int:
        """Processes of clients that live."""

    @property
    def n_connections(self) -> int:
        """Clients that are connected."""

    def begin_drain(self) -> None:
        """Refuses launches from now on and tells the clients; processes run on."""

    def stop(self) -> None:
        """Ends every process of clients, lets clients have what is left, and closes, within ten seconds.

        A second call does nothing.
        """
