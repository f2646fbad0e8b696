"""What to do about common mistakes, where the words of Python do not say it. Looked up when a program has failed."""

from __future__ import annotations

import builtins
import difflib
import inspect
import os
import posixpath
import re
import sys
from collections import deque
from collections.abc import Collection, Iterator
from types import CoroutineType, FrameType, ModuleType, TracebackType

import inferlet
from inferlet import _absent, runtime
from inferlet import files as files_of_engine
from inferlet._wait import Deferred, never_awaited
from inferlet.errors import ErrorCode
from inferlet.generation import Generator, GenStep
from inferlet.output import Output

_AWAIT = "did you forget `await`? A coroutine has to be awaited before it is used, as in (await step.execute()).tokens"
_WHOLE_TEXT = "`async for text in g.texts()` gives the text as it comes, and `await g.collect_text()` all of it"
_MAIN = "put it into `async def main(input)`, which the engine calls, or write `asyncio.run(...)` around a call of your own function"
_IN_ASYNC = (
    "write `async def` in place of the `def` around it; where there is none, put it into `async def main(input)`, which the engine calls"
)
_SAMPLERS = "make one by Sampler.argmax(), Sampler.top_p(temperature, p), Sampler.top_k(temperature, k) or Sampler.min_p(temperature, p)"
_NAMES = {
    ("Context", "chat"): "ask the model by `answer = await ctx.ask(text)`",
    ("Context", "complete"): "ask the model by `answer = await ctx.ask(text)`",
    ("Adapter", "destroy"): "`Adapter.delete(model, name)` deletes an adapter",
    ("Context", "load"): "`Context.open(model, name)` opens a snapshot",
    ("Context", "assistant_text"): "`ctx.assistant(text)` adds what the model is to have said",
    ("Sampler", "nucleus"): "it is called top_p: Sampler.top_p(temperature, p)",
    ("Sampler", "temperature"): _SAMPLERS,
    ("Generator", "stream"): _WHOLE_TEXT,
}
"""What is looked for under other names, by the class and the name."""
_SPAWN = "`child = runtime.spawn(program, args)` starts another program, and `await child` gives what it returned"
_FUNCTIONS = {("inferlet.runtime", name): _SPAWN for name in ("call", "launch", "run", "start")}
"""The same of functions, by the module and the name."""
_CALLS = (
    (
        r"missing 1 required positional argument: 'sampler'",
        "give it first, such as Sampler.argmax(): generate(Sampler.argmax(), max_tokens=64)",
    ),
    (r"collect_json\(\) takes 1 positional argument", "the schema has a name: collect_json(schema=...)"),
    (
        r"collect_json\(\) got an unexpected keyword argument",
        "it takes schema=... and parse=...; options such as max_tokens are those of generate",
    ),
    (r"^Context\.(open|take|delete)\(\) missing", "the model comes first, also where a context calls it: Context.open(model, name)"),
    (r"^Adapter\.(open|create|delete)\(\) missing", "the model comes first: Adapter.open(model, name)"),
    (r"^Sampler(\.__init__)?\(\) ", _SAMPLERS),
    (r"^Response(\.__init__|\.json)?\(\) takes ", "the status and the headers have names: Response(body, status=404, headers={...})"),
    (r"^Response(\.__init__|\.json)?\(\) got an unexpected", "it takes a body, status=... and headers=..."),
    (
        r"^spawn\(\) got an unexpected keyword",
        "runtime.spawn takes the input of a child as one value behind its name: runtime.spawn(program, {'name': value})",
    ),
    (r"^send\(\) takes ", "session.send takes one value: a text, a list or a dict"),
)
"""What functions of the SDK are called with by mistake: a pattern of what CPython says, and what to write."""
_AT_ONCE = "this call gives its value at once: leave `await` out"
_AWAITED = {
    **dict.fromkeys(("bool", "bytes", "dict", "float", "int", "str", "tuple"), _AT_ONCE),
    **dict.fromkeys(("Ebnf", "Forward", "Grammar", "JsonSchema", "Regex", "Sampler", "Subscription", "Tokenizer"), _AT_ONCE),
    "Adapter": "this call gives the adapter at once: leave `await` out",
    "NoneType": "this call is done when it returns: leave `await` out",
    "Model": "Model.load gives the model at once: leave `await` out",
    "Context": "this call gives the context at once: leave `await` out",
    "TextStream": _WHOLE_TEXT,
    "EventStream": "loop over it: `async for event in ...`",
    "method": "the call lacks its parentheses: write `()` behind the name",
    "function": "the call lacks its parentheses: write `()` behind the name",
    "list": "await each of them, as by `await asyncio.gather(*them)`; a list of plain values is there at once: leave `await` out",
    "async_generator": "loop over it: `async for one in ...`",
}
"""What to do where a value is awaited that cannot be, by its type."""
_RUN = "run the generator and await what it gives: await g.collect_text()"
_EXECUTE = "execute the step and await what it gives: out = await step.execute(), and then out.tokens"
_NO_ENVIRONMENT = "a program has no environment; give values by the input, as in `pie run PROGRAM -- --name VALUE`"
_NO_FILES = "a program has no files of the machine but in folders given by `pie run --mount DIR=/data`; it "
_OWN_FILES = "keeps its own below /scratch, and "
_OTHER_FILES = "gets others by its input or from its client (inferlet.session.receive_file)"
_ASYNC_FOR = "write `async for` in place of `for`, in an `async def`: what comes has to be awaited"
_ASYNC_ITERATED = frozenset({"Request", "async_generator"})
"""Types of what only `async for` reads; generators and streams of texts are read by both."""
_ASYNC_WITH = frozenset({"Condition", "Lock", "Semaphore", "TaskGroup", "Timeout"})
"""Types that only `async with` enters."""
_OF_CHILDREN = frozenset({"cancel", "pid", "wait"})
"""What children have, and what they return does not."""
_OF_STEPS = frozenset({"clear_sampler", "execute", "finish_reason", "tokens"})
"""What steps and their outputs have, and a list does not."""
_TOKENS_OF_STEPS = (
    "a plain `for` over a generator gives the tokens of each step and blocks the program; write `async for step in g` and "
    "`out = await step.execute()`"
)
_MAX_SHOWN = 2
"""Calls that a message names."""
_MAX_FRAMES = 32
"""Innermost frames of an error whose variables are looked through."""
_SCRATCH = "/scratch"
_SDK = "inferlet"
_COMPILED = frozenset(
    """
    aiohttp bcrypt cryptography cv2 duckdb faiss gevent grpc h5py jax jaxlib lightgbm llvmlite lxml matplotlib mlx msgspec
    numba numpy onnxruntime orjson pandas PIL polars psutil psycopg2 pyarrow pydantic pydantic_core regex rpds safetensors
    scipy sentencepiece shapely sklearn skimage spacy tensorflow tiktoken tokenizers torch torchaudio torchvision
    transformers triton ujson uvloop vllm xgboost
    """.split()  # noqa: SIM905
)
"""Packages that are compiled, or stand on one that is."""


