"""The kept inputs of the fuzzers are written as their tool writes them."""

from tools import fuzz_corpus
from tools.fuzz import OPERATIONS, TARGETS


def test_bytes_are_written_in_printable_characters_and_read_again() -> None:
    every = bytes(range(256)) + b"\\x41 \\n: "
    line = fuzz_corpus.escaped(every)
    assert line.isascii()
    assert line.isprintable()
    assert fuzz_corpus.plain(line) == every


def test_kept_inputs_are_read_and_written_the_same(tmp_path, monkeypatch) -> None:
    kept = {path.stem: path.read_bytes() for path in fuzz_corpus.CORPUS.iterdir()}
    assert set(kept) <= set(TARGETS) - set(OPERATIONS)
    inputs = {target: fuzz_corpus.read(target) for target in kept}
    monkeypatch.setattr(fuzz_corpus, "CORPUS", tmp_path)
    for target, content in kept.items():
        fuzz_corpus.write(target, inputs[target])
        assert fuzz_corpus.path_of(target).read_bytes() == content


def test_names_of_kept_inputs_are_their_own() -> None:
    for path in fuzz_corpus.CORPUS.iterdir():
        inputs = fuzz_corpus.read(path.stem)
        names = [one.name for one in inputs if one.name != fuzz_corpus.LEARNT]
        assert len(set(names)) == len(names), path
        assert len({one.content for one in inputs}) == len(inputs), path


def test_the_bytes_of_kept_inputs_are_bounded_and_the_shortest_stay(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(fuzz_corpus, "CORPUS", tmp_path)
    named = fuzz_corpus.Input("by hand", b"x" * 5_000)
    learnt = [fuzz_corpus.Input(fuzz_corpus.LEARNT, bytes([n % 256]) * n) for n in range(1, 2_000)]
    fuzz_corpus.write("protocol", [*learnt, named, fuzz_corpus.Input(fuzz_corpus.LEARNT, named.content)])
    kept = fuzz_corpus.read("protocol")
    assert kept[0] == named
    assert kept[1:] == learnt[: len(kept) - 1]
    assert len(kept) - 1 <= fuzz_corpus.MAX_LEARNT
