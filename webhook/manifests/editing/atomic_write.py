"""Replace a file's content atomically: either all new bytes or all old ones."""

import os
import stat
import tempfile
from pathlib import Path

from webhook.core.text import one_line
from webhook.manifests.reading.documents import BYTE_ORDER_MARKS, InputFault
from webhook.manifests.reading.files import File, leads_out

_ANYBODY_WRITES = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def written(file: File, after: bytes) -> InputFault | None:
    """Replace the file's content. On failure nothing changes, and the fault is returned."""
    try:
        replace_file(file.name, file.data, after)
    except OSError as error:
        reason = error.strerror or str(error)
        return InputFault(file=file.name, message=f"not written: {reason[:1].lower()}{reason[1:]}")
    return None


def replace_file(name: str, before: bytes, after: bytes) -> None:
    """Replace the file's content if it is still ``before``.

    The file keeps its mode and owner, and symbolic links to it still work.

    Raises:
        OSError: The file was not changed. Either its content is no longer ``before``, or it is a special file, a link
            to outside the link's folder, or a read-only file, even in a writable folder.
    """
    path = Path(os.path.realpath(name))
    if leads_out(name) or not path.is_relative_to(os.path.realpath(Path(name).parent)):
        raise OSError(None, f"a link to {one_line(str(path))}, outside its folder")
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(None, "not a regular file")
    # The mode is checked too, since root may write to everything.
    if not status.st_mode & _ANYBODY_WRITES or not os.access(path, os.W_OK):
        raise OSError(None, "the file is read-only")
    if (now := path.read_bytes()) != before:
        is_utf_16 = now.startswith(BYTE_ORDER_MARKS)
        raise OSError(
            None, "the file is UTF-16 text; save it as UTF-8" if is_utf_16 else "the file has changed since it was read"
        )
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(after)
            file.flush()
            os.fsync(handle)
            if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(handle, status.st_uid, status.st_gid)
            os.fchmod(handle, stat.S_IMODE(status.st_mode))
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink()
        raise
