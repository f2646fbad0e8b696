"""`flashinfer.append_paged_kv_cache`."""

from __future__ import annotations

from torch import Tensor

from pie.backends.cuda.standins.grids import check_rows


def append_paged_kv_cache(
    append_key: Tensor,
    append_value: Tensor,
    batch_indices: Tensor,
    positions: Tensor,
    paged_kv_cache: Tensor,
    kv_indices: Tensor,
    kv_indptr: Tensor,
    kv_last_page_len: Tensor,
    kv_layout: str = "NHD",
) -> None:
    """Writes keys and values [T, G, D] to the slots `positions` of the sequences `batch_indices`.

    `paged_kv_cache` is [pages, 2, slots, G, D].
    """
    if kv_layout != "NHD" or len(kv_last_page_len) != len(kv_indptr) - 1:
        raise ValueError("pages are laid out as NHD, and each sequence has a last page")
    check_rows(append_key)
    page_size = paged_kv_cache.shape[2]
    slots = positions.long()
    pages = kv_indices[kv_indptr[batch_indices.long()].long() + slots // page_size].long()
    for half, values in enumerate((append_key, append_value)):
        paged_kv_cache[pages, half, slots % page_size] = values
