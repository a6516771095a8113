"""A file's new bytes in place of its old ones: at once or not at all."""

import os
import stat
import tempfile
from pathlib import Path


def replace_file(name: str, before: bytes, after: bytes) -> None:
    """Write the file anew, if it still holds what was read; mode and owner stay, and a link still leads to it.

    Errors: OSError, where nothing has changed.
    """
    path = Path(os.path.realpath(name))
    known = path.stat()
    if not stat.S_ISREG(known.st_mode):
        raise OSError(None, "not a file that can be replaced")
    if path.read_bytes() != before:
        raise OSError(None, "the file has changed since it was read")
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(after)
            file.flush()
            os.fsync(handle)
            if (known.st_uid, known.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(handle, known.st_uid, known.st_gid)
            os.fchmod(handle, stat.S_IMODE(known.st_mode))
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink()
        raise
