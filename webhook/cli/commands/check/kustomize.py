"""``check --kustomize DIR``: run kustomize or kubectl, and check the output."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from webhook.core.text import one_line
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import LEADS_OUT, File, leads_out
from webhook.manifests.reading.kustomizations import why_not_built

_MAX_SECONDS = 120  # a build of local files takes seconds, so a longer build hangs
_MAX_ERROR_CHARS = 400  # five lines of a usual terminal
_COMMANDS = (("kustomize", "build"), ("kubectl", "kustomize"))


def built(directories: Iterable[str]) -> Iterator[File | InputFault]:
    """Build each directory. A directory that needs the network or plugins is a fault and is not built."""
    command = next(((path, verb) for name, verb in _COMMANDS if (path := shutil.which(name))), None)
    for directory in directories:
        name = f"kustomize build {directory}"
        if leads_out(directory):
            yield InputFault(file=name, message=LEADS_OUT)
        elif reason := why_not_built(Path(directory)):
            yield InputFault(file=name, message=f"not built: {reason} (--kustomize only reads local files)")
        elif command is None:
            yield InputFault(file=name, message="neither kustomize nor kubectl is in the PATH")
        else:
            yield _run((*command, directory), name)


def _run(command: tuple[str, ...], name: str) -> File | InputFault:
    # Helm and plugins are off by default. A dead proxy keeps git and http from leaving this machine.
    dead = {f"{name}_proxy": "http://127.0.0.1:9" for name in ("http", "https")}
    proxies = {**dead, **{name.upper(): url for name, url in dead.items()}, "no_proxy": "", "NO_PROXY": ""}
    environment = {**os.environ, **proxies, "GIT_ALLOW_PROTOCOL": "none"}
    try:
        done = subprocess.run(  # noqa: S603 the user's own program, with a directory as argument
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=_MAX_SECONDS, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        return InputFault(file=name, message=f"not built within {_MAX_SECONDS} s")
    except OSError as error:
        return InputFault(file=name, message=f"{command[0]}: {error.strerror}")
    if done.returncode:
        return InputFault(file=name, message=one_line(done.stderr.decode("utf-8", "replace").strip(), _MAX_ERROR_CHARS))
    return File(name, done.stdout)
