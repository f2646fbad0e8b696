"""The gate of the rows: each way in which rows, tests and the committed counts can disagree is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import gen_surface, surface
from tools.surface import Claim, Row, SurfaceError, faults

FORK = Row("PY-001", "python", "Context", "present", ("Context.fork",), "`ctx.fork()`")
IDLE = Row("RS-001", "rust", "Scheduling", "absent", ("Context::idle",), "`ctx.idle()`")
RULE = Row("SES-001", "all", "Session", "present", (), "Receive never times out")
SHOWN = [Claim("PY-001", "a test", None), Claim("SES-001", "a vector", ("python", "javascript", "rust"))]
NOW = {("Context", "python"): 1, ("Scheduling", "rust"): 0, ("Session", "all"): 1}


def test_what_agrees_has_no_fault() -> None:
    assert faults([FORK, IDLE, RULE], SHOWN, NOW) == []


@pytest.mark.parametrize(
    ("claims", "committed", "fault"),
    [
        ([*SHOWN, Claim("PY-999", "a test", None)], NOW, "a test names PY-999, which is not a row"),
        (SHOWN[1:], NOW, "PY-001 is present, and no test in python shows it: `ctx.fork()`"),
        ([*SHOWN, Claim("RS-001", "a test", None)], NOW, "a test shows RS-001, which is absent: `ctx.idle()`"),
        (SHOWN, NOW | {("Context", "python"): 2}, "Context in python: 1 rows are present, 2 were"),
        (SHOWN, NOW | {("Tools", "rust"): 1}, "Tools in rust: 0 rows are present, 1 were"),
        ([*SHOWN, Claim("PY-001", "b", ("rust",))], NOW, "b names PY-001 of python, but runs in rust"),
        ([SHOWN[0], Claim("SES-001", "b", ("python", "rust"))], NOW, "SES-001 is present, and no test in javascript shows it: "),
        ([SHOWN[0], Claim("SES-001", "b", None)], NOW, "SES-001 is present, and no test in javascript or rust shows it: "),
    ],
    ids=["unknown", "without a test", "absent", "fell", "an area is gone", "other language", "rule in two", "rule in one"],
)
def test_each_fault_is_told(claims: list[Claim], committed: dict[tuple[str, str], int], fault: str) -> None:
    [told] = faults([FORK, IDLE, RULE], claims, committed)
    assert told.startswith(fault)


LINE = "PY-001\tpython\tContext\tpresent\tContext.fork Context\t`ctx.fork()`\n"


def test_rows_are_read() -> None:
    [row] = surface.read_rows("# why\n" + "\t".join(surface.FIELDS) + "\n" + LINE)
    assert row == Row("PY-001", "python", "Context", "present", ("Context.fork", "Context"), "`ctx.fork()`")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the first line of the rows must name the fields id, language, area, state, names, row"),
        (LINE * 2, "PY-001: an id is that of one row"),
        (LINE.replace("PY-001", "PY1"), "'PY1' is not an id"),
        (LINE.replace("\tpython", "\tperl"), "'perl' is not a language"),
        (LINE.replace("present", "there"), "'there' is not a state"),
        (LINE.replace("\t`", " `"), "has 5 fields; expected 6"),
    ],
    ids=["no head", "twice", "id", "language", "state", "fields"],
)
def test_a_file_that_is_none_is_refused(text: str, message: str) -> None:
    head = "\t".join(surface.FIELDS) + "\n" if text else ""
    with pytest.raises(SurfaceError, match=message):
        surface.read_rows(head + text)


def test_tests_of_every_kind_name_their_rows() -> None:
    assert list(surface.claims_of_vector("v", '{"languages": ["python", "typescript"], "shows": "JS-001"}')) == [
        Claim("JS-001", "v", ("python", "javascript"))
    ]
    python = """
@pytest.mark.rows("PY-001..002")
def test_one(): pass

@pytest.mark.rows("RS-001")
@pytest.mark.parametrize("language", LANGUAGES)
async def test_each(language): pass

@pytest.mark.rows("JS-001")
@pytest.mark.parametrize("language", ["python", "typescript"])
def test_two(language): pass

@pytest.mark.rows("SES-001", language="rust")
def test_named(): pass

