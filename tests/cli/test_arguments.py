"""The folding of `-- ARGS` into one object, case by case."""

import io
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pie.cli.arguments import MAX_INPUT_BYTES, doubts, parse_arguments, parse_input, parse_value, read_input
from pie.errors import PieError


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], {}),
        (["--name", "Ann"], {"name": "Ann"}),
        (["--name=Ann"], {"name": "Ann"}),
        (["--name=a=b"], {"name": "a=b"}),
        (["--name="], {"name": ""}),
        (["--max-tokens", "5"], {"max_tokens": 5}),
        (["-n", "5"], {"n": 5}),
        (["--verbose"], {"verbose": True}),
        (["--verbose", "--n", "1"], {"verbose": True, "n": 1}),
        (["--offset", "-3"], {"offset": -3}),
        (["--offset", "-.5"], {"offset": "-.5"}),
        (["--t", "0.5"], {"t": 0.5}),
        (["--flag", "false"], {"flag": False}),
        (["--list", "[1, 2]"], {"list": [1, 2]}),
        (["--object", '{"a": 1}'], {"object": {"a": 1}}),
        (["--broken", '{"a": 1'], {"broken": '{"a": 1'}),
        (["--text", '"quoted"'], {"text": '"quoted"'}),
        (["--none", "null"], {"none": "null"}),
        (["--x", "NaN"], {"x": "NaN"}),
        (["--x", "1e999"], {"x": "1e999"}),
        (["--x", '{"a": 1e999}'], {"x": '{"a": 1e999}'}),
        (["--x", "1" * 5000], {"x": "1" * 5000}),
        (["one", "2", "--k", "v", "three"], {"k": "v", "_positional": ["one", 2, "three"]}),
        (["-"], {"_positional": ["-"]}),
        (["--a", "1", "--a", "2"], {"a": 2}),
        (["--name", "-"], {"name": "-"}),
    ],
)
def test_arguments_become_one_object(arguments: list[str], expected: dict[str, object]) -> None:
    assert parse_arguments(arguments) == expected


@given(st.lists(st.text(max_size=12), max_size=8))
def test_no_argument_is_lost_or_refused(arguments: list[str]) -> None:
    folded = parse_arguments(arguments)
    assert len(folded) <= len(arguments)
    assert bool(folded) == bool(arguments)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-b", "--", "c"], ["'--' behind the first '--' is the value of 'b'; leave it out: "]),
        (["--", "c"], ["'--' behind the first '--' is a word without a name; leave it out: "]),
        (["--f=--"], ["'--' behind the first '--' is the value of 'f'; leave it out: "]),
        (["--f", "1e400"], ["the number 1e400 is out of range, so that the value of 'f' stays a text; give a smaller one"]),
        (["-9e999"], ["the number -9e999 is out of range, so that a word without a name stays a text"]),
        (["--f", '{"a": [1e400]}', "1e400"], ["the number 1e400 is out of range, so that the value of 'f'", "the number 1e400"]),
        (["--n", "9" * 5000], [f"the number {'9' * 80}... is out of range"]),
        (["--title", "1e400", "--f", "1e308", "-0", "--", "x"], ["'--' behind the first '--' is a word without a name"]),
        (["--x", "NaN", "--y", "null", "--z", "1.5.2", "-", "---", "--e="], []),
    ],
)
def test_what_was_probably_meant_otherwise_is_told(arguments: list[str], expected: list[str]) -> None:
    told = doubts(arguments, {"title"})
    assert len(told) == len(expected), told
    assert all(line.startswith(beginning) for line, beginning in zip(told, expected, strict=True)), told


def test_deep_nesting_stays_text() -> None:
    text = "[" * 100_000
    assert parse_value(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        ("null", None),
        ('"x"', "x"),
        ("plain words", {"input": "plain words"}),
        ("NaN", {"input": "NaN"}),
        ("", {"input": ""}),
        ("nul", {"input": "nul"}),
        ("5 apples", {"input": "5 apples"}),
        ('"quoted', {"input": '"quoted'}),
        ("1e308", 1e308),
        ("1e-999", 0.0),
    ],
)
def test_launch_text(text: str, expected: object) -> None:
    assert parse_input(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1', "Expecting ',' delimiter at character 8"),
        ("{bad", "Expecting property name enclosed in double quotes at character 2"),
        (" [1,]", "at character"),
        ('{"a": 1} and more', "Extra data at character 10"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": 1e999}', "the number 1e999 is out of range at character 7"),
        ("-1e999", "the number -1e999 is out of range at character 1"),
        ("9" * 5000, "is out of range at character 1"),
        ("[" * 100_000, "nests too deeply"),
        ('["\\ud800"]', "half a character"),
    ],
)
def test_an_input_that_was_meant_to_be_json_and_is_none_is_refused(text: str, reason: str) -> None:
    with pytest.raises(PieError, match=r"^--input .* is not JSON: .*; correct it, or give it as a text: -- --input TEXT$") as refused:
        read_input((), text)
    assert refused.value.code == "invalid-argument"
    assert reason in refused.value.message
    assert len(refused.value.message) < 400
    assert read_input(("--input", text), None) == {"input": text}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'{"a": 1}\n', {"a": 1}),
        (b"\xef\xbb\xbf[1, 2]", [1, 2]),
        (b"two words\r\n", {"input": "two words"}),
        (b"two\nlines\n\n", {"input": "two\nlines\n"}),
        (b"", {"input": ""}),
    ],
)
def test_an_input_may_lie_in_a_file_or_come_on_stdin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, expected: object
) -> None:
    (tmp_path / "input").write_bytes(content)
    assert read_input((), f"@{tmp_path / 'input'}") == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert read_input((), "-") == expected


def test_what_cannot_be_read_as_an_input_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"ab\xff")
    (tmp_path / "broken").write_text('{"a": 1')
    with (tmp_path / "large").open("wb") as file:
        file.truncate(MAX_INPUT_BYTES + 1)
    for name, said in {
        "absent": "cannot be read: No such file or directory; check the path, or give the text itself in quotes",
        ".": "cannot be read: it is not a regular file",
        "bad": "is not UTF-8 at byte 2",
        "broken": "is not JSON: Expecting ',' delimiter at character 8",
        "large": f"has more than {MAX_INPUT_BYTES} bytes",
    }.items():
        with pytest.raises(PieError, match=r"^--input '@") as refused:
            read_input((), f"@{tmp_path / name}")
        assert refused.value.code == "invalid-argument"
        assert said in refused.value.message


def test_a_text_that_begins_like_a_file_is_given_in_quotes() -> None:
    assert read_input((), '"@home"') == "@home"
    assert read_input((), '"-"') == "-"
