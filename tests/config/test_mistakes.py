"""Each mistake in a configuration: one error that says where it is, what is wrong and what it could be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pie.config import Flags, load
from pie.errors import PieError

MODEL = "[model.a]\npath = 'pie-tiny'\n"

FILES = {
    # Names
    "unknown section": ("[sever]\nport = 1", ":1 sever: there is no section 'sever'; did you mean 'server'?"),
    "unknown section without a neighbour": ("x = 1\n[zzzzzz]\na = 1", ":1 x: there is no section 'x'; there are engine, limits, runtime, snapshots, server"),
    "unknown key": ("[server]\n\nprot = 1", ":3 server.prot: there is no setting 'prot' in [server]; did you mean 'port'?"),
    "key of another case": ("[server]\nPort = 1", ":2 server.Port: there is no setting 'Port' in [server]; did you mean 'port'?"),
    "key with a hyphen": ("[limits]\ncpu-s = 1", "did you mean 'cpu_s'?"),
    "unknown limit": ("[limits]\nmemory = 1", ":2 limits.memory: there is no setting 'memory' in [limits]; did you mean 'memory_bytes'?"),
    "key without a neighbour": ("[client]\nzzz = 1", "there is no setting 'zzz' in [client]; there are url, user"),
    "unknown key of a model": (MODEL + "kv_byte = 1", ":3 model.a.kv_byte: there is no setting 'kv_byte' in [model]; did you mean 'kv_bytes'?"),
    "unknown key of the second model": ("[[model]]\nname='a'\npath='x'\n[[model]]\nname='b'\npat='y'", ":6 model.pat: there is no setting 'pat' in [model]; did you mean 'path'?"),
    "name inside a named model": (MODEL + "name = 'b'", "pie.toml:3: the name of [model.a] stands in its header; change that, and leave name out"),
    "a very long key": ("[server]\n" + "x" * 5000 + " = 1", "x..."),
    # Values
    "text for a number": ("[server]\nport = 'http'", ":2: server.port = 'http' is not possible; give a whole number from 0 to 65535"),
    "text of a number": ("[server]\nport = '80'", ":2: server.port = '80' is not possible; give a whole number from 0 to 65535"),
    "number too large": ("[server]\nport = 65536", "server.port = 65536 is not possible; give a whole number from 0 to 65535"),
    "negative number": ("[server]\nport = -1", "server.port = -1 is not possible; give a whole number from 0 to 65535"),
    "fraction for a count": ("[server]\nport = 1.5", "server.port = 1.5 is not possible; give a whole number from 0 to 65535"),
    "truth for a number": ("[server]\nport = true", "server.port = True is not possible; give a whole number from 0 to 65535"),
    "number for a text": ("[server]\nhost = 7", "server.host = 7 is not possible; give a text that is not empty"),
    "empty text": ("[server]\nhost = ''", "server.host = '' is not possible; give a text that is not empty"),
    "list for a number": ("[limits]\ncpu_s = [1]", "limits.cpu_s = [1] is not possible; give a number from 0.001 to 1000000000, or \"none\""),
    "text for a time": ("[limits]\ncpu_s = '5m'", "limits.cpu_s = '5m' is not possible; give a number from 0.001"),
    "no number": ("[limits]\ncpu_s = nan", "limits.cpu_s = nan is not possible"),
    "infinity": ("[limits]\ncpu_s = inf", "limits.cpu_s = inf is not possible"),
    "none where a limit has to be": ("[limits]\nresources = 'none'", "limits.resources = 'none' is not possible; give a whole number from 16"),
    "unknown unit": ("[limits]\nmemory_bytes = '1 GigaByte'", "limits.memory_bytes = '1 GigaByte' is not possible; give a whole number from 65536 to 4294967296, or a text with a unit, as in \"256MiB\""),
    "size that is too large": ("[limits]\nmemory_bytes = '5GiB'", "limits.memory_bytes = 5368709120 is not possible"),
    "negative size": ("[limits]\nmemory_bytes = '-1GiB'", "limits.memory_bytes = '-1GiB' is not possible"),
    "size of many digits": (f"[limits]\nmemory_bytes = '{'9' * 5000}KiB'", "limits.memory_bytes = '999"),
    "size of half a byte": ("[limits]\nmemory_bytes = '0.0001KiB'", "limits.memory_bytes = '0.0001KiB' is not possible"),
    "integer beyond 64 bits": (f"[limits]\nmemory_bytes = {10**30}", "limits.memory_bytes = 1000000000000000000000000000000 is not possible"),
    "unknown choice": (MODEL + "driver = 'gpu'", ":3: model.a.driver = 'gpu' is not possible; give \"cpu\" or \"cuda\" or \"reference\" or \"dummy\""),
    "unknown dtype": (MODEL + "dtype = 'int8'", "model.a.dtype = 'int8' is not possible; give \"auto\" or \"float32\" or \"bfloat16\""),
    "text for a list": ("[server]\nallowed_origins = 'http://a'", "give a list of texts"),
    "list of other things": ("[server]\nallowed_origins = [1]", "server.allowed_origins = [1] is not possible; give a list of texts"),
    "NUL in a path": ("[engine]\ncache_dir = 'a\\u0000b'".replace("'", '"'), "engine.cache_dir = 'a\\x00b' is not possible; give a path"),
    "a very long value": ("[server]\nport = '" + "x" * 10_000 + "'", "xxx... is not possible"),
    # Shapes
    "value for a section": ("server = 1", ":1 server is not a table; write [server] on a line of its own"),
    "array of sections": ("[[server]]\nport = 1", "server is not a table; write [server]"),
    "value for the models": ("model = 'x'", ":1 model is not a model; write [model.NAME], or [[model]] with a name"),
    "settings of no model": ("[model]\npath = 'x'", ":2 model.path is not a model; write [model.NAME], or [[model]] with a name"),
    "list of no models": ("model = [1, 2]", "is not a model; write [model.NAME], or [[model]] with a name"),
    "model without a name": ("[[model]]\npath = 'x'", ":1 model: a model has no name; add name = ..."),
    "model without a path": ("[model.a]\ndriver = 'dummy'", ":1 model.a: the model 'a' has no path; give its folder, or \"pie-tiny\", the embedded one"),
    "model with a bad name": ("[[model]]\nname = '../x'\npath = 'x'", ":2: name = '../x' is not possible; give a name of letters, digits"),
    "model with a number for a name": ("[[model]]\nname = 3\npath = 'x'", ":2: name = 3 is not possible"),
    "two models of one name": ("[[model]]\nname='a'\npath='x'\n[[model]]\nname='a'\npath='y'", ":4 model: there are two models named 'a'; give each a name of its own"),
    # Damage
    "no TOML": ("[server]\nport 1", ":2: the file is not TOML: Expected '=' after a key"),
    "a text without an end": ("[server]\nhost = \"x", ":2: the file is not TOML: "),
    "a table twice": ("[server]\n[server]\n", ":2: the file is not TOML: Cannot declare"),
    "a key twice": ("[server]\nport = 1\nport = 2\n", "the file is not TOML: Cannot overwrite a value"),
    "both shapes of models": (MODEL + "[[model]]\nname = 'b'\n", "the file is not TOML: "),
    "deep": ("a = " + "[" * 20_000, "pie.toml"),
    "a number of many digits": ("[server]\nport = " + "9" * 5000, "pie.toml: the file is not TOML: Exceeds the limit"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_mistake_in_the_file(name: str, tmp_path: Path) -> None:
    text, words = FILES[name]
    file = tmp_path / "pie.toml"
    file.write_text(text, encoding="utf-8")
    refused(words, Flags(file=file), {}, names=str(file))


def test_a_file_that_is_not_there_or_not_readable(tmp_path: Path) -> None:
    absent, large, latin = tmp_path / "absent.toml", tmp_path / "large.toml", tmp_path / "latin.toml"
    large.write_bytes(b"#" * (1 << 20) + b"\n")
    latin.write_bytes(b"[client]\n# \xfc\n")
    refused("cannot be read (No such file or directory); check its path", Flags(file=absent), {}, names=str(absent))
    refused("cannot be read (No such file or directory)", Flags(), {"PIE_CONFIG": str(absent)}, names=str(absent))
    refused("cannot be read (Is a directory)", Flags(file=tmp_path), {}, names=str(tmp_path))
    refused("cannot be read (embedded null byte)", Flags(file=Path("a\0b")), {}, names="a")
    refused("is larger than 1048576 bytes", Flags(file=large), {}, names=str(large))
    refused(":2: the file is not UTF-8", Flags(file=latin), {}, names=str(latin))


VARIABLES = {
    "PIE_SERVER__PROT": "PIE_SERVER__PROT: there is no setting 'prot' in [server]; did you mean 'port'?",
    "PIE_SEVER__PORT": "the environment variable PIE_SEVER__PORT: there is no section 'SEVER'; did you mean 'SERVER'?",
    "PIE_SERVER__PORT": "PIE_SERVER__PORT: server.port = 'x' is not possible; give a whole number from 0 to 65535",
    "PIE_LIMITS__RESOURCES": "PIE_LIMITS__RESOURCES: limits.resources = 'x' is not possible; give a whole number from 16",
    "PIE_MODEL__B__PATH": "PIE_MODEL__B__PATH names no model, or two; the models are set by PIE_MODEL__PIE_TINY__...",
    "PIE_MODEL__PIE_TINY__RUN_AHEAD": "RUN_AHEAD: model.pie-tiny.run_ahead = 'x' is not possible; give true or false",
    "PIE_MODEL__PATH": "PIE_MODEL__PATH names no model",
    "PIE_MODEL__PIE_TINY__NAME": "PIE_MODEL__PIE_TINY__NAME cannot name a model; write its name in the configuration file",
    "PIE_MODEL__PIE_TINY__DRIVR": "there is no setting 'drivr' in [model]; did you mean 'driver'?",
    "PIE_SERVER__": "there is no setting '' in [server]",
}


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_mistake_in_the_environment(variable: str) -> None:
    refused(VARIABLES[variable], Flags(), {variable: "x"}, names=variable)


@pytest.mark.parametrize(("variable", "value"), [("PIE_SERVER_PORT", "80"), ("PIE_LIMITS_MEMORY_BYTES", "1GiB"), ("PIE_CLIENT_USER", "me")])
def test_a_variable_with_an_underscore_too_few(variable: str, value: str) -> None:
    section, name = variable.removeprefix("PIE_").split("_", 1)
    words = f"the environment variable {variable} is not a setting; write it as PIE_{section}__{name}"
    refused(words, Flags(), {variable: value}, names=variable)
    refused(words, Flags(), {variable: value, "PIE_SERVER__PORT": "1"}, names=variable)


def test_a_variable_that_means_two_models(tmp_path: Path) -> None:
    file = tmp_path / "pie.toml"
    file.write_text("[model.a-b]\npath = 'pie-tiny'\n[model.a_b]\npath = 'pie-tiny'\n")
    refused("names no model, or two", Flags(file=file), {"PIE_MODEL__A_B__DRIVER": "dummy"}, names="PIE_MODEL__A_B__DRIVER")


FLAGS: dict[str, tuple[dict[str, Any], str, str]] = {
    "limit of no form": ({"limits": ("cpu_s",)}, "--limit 'cpu_s' is not a setting; write it as NAME=NUMBER", "invalid-config"),
    "unknown limit": ({"limits": ("cpu=1",)}, "--limit: there is no setting 'cpu' in [limits]; did you mean 'cpu_s'?", "invalid-config"),
    "limit that is no number": ({"limits": ("cpu_s=x",)}, "--limit: limits.cpu_s = 'x' is not possible", "invalid-config"),
    "limit out of range": ({"limits": ("resources=1",)}, "--limit: limits.resources = 1 is not possible; give a whole number from 16", "invalid-config"),
    "limit of half a thing": ({"limits": ("resources=99.5",)}, "--limit: limits.resources = 99.5 is not possible", "invalid-config"),
    "limit of NaN": ({"limits": ("cpu_s=nan",)}, "--limit: limits.cpu_s = 'nan' is not possible", "invalid-config"),
    "port out of range": ({"values": {"server.port": 70_000}}, "--port: server.port = 70000 is not possible", "invalid-config"),
    "no model": ({"models": ("absent",)}, "--model 'absent' is neither a folder nor a configured model (those are: pie-tiny)", "invalid-model"),
    "an empty name": ({"models": ("",)}, "--model '' is neither a folder", "invalid-model"),
    "no path": ({"models": ("a\0b",)}, "is neither a folder", "invalid-model"),
    "a long name": ({"models": ("x" * 9000,)}, "x...' is neither a folder", "invalid-model"),
    "size of many digits": ({"limits": (f"memory_bytes={'9' * 5000}B",)}, "--limit: limits.memory_bytes = '999", "invalid-config"),
    "one model twice": ({"models": ("pie-tiny", "pie-tiny")}, "--model names two models 'pie-tiny'", "invalid-config"),
}  # fmt: skip


@pytest.mark.parametrize("name", FLAGS)
def test_a_mistake_in_the_flags(name: str) -> None:
    given, words, code = FLAGS[name]
    refused(words, Flags(**given), {}, names="--", code=code)


def refused(words: str, flags: Flags, variables: dict[str, str], *, names: str, code: str = "invalid-config") -> None:
    with pytest.raises(PieError) as caught:
        load(flags, variables=variables)
    message = caught.value.message
    assert caught.value.code == code
    assert words in message
    assert names in message
    assert len(message) < 2000
    assert "\n" not in message
