"""`pie run PROGRAM -- --help` of Rust programs whose manifest does not say what they take: nothing is built or run."""

from __future__ import annotations

from pathlib import Path

import pytest

from pie._engine import pack_program
from pie.bakery.manifest import new_manifest, parse_manifest, usage
from pie.bakery.project import open_project
from pie.cli.program import usage_of_built
from support.command import pie
from support.folders import write

CRATE = '[package]\nname = "poet"\nversion = "0.1.0"\n'
MANIFEST = '[package]\nname = "poet"\nversion = "1.2.3"\ndescription = "writes"\n'
COMPONENT = b"\0asm\x0d\0\x01\0" + b"\0\x05\x04name"
TYPED = """use inferlet::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
struct Input {
    /// The name: of a person.
    full_name: Option<String>,
    #[serde(default)]
    n: u32, // The count: of the words.
    r#type: u8,
    words: Vec<String>,
}

#[inferlet::main]
async fn main(input: Input) -> Result<String> {
    Ok(String::new())
}
"""
MAIN = "#[inferlet::main]\nasync fn main(input: Input) -> Result<String> { Ok(input.what) }\n"


def help_of(path: Path) -> str:
    done = pie("run", str(path), "--dummy", "--", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "A [parameters] table in a Pie.toml" in done.stdout
    return done.stdout


@pytest.mark.parametrize(("manifest", "title"), [(None, "poet\n"), (MANIFEST, "poet 1.2.3: writes\n")])
def test_the_fields_of_the_input_are_those_of_its_struct(tmp_path: Path, manifest: str | None, title: str) -> None:
    folder = tmp_path / "poet"
    write(folder, {"Cargo.toml": CRATE, "src/lib.rs": TYPED} | ({} if manifest is None else {"Pie.toml": manifest}))
    assert help_of(folder).startswith(
        f"{title}"
        "  --full-name  Option<String>  (may be left out)\n"
        "  --n          u32             (may be left out)\n"
        "  --type       u8              (required)\n"
        "  --words      Vec<String>     (required)\n"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("#[inferlet::main]\nasync fn main() -> Result<()> { Ok(()) }\n", "It takes no input."),
        ("#[inferlet::main]\nasync fn main(input: serde_json::Value) -> Result<()> { Ok(()) }\n", "It takes any input."),
        ("struct Input { what: String }\n" + MAIN, "  --what  String  (required)\n"),
        (
            "struct Input {\n    a: u8, b: Vec<(u8, u8)>,\n}\n" + MAIN,
            "  --a  u8             (required)\n  --b  Vec<(u8, u8)>  (required)\n",
        ),
        ('struct Input {\n    /** a, } */\n    #[doc = "b: c,"]\n    a: u8, /* b: u8, */\n}\n' + MAIN, "  --a  u8  (required)\n"),
        (TYPED.replace("n: u32", '#[serde(rename = "count")] n: u32'), "  --count      u32             (may be left out)\n"),
        (
            'struct Value { a: u8, #[serde(rename = "default")] b: u8 }\n' + MAIN.replace("Input", "Value"),
            "  --a        u8  (required)\n  --default  u8  (required)\n",
        ),
        (TYPED.replace("n: u32", "#[serde(skip)] n: u32"), "  --full-name  Option<String>  (may be left out)\n  --type "),
        (TYPED.replace("n: u32", "#[serde(flatten)] n: More"), "Its main takes an Input, as JSON"),
        ("#[inferlet::main]\nfn main(words: Vec<String>) -> Result<()> { Ok(()) }\n", "Its main takes a Vec<String>, as JSON"),
        (TYPED.replace("#[derive", '#[serde(rename_all = "camelCase")]\n#[derive'), "  --fullName  Option<String>"),
        (TYPED.replace("struct", '#[serde(rename_all = "camelCase")]\n/// What it takes.\nstruct'), "  --fullName  Option<String>"),
        (TYPED.replace("struct", '#[serde(rename_all = "kebab-case")]\nstruct'), "Its main takes an Input, as JSON"),
        ("struct Input(u8);\n" + MAIN, "Its main takes an Input, as JSON"),
        ("#[inferlet::main]\nfn main(\n    words: Vec<u8>,\n) -> Result<()> { Ok(()) }\n", "Its main takes a Vec<u8>, as JSON"),
        (TYPED.replace("struct", "pub(crate) struct"), "--full-name"),
        ("#[inferlet::main]\nfn main(pair: (u8, u8)) -> Result<()> { Ok(()) }\n", "Its main takes a (u8, u8), as JSON"),
        ("// no entry\n", "Its manifest does not say what it takes."),
    ],
)
def test_another_input_is_told_as_far_as_the_files_say_it(tmp_path: Path, text: str, says: str) -> None:
    folder = tmp_path / "poet"
    write(folder, {"Cargo.toml": CRATE, "src/lib.rs": text})
    assert says in help_of(folder)


def test_a_file_that_is_not_rust_holds_nobody_up(tmp_path: Path) -> None:
    folder = tmp_path / "poet"
    for text in (
        "#[inferlet::main]\nfn main(x:" + " " * 100_000 + "y",
        "#[inferlet::main]" * 50_000,
        "/*" * 200_000,
        '"' + "\\\\" * 200_000,
    ):
        write(folder, {"Cargo.toml": CRATE, "src/lib.rs": text})
        assert "Its manifest does not say what it takes." in help_of(folder)


def test_a_build_says_the_same_as_the_help(tmp_path: Path) -> None:
    folder = tmp_path / "poet"
    write(folder, {"Cargo.toml": CRATE, "src/lib.rs": "struct Input { what: String }\n" + MAIN})
    project = open_project(folder)
    assert usage_of_built(project, new_manifest(project.name)) == "poet 0.1.0\n  --what  String  (required)"
    assert "\n  --what  String  (required)\n" in help_of(folder)
    manifest = parse_manifest(MANIFEST + '[parameters.what]\ntype = "string"\n')
    assert usage_of_built(project, manifest) == usage(manifest)
    write(folder, {"src/lib.rs": "fn own() { inferlet::args(); }\n" + MAIN})
    assert usage_of_built(project, new_manifest("poet")) == "poet 0.1.0\nIt reads its arguments itself."


def test_a_built_program_is_told_that_nothing_says_what_it_takes(tmp_path: Path) -> None:
    (tmp_path / "poet.wasm").write_bytes(COMPONENT)
    assert help_of(tmp_path / "poet.wasm").startswith("poet\nIt has no manifest that says what it takes.\n")
    (tmp_path / "packed.wasm").write_bytes(pack_program("component", {}, "", MANIFEST, None, COMPONENT))
    assert help_of(tmp_path / "packed.wasm").startswith("poet 1.2.3: writes\nIts manifest does not say what it takes.\n")


def test_a_built_program_that_reads_its_arguments_gets_them(tmp_path: Path) -> None:
    section = b"\0\x05\x04args"
    (tmp_path / "own.wasm").write_bytes(COMPONENT + section)
    done = pie("run", str(tmp_path / "own.wasm"), "--dummy", "--", "--help")
    # It is launched, and such a component exports nothing that could run.
    assert done.returncode == 1
    assert "[parameters]" not in done.stdout
