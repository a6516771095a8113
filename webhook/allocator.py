"""Make the C library return freed memory to the system earlier."""

import contextlib
import ctypes

_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD in malloc.h
# Long bodies of reviews are larger. Smaller blocks are too frequent for a system call each.
_LARGE_BYTES = 1024 * 1024


def keep_large_blocks_apart() -> None:
    """Make the C library return each freed large memory block to the system.

    By default, this behaviour ends with the first freed large block. The C library then takes blocks up to that size
    from the heap, not from the system. Small blocks at the end of the heap keep the freed memory from returning to the
    system. With 150,000 pods, request bodies of 7 MiB then took replicas above 512 MiB.

    Source: mallopt(3), "dynamic mmap threshold".
    """
    with contextlib.suppress(OSError, AttributeError):  # a C library without mallopt
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)


def give_memory_back() -> None:
    """Return the fragmented free memory of bodies and connections to the system. Takes 1 to 2 ms."""
    with contextlib.suppress(OSError, AttributeError):  # a C library without malloc_trim
        ctypes.CDLL(None).malloc_trim(0)
