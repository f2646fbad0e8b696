"""What to do about common mistakes, where the words of Python do not say it. Looked up when a program has failed."""

from __future__ import annotations

import difflib
import os
import posixpath
import re
import sys
from collections.abc import Collection, Iterator
from types import CoroutineType, TracebackType

import inferlet
from inferlet.generation import Generator, GenStep
from inferlet.output import Output

_AWAIT = "did you forget `await`? A coroutine has to be awaited before it is used, as in (await step.execute()).tokens"
_RUN = "run the generator and await what it gives: await g.collect_text()"
_EXECUTE = "execute the step and await what it gives: out = await step.execute(), and then out.tokens"
_NO_ENVIRONMENT = "a program has no environment; give values by the input, as in `pie run PROGRAM -- --name VALUE`"
_NO_FILES = (
    "a program has no files of the machine but in folders given by `pie run --mount DIR=/data`; it keeps its own below /scratch, "
    "and gets others by its input or from its client (inferlet.session.receive_file)"
)
_SCRATCH = "/scratch"
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
        return _missing_attribute(error)
    if isinstance(error, TypeError):
        return _wrong_type(str(error))
    if isinstance(error, FileNotFoundError | PermissionError):
        return _missing_file(error, files)
    if isinstance(error, KeyError):
        return _NO_ENVIRONMENT if _is_of_the_environment(error.__traceback__) else None
    return None


def _missing_attribute(error: AttributeError) -> str | None:
    owner = error.obj
    if isinstance(owner, CoroutineType):
        return _AWAIT
    if isinstance(owner, GenStep) and error.name in {*Output.__dataclass_fields__, *vars(Output)}:
        return _EXECUTE
    return None


def _wrong_type(message: str) -> str | None:
    if re.search(r"\bcoroutine\b", message):
        return _AWAIT
    # What CPython says of `await g`: "'Generator' object can't be awaited".
    awaited = re.search(r"\b(Generator|GenStep)\b.*\bawait", message)
    if awaited is None:
        return None
    return _RUN if awaited[1] == Generator.__name__ else _EXECUTE


def _missing_file(error: OSError, files: Collection[str]) -> str | None:
    if not isinstance(error.filename, str) or error.filename.startswith(_SCRATCH):
        return None
    path = posixpath.normpath(error.filename)
    if path in files:
        return f"a program finds its own files by its loader: __loader__.get_data({path!r}) gives the bytes of this one"
    return _NO_FILES


def _is_of_the_environment(traceback: TracebackType | None) -> bool:
    """Whether an error comes out of `os.environ`."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback is not None and traceback.tb_frame.f_code is type(os.environ).__getitem__.__code__


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
        f"{meant}{top!r} is neither in the standard library nor among the files of the program. A package is named under "
        "`python` of [dependencies] in Pie.toml or in requirements.txt, and installed where the folder is run: `pie run .`. "
        f'A lone file names it in a comment at its top: `# /// script`, `# dependencies = ["{top}"]`, `# ///`, a line each'
    )


def _modules_named(name: str, files: Collection[str]) -> Iterator[str]:
    """The files deeper in the program that are a module of that name."""
    for path in sorted(files):
        if path.endswith((f"/{name}.py", f"/{name}/__init__.py")):
            yield path


def _dotted(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