def hint(error: BaseException, files: Collection[str]) -> str | None:
    """What to do about an error of a program with these files; None where its message says enough."""
    if isinstance(error, ModuleNotFoundError):
        return _missing_module(error, files)
    if isinstance(error, NameError):
        return f"write `from inferlet import {error.name}`" if error.name in inferlet.__all__ else None
    if isinstance(error, AttributeError):
        return _unasked_input(error, files) or _missing_attribute(error)
    if isinstance(error, TypeError):
        return _of_type(error, files)
    if isinstance(error, SyntaxError):
        return _outside_async(error.msg or "")
    if isinstance(error, FileNotFoundError | PermissionError):
        return _missing_file(error, files)
    if isinstance(error, KeyError):
        return _NO_ENVIRONMENT if _is_of_the_environment(error.__traceback__) else None
    return None


def _of_type(error: TypeError, files: Collection[str]) -> str | None:
    message = str(error)
    of_input = _hidden_input(error) or _unasked_input(error, files)
    return of_input or _not_awaited(error) or _wrong_type(message) or _wrong_loop(message) or _wrong_call(error)


def _missing_attribute(error: AttributeError) -> str | None:
    owner = error.obj
    if isinstance(owner, CoroutineType):
        return _AWAIT
    if owner is None and (lost := _nothing_found(error.name or "")):
        return lost
    if error.name in _OF_CHILDREN and not isinstance(owner, type) and (spawned := _awaited_child(owner)):
        return spawned
    if isinstance(owner, list) and error.name in _OF_STEPS:
        return _TOKENS_OF_STEPS
    if isinstance(owner, GenStep) and error.name in {*Output.__dataclass_fields__, *vars(Output)}:
        return _EXECUTE
    if isinstance(owner, ModuleType):
        return _FUNCTIONS.get((owner.__name__, error.name or ""))
    kind = owner if isinstance(owner, type) else type(owner)
    return _NAMES.get((kind.__name__, error.name or "")) if kind.__module__.startswith(_SDK) else None


def _awaited_child(owner: object) -> str | None:
    """What to say of a value that is used as a child, in a program that has awaited one where it started it."""
    if type(owner).__module__.startswith(_SDK) or not runtime.awaited:
        return None
    return (
        f"`await runtime.spawn({runtime.awaited[-1]!r})` gives what the child returned; leave the first `await` out, as in "
        "`child = runtime.spawn(...)`, and then `await child`"
    )


