"""What FlashInfer and xgrammar compute, in torch: a module for each call, with the parameters of the call.

They run where there is no GPU, and for float32, for which FlashInfer has no attention. Sums are made by `sums`, in an
order that no batch changes.
"""

from pie.backends.cuda.standins.activation import silu_and_mul
from pie.backends.cuda.standins.append import append_paged_kv_cache
from pie.backends.cuda.standins.attention import BatchPrefillWithPagedKVCacheWrapper
from pie.backends.cuda.standins.merging import merge_state_in_place
from pie.backends.cuda.standins.norm import fused_add_rmsnorm, rmsnorm
from pie.backends.cuda.standins.rotary import apply_rope_with_cos_sin_cache_inplace
from pie.backends.cuda.standins.sums import linear
from pie.backends.cuda.standins.token_mask import apply_token_bitmask_inplace

__all__ = [
    "BatchPrefillWithPagedKVCacheWrapper",
    "append_paged_kv_cache",
    "apply_rope_with_cos_sin_cache_inplace",
    "apply_token_bitmask_inplace",
    "fused_add_rmsnorm",
    "linear",
    "merge_state_in_place",
    "rmsnorm",
    "silu_and_mul",
]
