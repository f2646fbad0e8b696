"""The typed view of a batch."""

import numpy as np
import pytest

from pie.batch import Batch
from pie.errors import PieError
from support.arenas import Feed, batch


def test_the_view_shows_the_arena_without_a_copy() -> None:
    built = batch(
        [Feed([5, 6, 7], [3], rows=[2]), Feed([8], [1, 6], start=5, rows=[0])], page_size=4, copies=[(0, 2)], batch_id=(9 << 32) + 4
    )
    view = Batch.from_buffer(built.words.tobytes())
    assert (view.id, view.page_size, view.n_tokens, view.n_seqs, view.n_rows) == ((9 << 32) + 4, 4, 4, 2, 2)
    assert view.tokens.tolist() == [5, 6, 7, 8]
    assert view.positions.tolist() == [0, 1, 2, 5]
    assert view.qo_indptr.tolist() == [0, 3, 4]
    assert view.kv_indptr.tolist() == [0, 1, 3]
    assert view.kv_indices.tolist() == [3, 1, 6]
    assert view.kv_last_page_len.tolist() == [3, 2]
    assert view.row_token.tolist() == [2, 3]
    assert view.seq_context.tolist() == view.seq_request.tolist() == [1, 2]
    assert view.copy_src.tolist() + view.copy_dst.tolist() == [0, 2]
    assert view.mask_indptr.tolist() == [0] * 5
    assert np.shares_memory(view.tokens, view.words)
    assert not view.tokens.flags.writeable


@pytest.mark.parametrize("words", [[], [0] * 64, [0x42454950, 2, 64] + [0] * 61, [0x42454950, 1, 65] + [0] * 61])
def test_what_is_no_batch_is_refused(words: list[int]) -> None:
    with pytest.raises(PieError, match="is not a batch"):
        Batch.from_buffer(np.array(words, np.uint32))
