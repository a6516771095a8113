"""Read the configuration file, and reload it after a change.

`reloaded` has no thread and no state. Call it from your own loop.
"""

import posixpath
import stat
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from webhook.config.build import build_policy
from webhook.config.document import MAX_CONFIG_BYTES, read_config_document
from webhook.config.faults import ConfigError, ConfigFault, place_of, shown
from webhook.config.meaning import meaning_faults, meaning_warnings, view
from webhook.config.scheduler import read_profiles
from webhook.config.schema_checks import normalised, shape_faults
from webhook.core.policy.policy import Policy
from webhook.core.scheduler.profile import SchedulerProfile

SETTLE_SECONDS = 0.5  # a file changed more recently may be half-written

# Pipes opened by the shell, as in ``--config <(helm template …)``. Opening any other named pipe would block.
_OPEN_FILES = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")

_SCHEDULER = ("schedulerConfiguration",)

# The chart's ConfigMap: the key of the policy, and the directory where replicas mount all keys as files.
POLICY_KEY = "policy.yaml"
_MOUNTED = "/run/evenspread/policy"

_Signature = tuple[int, int, int, int]


class Loaded(Struct, frozen=True, kw_only=True):
    """A policy, with warnings about its file.

    Attributes:
        seen: The name and signature of each file at the time of reading. The signature is None if the file did not
            exist.
        error: The error of the file on disk, if it is newer than ``policy`` and unusable.
    """

    policy: Policy
    file: str
    warnings: tuple[ConfigFault, ...] = ()
    seen: tuple[tuple[str, _Signature | None], ...] = ()
    error: ConfigError | None = None

    def rendered_warnings(self) -> tuple[str, ...]:
        """Return a line for each warning."""
        return tuple(f"warning: {warning.render(self.file)}" for warning in self.warnings)


def load_policy(path: str | Path, *, today: str | None = None, within: Path | None = None) -> Loaded:
    """Read a configuration file.

    Args:
        path: The file.
        today: The current date in ISO format, for expired exemptions. None for the current date in UTC.
        within: The folder of the files that the configuration may name. None for any folder.

    Raises:
        ConfigError: The configuration has faults, or a file cannot be read. It lists all faults.
    """

    def read(other: str) -> str:
        if within is not None and not Path(other).resolve().is_relative_to(within.resolve()):
            raise _unreadable(other, "is outside the repository; use --config FILE")
        return _text(other)

    seen = _seen(str(path))
    loaded = parse_policy(_text(str(path)), file=str(path), today=today, read=read)
    return msgspec.structs.replace(loaded, seen=(*seen, *loaded.seen))


def parse_policy(
    text: str, *, file: str = "<text>", today: str | None = None, read: Callable[[str], str | None] | None = None
) -> Loaded:
    """Read the text of a configuration file, and the scheduler configuration that it names.

    Args:
        text: The content of ``file``.
        file: Its path. The path of the scheduler configuration is relative to it.
        today: An ISO date, to find expired exemptions. By default, today in UTC.
        read: Returns the text of another file. None skips the file with a warning, for example a file mounted only in
            the webhook's pods. By default it reads the disk.

    Raises:
        ConfigError: With all faults.
    """
    document = normalised(read_config_document(text, file=file))
    faults = shape_faults(document)
    part = view(document, faults)
    faults += meaning_faults(part)
    scheduler = part.text(_SCHEDULER)
    path = str(Path(file).parent / scheduler) if scheduler else ""
    seen = _seen(path) if path else ()
    profiles: tuple[SchedulerProfile, ...] = ()
    absent: list[ConfigFault] = []
    try:
        content = (read or _text)(path) if path else None
        if content is not None:
            profiles = read_profiles(content, file=path)
        elif path:
            absent = [document.fault(_SCHEDULER, f"{shown(scheduler)} is not in the ConfigMap and was not read")]
    except ConfigError as error:
        faults += [document.fault(_SCHEDULER, fault.render(path)) for fault in error.faults]
    if faults:
        raise ConfigError(faults, file=file, read=[path] if path else [])
    warnings = sorted(
        (*meaning_warnings(part, profiles, today or datetime.now(UTC).date().isoformat()), *absent), key=place_of
    )
    return Loaded(policy=build_policy(document.value, profiles), file=file, warnings=tuple(warnings), seen=seen)


def config_map_policy(data: Mapping[str, str], *, title: str, today: str | None = None) -> Loaded:
    """Read the policy, and the files it names, from the data of the chart's ConfigMap ``title``.

    ``today`` is as in `parse_policy`.

    Raises:
        ConfigError: With all faults.
    """

    def read(path: str) -> str | None:
        folder, name = posixpath.split(posixpath.normpath(path))
        if folder not in {title, _MOUNTED}:
            return None
        if name not in data:
            raise _unreadable(path, f"the ConfigMap has no key {name}")
        return data[name]

    if POLICY_KEY not in data:
        raise _unreadable(title, f"has no key {POLICY_KEY}")
    return parse_policy(data[POLICY_KEY], file=f"{title}/{POLICY_KEY}", today=today, read=read)


def reloaded(current: Loaded) -> Loaded:
    """Read the policy again if a file has changed, else return ``current`` itself.

    If the changed file is unusable, the result is the current policy with ``error`` set, and the file is not read again
    until it changes. Symbolic links are followed, so the swap of a ConfigMap's ``..data`` is a change.
    """
    changed = [file for file, signature in current.seen if _signature(file) != signature]
    if not changed or not all(map(_settled, changed)):
        return current
    try:
        return load_policy(current.file)
    except ConfigError as error:
        seen = tuple(pair for file in error.read for pair in _seen(file))
        return msgspec.structs.replace(current, seen=seen, error=error)


def _seen(file: str) -> tuple[tuple[str, _Signature | None], ...]:
    return ((file, _signature(file)),)


def _signature(file: str) -> _Signature | None:
    try:
        status = Path(file).stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _settled(file: str) -> bool:
    """Whether the last write to the file is at least `SETTLE_SECONDS` ago.

    Always true for a symbolic link, because its target is replaced atomically.
    """
    signature = _signature(file)
    if signature is None or Path(file).is_symlink():
        return True
    return not 0 <= time.time() - signature[2] / 1e9 < SETTLE_SECONDS


def _text(file: str) -> str:
    try:
        if stat.S_ISFIFO(Path(file).stat().st_mode) and not file.startswith(_OPEN_FILES):
            raise _unreadable(file, "is a named pipe, not a file")
        with Path(file).open("rb") as stream:
            raw = stream.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise _unreadable(file, f"cannot be read: {error.strerror}") from None
    except ValueError:
        raise _unreadable(file, "cannot be read: the path contains a NUL character") from None
    if len(raw) > MAX_CONFIG_BYTES:
        raise _unreadable(file, "is larger than 1 MiB, the limit of a ConfigMap")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8-sig", errors="replace")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise _unreadable(file, f"not UTF-8: byte 0x{raw[error.start]:02x}", line, column) from None


def _unreadable(file: str, message: str, line: int = 0, column: int = 0) -> ConfigError:
    return ConfigError([ConfigFault(path="", message=message, line=line, column=column)], file=file)