def _nothing_found(name: str) -> str | None:
    """What to say of None of which the attribute of this name is used, in a program in which `open` gave None.

    None where what was to be opened has no such attribute: then it comes from elsewhere.
    """
    calls = [call for call in _absent.found_nothing if hasattr(getattr(inferlet, call.partition(".")[0]), name)]
    if not calls:
        return None
    shown = " and ".join(f"`{call}`" for call in calls[-_MAX_SHOWN:])
    return f"{shown} found nothing of that name and gave None; test it by `is None`, and make what is missing{_absent.there_are(calls[-1])}"


def _wrong_loop(message: str) -> str | None:
    """What to say of a plain loop or `with` over what is awaited, of the reverse, and of None."""
    if message.startswith("'NoneType' object does not support the context manager protocol"):
        return _nothing_found("__enter__")
    kind = re.match(r"'(?:\w+\.)*(\w+)' object (is not iterable|does not support the (asynchronous )?context manager protocol)", message)
    if kind is not None and kind[2] == "is not iterable":
        return _ASYNC_FOR if kind[1] in _ASYNC_ITERATED else None
    if kind is not None and kind[3] and "Did you mean" not in message:
        return "write `with` in place of `async with`" if hasattr(getattr(inferlet, kind[1], None), "__enter__") else None
    if kind is not None and kind[3] is None:
        return "write `async with` in place of `with`" if kind[1] in _ASYNC_WITH and "Did you mean" not in message else None
    plain = re.match(r"'async for' requires an object with __aiter__ method, got (list|tuple|dict|set|range|str|generator)$", message)
    return None if plain is None else f"a {plain[1]} is there at once: write `for` in place of `async for`"


def _hidden_input(error: TypeError) -> str | None:
    """What to say where `input` is called, and is the parameter of that name."""
    frame = _innermost(error.__traceback__)
    if frame is None or "input" not in frame.f_locals:
        return None
    hidden = frame.f_locals["input"]
    if callable(hidden) or str(error) != f"'{type(hidden).__name__}' object is not callable":
        return None
    return f"`input` is the parameter of {frame.f_code.co_name} here; a client is asked by `await inferlet.session.receive()`"


def _unasked_input(error: TypeError | AttributeError, files: Collection[str]) -> str | None:
    """What to say where `input` is used as the input of the program, and is the function of Python."""
    is_of_it = error.obj is builtins.input if isinstance(error, AttributeError) else "builtin_function_or_method" in str(error)
    frame = _innermost_of(files, error.__traceback__) if is_of_it else None
    if frame is None or "input" not in frame.f_code.co_names or "input" in frame.f_globals:
        return None
    code = frame.f_code
    takes_nothing = not (code.co_argcount or code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS))
    if code.co_name == "main" and takes_nothing:
        head = "async def" if code.co_flags & inspect.CO_COROUTINE else "def"
        return f"`input` is a function of Python here; write `{head} main(input)`, and it is the input of the program"
    return (
        f"`input` is a function of Python in {code.co_name}; the input of the program is the parameter of `async def main(input)`, "
        "and everywhere `inferlet.input`"
    )


def _not_awaited(error: TypeError) -> str | None:
    """What to say where a call of the SDK was not awaited, and what it gave is used as the value."""
    if re.search(rf"\b{Deferred.__name__}\b", str(error)) is None:
        return None
    step = error.__traceback__
    frames: deque[FrameType] = deque(maxlen=_MAX_FRAMES)
    while step is not None:
        frames.append(step.tb_frame)
        step = step.tb_next
    for frame in reversed(frames):
        for value in tuple(frame.f_locals.values()):
            # The type itself: what a program has may lie about its class.
            if type(value) is Deferred and (told := value._forgotten()):
                return f"did you forget `await`? {told}"
    return f"did you forget `await`? {never_awaited[-1]}" if never_awaited else _AWAIT


def _wrong_type(message: str) -> str | None:
    if re.search(r"\bcoroutine\b", message):
        return _AWAIT
    # What CPython says of `await g`: "'Generator' object can't be awaited".
    awaited = re.search(r"\b(Generator|GenStep)\b.*\bawait", message)
    if awaited is not None:
        return _RUN if awaited[1] == Generator.__name__ else _EXECUTE
    if re.search(r"""["']GenStep["']|GenStep found""", message):
        return f"{_WHOLE_TEXT}; of a step, {_EXECUTE}"
    other = re.search(r"'?(\w+)'? (?:object )?can't be (?:awaited|used in 'await')", message)
    return None if other is None else _AWAITED.get(other[1])


