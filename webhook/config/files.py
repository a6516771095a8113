"""Reading the configuration file, and reading it again when it changed.

`reloaded` is called by whoever has a loop; it keeps no thread and no state of its own.
"""

import os
import time
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from webhook.config.build import built
from webhook.config.document import MAX_BYTES, read_document
from webhook.config.faults import ConfigError, Fault, place_of
from webhook.config.meaning import meaning_faults, meaning_warnings
from webhook.config.shape import made_plain, shape_faults
from webhook.config.view import view
from webhook.core.policy import Policy

SETTLE_SECONDS = 0.5  # a file written in place that recently may still be half-written

Signature = tuple[int, int, int, int]


class Loaded(Struct, frozen=True, kw_only=True):
    """A policy, and what is to be said of the file that it came from.

    Shape: ``error`` is set when the file on disk is newer than ``policy`` and cannot be used; ``signature`` is the
    file's as it was read last, None where there was none.
    """

    policy: Policy
    file: str
    warnings: tuple[Fault, ...] = ()
    signature: Signature | None = None
    error: ConfigError | None = None

    def rendered_warnings(self) -> tuple[str, ...]:
        """One line a warning, as users see it."""
        return tuple(f"warning: {warning.render(self.file)}" for warning in self.warnings)


def load_policy(path: str | Path, *, today: str | None = None) -> Loaded:
    """Read a configuration file.

    Errors: ConfigError with every fault, an unreadable file included.
    """
    file = Path(path)
    signature = _signature(_stat(file))
    loaded = parse_policy(_text(file), file=str(path), today=today)
    return Loaded(policy=loaded.policy, file=loaded.file, warnings=loaded.warnings, signature=signature)


def parse_policy(text: str, *, file: str = "<text>", today: str | None = None) -> Loaded:
    """Read the text of a configuration file.

    Shape: ``today`` is an ISO date, for exemptions that are over; by default the clock's (UTC).
    Errors: ConfigError with every fault.
    """
    document = made_plain(read_document(text, file=file))
    faults = shape_faults(document)
    seen = view(document, faults)
    faults += meaning_faults(seen)
    if faults:
        raise ConfigError(faults, file=file)
    warnings = meaning_warnings(seen, today or datetime.now(UTC).date().isoformat())
    return Loaded(policy=built(document.value), file=file, warnings=tuple(sorted(warnings, key=place_of)))


def reloaded(current: Loaded) -> Loaded:
    """What holds now: ``current`` itself while the file is unchanged, else the new policy, or the last good one.

    A changed file that cannot be used gives the old policy with ``error`` set, once; the same file is not read
    again. Follows symbolic links, so that the swap of a ConfigMap's ``..data`` is a change.
    """
    file = Path(current.file)
    stat = _stat(file)
    signature = _signature(stat)
    if signature == current.signature or (stat is not None and not _settled(file, stat)):
        return current
    try:
        return load_policy(file)
    except ConfigError as error:
        return Loaded(
            policy=current.policy, file=current.file, warnings=current.warnings, signature=signature, error=error
        )


def _stat(file: Path) -> os.stat_result | None:
    try:
        return file.stat()
    except (OSError, ValueError):
        return None


def _signature(stat: os.stat_result | None) -> Signature | None:
    return None if stat is None else (stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size)


def _settled(file: Path, stat: os.stat_result) -> bool:
    """Whether nobody has just written to the file; one that a link points to is swapped whole."""
    return file.is_symlink() or not 0 <= time.time() - stat.st_mtime < SETTLE_SECONDS


def _text(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise _unreadable(file, f"cannot be read: {error.strerror}") from None
    except ValueError:
        raise _unreadable(file, "cannot be read: the path holds a NUL character") from None
    if len(raw) > MAX_BYTES:
        raise _unreadable(file, "larger than 1 MiB, which is more than a ConfigMap holds")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8-sig", errors="replace")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise _unreadable(file, f"not UTF-8: byte 0x{raw[error.start]:02x}", line, column) from None


def _unreadable(file: Path, message: str, line: int = 0, column: int = 0) -> ConfigError:
    return ConfigError([Fault(path="", message=message, line=line, column=column)], file=str(file))
