"""What sequences share is found: every token sees the pages that it saw, some of them together with others."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from random import Random
from typing import Any

import numpy as np
import pytest

from pie.backends.cuda import prefixes as module
from pie.backends.cuda.prefixes import MOST_PREFIXES, Lists, Prefixes, Shared
from pie.models.spec import Attention

PAGE_SIZE, N_PAGES = 4, 4096
HEADS = Attention(4, 2, 8, 1.0, head_norms=False)
PAGE_BYTES = 2 * PAGE_SIZE * 2 * 8 * 2

Path = list[int]


def prefixes(*, least_bytes: int = 0) -> Prefixes:
    return Prefixes(HEADS, PAGE_SIZE, N_PAGES, element_bytes=2, least_bytes=least_bytes)


def lists_of(paths: Sequence[Path], *, n_new: Sequence[int] | None = None, last: Sequence[int] | None = None) -> Lists:
    """Sequences of these pages, that compute `n_new` tokens and have `last` slots of the last page in use, or one."""
    n_new, last = n_new or [1] * len(paths), last or [1] * len(paths)
    ends = np.cumsum([0, *map(len, paths)])
    arrays = (np.cumsum([0, *n_new]), ends, np.array([page for path in paths for page in path]), np.array(last))
    return Lists(*(array.astype(np.uint32) for array in arrays))


def prefix_of_each(found: Shared | None, lists: Lists) -> list[Path]:
    """The prefix of each sequence, and none where it takes part in none. Checks that all arrays say the same."""
    n_seqs = len(lists.kv_last_page_len)
    if found is None:
        return [[]] * n_seqs
    of_token: dict[int, Path] = {}
    for prefix, (first, end) in enumerate(zip(found.qo_indptr[:-1], found.qo_indptr[1:], strict=True)):
        pages = found.kv_indices[found.kv_indptr[prefix] : found.kv_indptr[prefix + 1]].tolist()
        assert pages
        for row in range(first, end):
            token = int(found.rows[row])
            assert token not in of_token
            assert found.row_of_token[token] == row
            of_token[token] = pages
    assert len(found.rows) == found.qo_indptr[-1]
    assert np.flatnonzero(found.has_row).tolist() == sorted(of_token)
    each = []
    for seq in range(n_seqs):
        tokens = range(lists.qo_indptr[seq], lists.qo_indptr[seq + 1])
        each.append(of_token.get(tokens[0], []))
        assert all(of_token.get(token, []) == each[-1] for token in tokens)
        own = found.own_indices[found.own_indptr[seq] : found.own_indptr[seq + 1]].tolist()
        whole = lists.kv_indices[lists.kv_indptr[seq] : lists.kv_indptr[seq + 1]].tolist()
        assert each[-1] + own == whole
        # What a sequence computes in this batch, it sees by causality: that is not shared.
        length = (len(whole) - 1) * PAGE_SIZE + int(lists.kv_last_page_len[seq])
        assert len(each[-1]) * PAGE_SIZE <= length - len(tokens)
    return each


def find(paths: Sequence[Path], **more: Sequence[int]) -> list[Path]:
    lists = lists_of(paths, **more)
    return prefix_of_each(prefixes().find(lists), lists)


def random_tree(random: Random, names: count[int]) -> list[Path]:
    """Paths that leave each other anywhere, some of them at once."""
    paths = [[next(names) for _ in range(random.randint(1, 5))]]
    for _ in range(random.randint(0, 12)):
        base = random.choice(paths)
        paths.append(base[: random.randint(0, len(base))] + [next(names) for _ in range(random.randint(1, 4))])
    if random.random() < 0.3:
        # The same pages behind another first one: no tree.
        paths.append([next(names), *random.choice(paths)[1:], next(names)])
    return paths


def test_of_random_trees_every_token_sees_the_pages_that_it_saw() -> None:
    """Batch by batch, where sequences grow, come, go and change their places."""
    n_shared = 0
    for seed in range(300):
        random, names, finding = Random(seed), count(1), prefixes()
        paths = random_tree(random, names)
        for _ in range(4):
            last = [random.randint(1, PAGE_SIZE) for _ in paths]
            lengths = [(len(path) - 1) * PAGE_SIZE + slots for path, slots in zip(paths, last, strict=True)]
            n_new = [1 if random.random() < 0.7 else random.randint(1, min(length, 9)) for length in lengths]
            lists = lists_of(paths, n_new=n_new, last=last)
            n_shared += sum(map(bool, prefix_of_each(finding.find(lists), lists)))
            if random.random() < 0.5:
                paths = [[*path, next(names)] if random.random() < 0.4 else path for path in paths]
            else:
                random.shuffle(paths)
                del paths[random.randint(2, 9) :]
    print(f"{n_shared} sequences with a prefix")
    assert n_shared > 2000


def test_what_all_have_is_shared_up_to_where_they_leave_it() -> None:
    assert find([[7, 8, 9, seq] for seq in range(20, 25)]) == [[7, 8, 9]] * 5


def test_nothing_is_shared_by_one_or_by_strangers() -> None:
    assert find([[7, 8, 9]]) == [[]]
    assert find([[7, 8, 9], [1, 2, 3]]) == [[], []]


def test_sharing_that_begins_in_the_middle_is_none() -> None:
    assert find([[1, 7, 8, 20], [2, 7, 8, 21]]) == [[], []]
    # Nor does it spoil what is shared in front of it.
    assert find([[5, 6, 1, 7, 20], [5, 6, 2, 7, 21]]) == [[5, 6]] * 2


def test_the_page_of_the_last_token_is_never_shared() -> None:
    """Full or not; two sequences may read the same token again."""
    assert find([[7, 8, 9], [7, 8, 9]], last=[2, 2]) == [[7, 8]] * 2
    assert find([[7, 8, 9], [7, 8, 9]], last=[4, 4]) == [[7, 8]] * 2
    assert find([[7], [7]]) == [[], []]


def test_pages_that_a_chunk_writes_are_its_own() -> None:
    """Of five tokens, of which the first is the last of its page."""
    assert find([[7, 8, 20, 21], [7, 8, 22, 23]], n_new=[5, 5], last=[4, 4]) == [[7, 8]] * 2
    assert find([[7, 20, 21], [7, 22, 23]], n_new=[9, 5], last=[1, 4]) == [[], []]


def test_a_sequence_takes_the_node_that_saves_it_most() -> None:
    """Eight of a root of 2 pages: four also share 6 more, two of the others one more."""
    root, branch = [1, 2], [1, 2, 3, 4, 5, 6, 7, 8]
    paths = [[*branch, seq] for seq in range(20, 24)] + [[*root, 9, seq] for seq in (24, 25)] + [[*root, seq] for seq in (26, 27)]
    assert find(paths) == [branch] * 4 + [root] * 4


def test_where_a_tree_is_read_costs_less_than_a_page_too_many_for_each_prefix() -> None:
    """What is read is compared with what would be, of every tree in which a prefix is chosen."""
    for seed in range(100):
        random = Random(seed)
        paths = random_tree(random, count(1))
        lists = lists_of(paths)
        each = prefix_of_each(prefixes().find(lists), lists)
        chosen = {tuple(prefix) for prefix in each if prefix}
        n_read = sum(map(len, chosen)) + sum(len(path) - len(prefix) for path, prefix in zip(paths, each, strict=True))
        assert n_read <= sum(map(len, paths)) - sum(map(len, chosen))


def test_what_saves_too_little_is_read_by_each() -> None:
    paths = [[1, 2, 3, seq] for seq in range(20, 24)]
    lists = lists_of(paths)
    # Three of four do not read three pages.
    assert prefixes(least_bytes=9 * PAGE_BYTES).find(lists) is not None
    assert prefixes(least_bytes=9 * PAGE_BYTES + 1).find(lists) is None


def test_long_chunks_read_a_prefix_as_often_together() -> None:
    """Of 64 tokens and 2 heads of a group each: a tile of 128 rows each, alone or together."""
    paths = [[1, 2, *range(100 * seq, 100 * seq + 16)] for seq in (1, 2)]
    assert find(paths, n_new=[64, 64], last=[4, 4]) == [[], []]
    assert find(paths, n_new=[32, 32], last=[4, 4]) != [[], []]


def test_no_more_prefixes_than_there_is_room_for() -> None:
    paths = [[10 * pair + page for page in range(1 + pair % 5)] + [1000 + 2 * pair + half] for pair in range(40) for half in range(2)]
    each = find(paths)
    chosen = {tuple(prefix) for prefix in each if prefix}
    assert len(chosen) == MOST_PREFIXES
    # Eight of one page are left out, and none of more.
    assert sorted(map(len, chosen)) == sorted(1 + pair % 5 for pair in range(40))[8:]


def test_what_was_found_holds_while_sequences_grow() -> None:
    finding, paths = prefixes(), [[1, 2, 3, seq] for seq in range(20, 24)]
    for step in range(10):
        lists = lists_of([[*path, *range(100 * seq, 100 * seq + step)] for seq, path in enumerate(paths, 1)])
        assert prefix_of_each(finding.find(lists), lists) == [[1, 2, 3]] * 4


def test_what_was_found_is_the_same_object_while_sequences_grow() -> None:
    """By that it is known that the device has it already. At once, and each apart from the others; others come back."""
    random, finding = Random(3), prefixes()
    paths = [[1, 2, 3, 100 * seq] for seq in range(1, 7)]
    first = finding.find(lists_of(paths))
    assert first is not None
    for step in range(1, 40):
        for seq in random.sample(range(6), random.choice([0, 0, 1, 3, 6])):
            paths[seq].append(100 * (seq + 1) + step)
        lists = lists_of(paths)
        found = finding.find(lists)
        assert prefix_of_each(found, lists) == [[1, 2, 3]] * 6
        assert found is not None
        assert found.rows is first.rows
    paths[5][3] = 99
    lists = lists_of(paths)
    assert prefix_of_each(finding.find(lists), lists) == [[1, 2, 3]] * 6


def test_a_page_that_becomes_another_one_is_noticed_at_once() -> None:
    """And those behind it, in the list of one sequence: it was evicted and restored, say."""
    finding, paths = prefixes(), [[1, 2, 3, seq] for seq in range(20, 24)]
    lists = lists_of(paths)
    finding.find(lists)
    paths[2] = [1, 50, 51, 22]
    lists = lists_of(paths)
    assert prefix_of_each(finding.find(lists), lists) == [[1, 2, 3], [1, 2, 3], [], [1, 2, 3]]


def test_a_sequence_that_becomes_shorter_than_its_prefix_is_noticed() -> None:
    finding, paths = prefixes(), [[1, 2, 3, seq] for seq in range(20, 24)]
    finding.find(lists_of(paths))
    paths[0] = [1, 2, 60]
    lists = lists_of(paths)
    assert prefix_of_each(finding.find(lists), lists)[0] in ([1, 2], [])


def test_who_comes_in_the_place_of_another_one_shares_at_once() -> None:
    """What was found before would hold: the new one has no prefix of which it would not begin with."""
    finding, paths = prefixes(), [[1, 2, 20], [1, 2, 21], [3, 4, 22]]
    assert prefix_of_each(finding.find(lists_of(paths)), lists_of(paths)) == [[1, 2], [1, 2], []]
    paths[2] = [1, 2, 23]
    assert prefix_of_each(finding.find(lists_of(paths)), lists_of(paths)) == [[1, 2]] * 3


def test_what_becomes_alike_is_shared_after_some_batches() -> None:
    """Nothing tells of it: the sequences are the same ones."""
    finding, apart, alike = prefixes(), [[1, 10, 12, 20], [1, 11, 13, 21]], [[1, 2, 12, 20], [1, 2, 13, 21]]
    assert prefix_of_each(finding.find(lists_of(apart)), lists_of(apart)) == [[1], [1]]
    found = [prefix_of_each(finding.find(lists_of(alike)), lists_of(alike)) for _ in range(65)]
    assert found[0] == [[1], [1]]
    assert found[-1] == [[1, 2], [1, 2]]


@pytest.mark.parametrize("seed", range(5))
def test_where_all_lists_are_too_many_known_prefixes_are_looked_for(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Whoever comes and goes, the lists are looked at again when as many page indices have been saved up."""
    monkeypatch.setattr(module, "_PAGES_EACH", 10)
    monkeypatch.setattr(module, "_MOST_PAGES", 5000)
    random, finding = Random(seed), prefixes()
    deep, flat = list(range(1, 101)), [1, *range(200, 250)]
    paths = [[*(deep if seq % 3 else flat), *range(300 + 10 * seq, 304 + 10 * seq)] for seq in range(40)]
    lists = lists_of(paths)
    first = prefix_of_each(finding.find(lists), lists)
    assert first == [deep if seq % 3 else flat for seq in range(40)]
    looked: list[int] = []
    by_all = finding._by_all

    def noting(lists: Lists, *arrays: Any) -> Any:
        looked.append(len(lists.kv_indices))
        return by_all(lists, *arrays)

    monkeypatch.setattr(finding, "_by_all", noting)
    for _ in range(5):
        some = random.sample(range(40), 30)
        lists = lists_of([*(paths[seq] for seq in some), [2000, 2001]])
        assert prefix_of_each(finding.find(lists), lists) == [*(first[seq] for seq in some), []]
    assert looked == []
    for _ in range(200):
        random.shuffle(some)
        finding.find(lists_of([paths[seq] for seq in some]))
    assert len(looked) == 1