def _wrong_call(error: TypeError) -> str | None:
    """What to say of a function of the SDK that was called with other arguments than it takes."""
    message = str(error)
    frame, called = _innermost(error.__traceback__), re.match(r"\w+", message)
    named = None if frame is None or called is None else frame.f_globals.get(called[0])
    if named is not None and not str(getattr(named, "__module__", "")).startswith(_SDK):
        return None  # the program has a function or a class of that name
    short = re.sub(r"^(?:\w+\.)+(?=(?:\w+\.__init__|\w+)\()", "", message)
    return next((advice for pattern, advice in _CALLS if re.search(pattern, message) or re.search(pattern, short)), None)


def _outside_async(message: str) -> str | None:
    if message == "'await' outside function":
        return _MAIN
    return _IN_ASYNC if message.endswith("outside async function") else None


def _missing_file(error: OSError, files: Collection[str]) -> str | None:
    if not isinstance(error.filename, str):
        return None
    if is_of_scratch(error) and _is_scratch_off():
        return None  # the reason is in the message, and nothing that the program could make helps
    if error.filename.startswith(_SCRATCH):
        folder = posixpath.dirname(posixpath.normpath(error.filename))
        if isinstance(error, PermissionError) or posixpath.isdir(folder):
            return None
        return f"there is no folder {folder}; make it before, by os.makedirs({folder!r}, exist_ok=True)"
    path = posixpath.normpath(error.filename)
    if path in files:
        return f"a program finds its own files by its loader: __loader__.get_data({path!r}) gives the bytes of this one"
    return f"{_NO_FILES}{'' if _is_scratch_off() else _OWN_FILES}{_OTHER_FILES}"


def _is_scratch_off() -> bool:
    refusal = files_of_engine.refusal()
    return refusal is not None and refusal.code == ErrorCode.FILES_OFF


def is_of_scratch(error: OSError) -> bool:
    """Whether an error is of the program's own folder, or of `/`, in which that folder would be."""
    named = [os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes) and name]
    paths = [posixpath.normpath(posixpath.join("/", name)) for name in named]
    return any(path in {"/", _SCRATCH} or path.startswith(f"{_SCRATCH}/") for path in paths)


def _is_of_the_environment(traceback: TracebackType | None) -> bool:
    """Whether an error comes out of `os.environ`."""
    frame = _innermost(traceback)
    return frame is not None and frame.f_code is type(os.environ).__getitem__.__code__


def _innermost(traceback: TracebackType | None) -> FrameType | None:
    """The frame that an error comes out of."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return None if traceback is None else traceback.tb_frame


def _innermost_of(files: Collection[str], traceback: TracebackType | None) -> FrameType | None:
    """The innermost frame of an error that is of one of these files."""
    found = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename in files:
            found = traceback.tb_frame
        traceback = traceback.tb_next
    return found


def _missing_module(error: ModuleNotFoundError, files: Collection[str]) -> str | None:
    name = error.name
    # Of some modules the loader says itself why they are not there.
    if name is None or " in a program: " in str(error):
        return None
    top = name.partition(".")[0]
    own = sorted({path.partition("/")[0].removesuffix(".py") for path in files if path.endswith(".py")})
    if top in own and name != top:
        return f"the program has {top!r}, and no such module in it; check the name"
    if top in _COMPILED:
        return f"{top!r} is a compiled package or needs one, and a program loads pure Python only; use another one, or do this outside"
    if top in sys.stdlib_module_names:
        return "this part of the standard library needs what a program does not have; the guide `languages` lists what there is for it"
    elsewhere = next(_modules_named(top, files), None)
    if elsewhere is not None:
        return f"the program has the file {elsewhere}: write `import {_dotted(elsewhere)}`"
    near = difflib.get_close_matches(top, [*own, *sys.stdlib_module_names, "inferlet"], 1, 0.75)
    meant = f"did you mean {near[0]!r}? " if near else ""
    return (
        f"{meant}{top!r} is neither in the standard library nor among the files of the program. The package that has it, which may "
        "have another name, is named under `python` of [dependencies] in Pie.toml or in requirements.txt, and installed where the "
        'folder is run: `pie run .`. A lone file names it in a comment at its top: `# /// script`, `# dependencies = ["PACKAGE"]`, '
        "`# ///`, a line each"
    )


def _modules_named(name: str, files: Collection[str]) -> Iterator[str]:
    """The files deeper in the program that are a module of that name."""
    for path in sorted(files):
        if path.endswith((f"/{name}.py", f"/{name}/__init__.py")):
            yield path


def _dotted(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
