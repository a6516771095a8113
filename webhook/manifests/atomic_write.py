"""A file's new bytes in place of its old ones: at once or not at all."""

import os
import stat
import tempfile
from pathlib import Path

from webhook.core.text import one_line

_ANYBODY_WRITES = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def replace_file(name: str, before: bytes, after: bytes) -> None:
    """Write the file anew, if it still holds what was read; mode and owner stay, and a link still leads to it.

    Errors: OSError, where nothing has changed: also for a file that may not be written to, which could be replaced
    nevertheless, and for a link that leads out of its folder, to what nobody asked to change.
    """
    path = Path(os.path.realpath(name))
    if not path.is_relative_to(os.path.realpath(Path(name).parent)):
        raise OSError(None, f"a link that leads out of its folder, to {one_line(str(path))}")
    known = path.stat()
    if not stat.S_ISREG(known.st_mode):
        raise OSError(None, "not a file that can be replaced")
    # The mode as well, since root may write everywhere.
    if not known.st_mode & _ANYBODY_WRITES or not os.access(path, os.W_OK):
        raise OSError(None, "the file is read-only")
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
