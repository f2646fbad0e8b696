"""The heap of the snapshot: what a launch allocates lies together, behind everything that all launches share.

Building leaves thousands of holes between what stays. A launch that allocated in them would write to a page of its own
for every few objects; so the holes are filled, and allocations go on where the heap ends.
"""

from __future__ import annotations

# Room that no hole has: it lies where the heap ends, and stays there for what launches allocate.
_BEYOND_HOLES_BYTES = 4 << 20
# The allocator rounds up to these steps, with a header of one word.
_STEP_BYTES = 16
_HEADER_BYTES = 4
# Holes from here on are looked for by halves and not by steps: what remains of them is smaller.
_LARGE_BYTES = 64 << 10
# What an object of `bytes` takes beside its content.
_BYTES_OVERHEAD = b"".__sizeof__()
_MAX_HOLES = 1 << 15
# More than the interpreter keeps of one kind of object to use again.
_MAX_KEPT = 256

_fillings: list[list[object]] = []


def fill_holes() -> None:
    """Fills every hole below the end of the heap for good.

    Nothing that was alive before may die afterwards, or there are new ones.

    Raises IndexError where there are more holes than expected.
    """
    filling: list[object] = [None] * _MAX_HOLES
    _fillings.append(filling)
    end = id(bytes(_BEYOND_HOLES_BYTES))
    n_holes = 0
    # From the largest downwards: what remains of a hole that is filled in part is a smaller one.
    size = _BEYOND_HOLES_BYTES >> 1
    while size >= 2 * _STEP_BYTES:
        n_content = size - _HEADER_BYTES - _BYTES_OVERHEAD
        filler = bytes(n_content)
        while id(filler) < end:
            filling[n_holes] = filler
            n_holes += 1
            filler = bytes(n_content)
        del filler
        size -= size >> 1 if size > _LARGE_BYTES else _STEP_BYTES
    while id(smallest := object()) < end:
        filling[n_holes] = smallest
        n_holes += 1
    # The interpreter keeps numbers that died while this ran, here and there, for the next ones.
    for number in range(_MAX_KEPT):
        filling[n_holes + number] = end + number
