"""What the C library keeps of memory that is free again: less than it would by itself."""

import contextlib
import ctypes

_MMAP_THRESHOLD = -3  # malloc.h
# Bodies of reviews are larger when they are long; what is smaller comes and goes too often for a system call each.
_LARGE_BYTES = 1024 * 1024


def keep_large_blocks_apart() -> None:
    """Have the C library take each large block from the system and return it as soon as it is free.

    By default it does so only until the first large block is freed. Later blocks up to that size come from the heap,
    where smaller ones behind them keep the memory. Beside 150,000 pods, bodies of 7 MiB took replicas past 512 MiB.
    Source: mallopt(3), "dynamic mmap threshold".
    """
    with contextlib.suppress(OSError, AttributeError):  # a C library without it
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)


def give_memory_back() -> None:
    """Have the C library return what bodies and connections took; it would keep it, in pieces. Takes 1 to 2 ms."""
    with contextlib.suppress(OSError, AttributeError):  # a C library without it
        ctypes.CDLL(None).malloc_trim(0)