@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.rows("PY-003"))])
def test_case(n): pass
"""
    assert list(surface.claims_of_python("p", python)) == [
        Claim("PY-001", "p::test_one", None),
        Claim("PY-002", "p::test_one", None),
        Claim("RS-001", "p::test_each", ("python", "javascript", "rust", "client", "command line")),
        Claim("JS-001", "p::test_two", ("python", "javascript", "client", "command line")),
        Claim("SES-001", "p::test_named", ("rust",)),
        Claim("PY-003", "p::test_case", None),
    ]
    node = "test('[JS-001..002] fill-ins chain', () => {});\nconst CASES = [['[JS-003] a mistake', x[0], '[1] no']];"
    assert list(surface.claims_of_node("n", node)) == [
        Claim("JS-001", "n: fill-ins chain", ("javascript",)),
        Claim("JS-002", "n: fill-ins chain", ("javascript",)),
        Claim("JS-003", "n: a mistake", ("javascript",)),
    ]
    rust = "// rows: RS-001..002\n#[test]\nfn forks() {}\n"
    assert list(surface.claims_of_rust("r", rust)) == [Claim(row, "r: forks", ("rust",)) for row in ("RS-001", "RS-002")]


def test_a_mark_above_no_test_is_refused() -> None:
    with pytest.raises(SurfaceError, match="p: a mark `rows` stands above no test"):
        list(surface.claims_of_python("p", 'pytestmark = pytest.mark.rows("PY-001")\n'))


def test_a_comment_above_no_test_is_refused() -> None:
    with pytest.raises(SurfaceError, match="r:1: the comment `rows` stands above no function and no module"):
        list(surface.claims_of_rust("r", "// rows: RS-001\n"))


@pytest.mark.parametrize("text", ["", "forks", "RS-1 and RS-2", "RS-001..", "RS-002..001"])
def test_what_is_not_a_list_of_rows_is_refused(text: str) -> None:
    for read, told in (
        (surface.claims_of_rust, f"// rows: {text}\nfn forks() {{}}\n"),
        (surface.claims_of_python, f'@pytest.mark.rows("{text}")\ndef test_it(): pass\n'),
        (surface.claims_of_vector, f'{{"shows": "{text}"}}'),
    ):
        with pytest.raises(SurfaceError, match="is not a list of rows"):
            list(read("t", told))


def test_a_row_of_rust_that_is_absent_has_a_name_that_present_rows_have_not() -> None:
    present = Row("RS-002", "rust", "Context", "present", ("Context::fork", "session::send"), "fork")
    text = gen_surface.names([present, IDLE])
    assert "named(inferlet::Context::fork);" in text
    assert "use inferlet::session::send as _;" in text
    assert "named::<fn() -> Missing>(Context::idle);" in text
    for names in ((), ("Context::fork",), ("Context::idle", "scheduling")):
        row = Row("RS-003", "rust", "Context", "absent", names, "row")
        if names:
            with pytest.raises(SurfaceError, match="RS-003"):
                gen_surface.names([present, row])
        else:
            assert "Absent" not in gen_surface.names([present, row])


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree of one present row with its test, in step."""
    for name, text in {
        "tests/surface/rows.tsv": "\t".join(surface.FIELDS) + "\n" + LINE,
        "tests/test_context.py": 'import pytest\n\n@pytest.mark.rows("PY-001")\ndef test_fork(): pass\n',
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(gen_surface, "ROOT", tmp_path)
    monkeypatch.setattr(gen_surface.generated, "ROOT", tmp_path)
    for name in ("ROWS", "COUNTS", "PAGE", "NAMES"):
        path: Path = getattr(gen_surface, name)
        monkeypatch.setattr(gen_surface, name, tmp_path / path.relative_to(Path(surface.__file__).parents[1]))
    assert run(monkeypatch) == 0
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["tools/gen_surface.py", *arguments])
    return gen_surface.main(arguments)


def test_what_was_written_is_in_step(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "--check") == 0
    page = (tree / "docs/reference/surface.md").read_text()
    assert "| Context | 1 of 1 |" in page
    assert "| PY-001 | present | `ctx.fork()` | `test_context.py::test_fork` |" in page
    assert (tree / "tests/surface/counts.tsv").read_text().endswith("\nContext\tpython\t1\n")


@pytest.mark.parametrize("file", ["docs/reference/surface.md", "tests/surface/counts.tsv", "rust/inferlet/tests/names.rs"])
def test_a_stale_file_is_told(tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], file: str) -> None:
    (tree / file).write_text("" if file.endswith(".tsv") else "stale")
    assert run(monkeypatch, "--check") == 1
    assert f"out of step with tests/surface/rows.tsv and the tests: {file}" in capsys.readouterr().err


def test_a_row_that_goes_is_refused_when_writing_too(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tree / "tests/surface/rows.tsv"
    rows.write_text(rows.read_text().replace("present", "absent"))
    (tree / "tests/test_context.py").write_text("def test_fork(): pass\n")
    for arguments in ((), ("--check",)):
        assert run(monkeypatch, *arguments) == 1
        assert capsys.readouterr().err == "Context in python: 0 rows are present, 1 were\n"


def test_what_is_absent_is_printed(tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with (tree / "tests/surface/rows.tsv").open("a") as rows:
        rows.write("JS-001\tjavascript\tScheduling\tabsent\tContext.idle\t`ctx.idle()`\n")
    for area, printed in (("Scheduling", "JS-001\tScheduling\t`ctx.idle()`\n"), ("Context", "")):
        assert run(monkeypatch, "--absent", area) == 0
        assert capsys.readouterr().out == printed
    assert run(monkeypatch, "--absent", "Market") == 1
    assert "there is no area 'Market'; the areas are Context, Scheduling, and all" in capsys.readouterr().err
