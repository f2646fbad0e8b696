"""The versions of the libraries that are served, and the parameters of theirs that are used."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

VERSIONS: Mapping[str, tuple[str, str]] = MappingProxyType({"flashinfer-python": ("0.7.2", "0.8"), "xgrammar": ("0.2.8", "0.3")})
"""By package, the least version, and the one below which they are."""


def is_served(package: str, version: str) -> bool:
    """Whether this version of a package of `VERSIONS` is."""
    least, below = VERSIONS[package]
    return numbers_of(least) <= numbers_of(version) < numbers_of(below)


def numbers_of(version: str) -> tuple[int, ...]:
    """The numbers of a version, as far as they go: (0, 7, 2) of `0.7.2.post1`."""
    numbers = []
    for part in version.partition("+")[0].split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers)


_ATTENTION = "flashinfer.BatchPrefillWithPagedKVCacheWrapper"

PARAMETERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "flashinfer.rmsnorm": ("input", "weight", "eps"),
        "flashinfer.fused_add_rmsnorm": ("input", "residual", "weight", "eps"),
        "flashinfer.silu_and_mul": ("input",),
        "flashinfer.apply_rope_with_cos_sin_cache_inplace": ("positions", "query", "key", "head_size", "cos_sin_cache", "is_neox"),
        "flashinfer.append_paged_kv_cache": (
            "append_key",
            "append_value",
            "batch_indices",
            "positions",
            "paged_kv_cache",
            "kv_indices",
            "kv_indptr",
            "kv_last_page_len",
            "kv_layout",
        ),
        "flashinfer.merge_state_in_place": ("v", "s", "v_other", "s_other", "mask"),
        _ATTENTION: (
            "float_workspace_buffer",
            "kv_layout",
            "use_cuda_graph",
            "qo_indptr_buf",
            "paged_kv_indptr_buf",
            "paged_kv_indices_buf",
            "paged_kv_last_page_len_buf",
            "backend",
        ),
        f"{_ATTENTION}.plan": (
            "qo_indptr",
            "paged_kv_indptr",
            "paged_kv_indices",
            "paged_kv_last_page_len",
            "num_qo_heads",
            "num_kv_heads",
            "head_dim_qk",
            "page_size",
            "packed_custom_mask",
            "causal",
            "sm_scale",
            "q_data_type",
            "kv_data_type",
            "non_blocking",
            "disable_split_kv",
        ),
        f"{_ATTENTION}.reset_workspace_buffer": ("float_workspace_buffer", "int_workspace_buffer"),
        f"{_ATTENTION}.run": ("q", "paged_kv_cache", "return_lse"),
        "xgrammar.apply_token_bitmask_inplace": ("logits", "bitmask", "vocab_size"),
    }
)
"""By function, the parameters that this back end gives it."""
