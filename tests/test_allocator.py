import subprocess
import sys

import pytest

# Prints how many bytes stand apart from the heap while a second large block is held, after a first one was freed.
PROGRAM = """\
import ctypes
from webhook.allocator import keep_large_blocks_apart

class Told(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks apart apart_bytes a b c d e".split()]

library = ctypes.CDLL(None)
library.mallinfo2.restype = Told
{first}
block = bytearray(16 << 20)
del block
before = library.mallinfo2().apart_bytes
block = bytearray(8 << 20)
print(library.mallinfo2().apart_bytes - before)
"""


@pytest.mark.parametrize(
    ("first", "apart"),
    [
        pytest.param("keep_large_blocks_apart()", True, id="each"),
        pytest.param("", False, id="the first only, as the C library does by itself"),
    ],
)
def test_large_blocks_stand_apart_also_after_one_was_freed(first, apart):
    done = subprocess.run(  # noqa: S603 ourselves
        [sys.executable, "-c", PROGRAM.format(first=first)], capture_output=True, text=True, check=True
    )
    assert (int(done.stdout) >= 8 << 20) is apart
