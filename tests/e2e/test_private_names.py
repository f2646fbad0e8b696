"""The interpreter of programs is as the runtime takes it to be, also where no documentation promises that."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from support import private_names
from support.command import pie


def test_the_interpreter_of_programs_is_as_what_finds_leftovers_takes_it_to_be(tmp_path: Path) -> None:
    shutil.copy(private_names.__file__, tmp_path / "p.py")
    done = pie("run", "p.py", "--dummy", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    other = json.loads(done.stdout)
    assert other == [], "this is not so any more; find what takes its place, and have inferlet._runtime.leftovers use that"
