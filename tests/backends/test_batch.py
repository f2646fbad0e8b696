"""The typed view of a batch."""

import hashlib

import numpy as np
import pytest

from pie.batch import Batch
from pie.batch_layout import ARRAYS, BatchArrays
from pie.errors import PieError
from support.arenas import ONE, Feed, batch
from tools import gen_driver_docs


def test_the_view_shows_the_arena_without_a_copy() -> None:
    feeds = [
        Feed([5, 6, 7], [3], rows=[0, 2, 2], masks={1: [1, 1]}),
        Feed(
            [8], [1, 6], start=5, rows=[0], positions=[40], adapter=(7 << 32) + 1, adapter_version=3, zo_seed=1 << 33, media=9, reread=True
        ),
    ]
    built = batch(feeds, page_size=4, copies=[(0, 2)], swap_outs=[(2, 5)], swap_ins=[(4, 7)], batch_id=(9 << 32) + 4)
    view = Batch.from_buffer(built.words.tobytes())
    assert (view.id, view.page_size, view.n_tokens, view.n_seqs, view.n_rows) == ((9 << 32) + 4, 4, 4, 2, 4)
    assert view.tokens.tolist() == [5, 6, 7, 8]
    assert view.positions.tolist() == [0, 1, 2, 40]
    assert view.qo_indptr.tolist() == [0, 3, 4]
    assert view.kv_indptr.tolist() == [0, 1, 3]
    assert view.kv_indices.tolist() == [3, 1, 6]
    assert view.kv_last_page_len.tolist() == [3, 2]
    assert view.seq_context.tolist() == view.seq_request.tolist() == [1, 2]
    assert view.seq_adapter.tolist() == [0, (7 << 32) + 1]
    assert view.seq_adapter_version.tolist() == [0, 3]
    assert view.seq_zo_seed.tolist() == [[0, 0, 0], [1, 0, 2]]
    assert view.seq_media.tolist() == [0, 9]
    assert view.seq_reread.tolist() == [0, 1]
    assert (view.seq_follows.tolist(), view.before) == ([0, 0], 0)
    next_one = batch([Feed([0], [0], start=3, follows=4)], page_size=4, batch_id=2, before=1 << 33)
    assert (next_one.seq_follows.tolist(), next_one.before) == ([5], 1 << 33)
    assert view.row_token.tolist() == [0, 2, 2, 3]
    assert view.row_sampler.tolist() == [[0, 0, 0, ONE, 0, 0, 0, 3]] * 3 + [[0, 0, 0, ONE, 0, 0, 0, 6]]
    assert view.row_slot.tolist() == [0, 1, 2, 0]
    assert view.row_draws.tolist() == [1] * 4
    assert view.row_keep.tolist() == [0] * 4
    assert (view.row_mask_indptr.tolist(), view.row_mask_runs.tolist()) == ([0] * 5, [])
    assert (view.mask_indptr.tolist(), view.mask_runs.tolist()) == ([0, 0, 2, 2, 2], [1, 1])
    assert view.copy_src.tolist() + view.copy_dst.tolist() == [0, 2]
    assert view.swap_out_src.tolist() + view.swap_out_dst.tolist() == [2, 5]
    assert view.swap_in_src.tolist() + view.swap_in_dst.tolist() == [4, 7]
    assert np.shares_memory(view.tokens, view.words)
    assert not view.tokens.flags.writeable


@pytest.mark.parametrize("words", [[], [0] * 96, [0x42454950, 1, 96] + [0] * 93, [0x42454950, 3, 97] + [0] * 93])
def test_what_is_no_batch_is_refused(words: list[int]) -> None:
    with pytest.raises(PieError, match="is not a batch"):
        Batch.from_buffer(np.array(words, np.uint32))


def test_the_layout_of_a_version_stays() -> None:
    """A change of any word's or array's place, name or shape needs another version: drivers outside know this one."""
    assert gen_driver_docs.constants() == {
        "MAGIC": 0x42454950,
        "VERSION": 3,
        "HEADER_WORDS": 96,
        "FIELDS_AT": 16,
        "SAMPLER_WORDS": 8,
        "COUNT": 29,
    }
    named = [it for enum in ("Head", "Field", "Keep") for it in gen_driver_docs.variants(enum)]
    assert len(named) == 9 + 29 + 3
    places = " ".join(f"{it.name}{it.shape}={it.value}" for it in named)
    assert hashlib.sha256(places.encode()).hexdigest()[:16] == "efdd9bb0e44b2190"


def test_the_view_has_every_array_of_the_layout() -> None:
    assert all(field.shape for field in gen_driver_docs.variants("Field"))
    names = [name for name in dir(BatchArrays) if not name.startswith("_") and name != "array"]
    assert sorted(names) == sorted(ARRAYS) == sorted(field.name for field in gen_driver_docs.variants("Field"))
