"""kubectl as a person runs it, with its exact output."""

import json
import os
import pathlib
import subprocess
from typing import NamedTuple

from e2e.waiting import BUSY


class Ran(NamedTuple):
    code: int
    out: str
    err: str


class Kubectl(NamedTuple):
    program: pathlib.Path
    kubeconfig: pathlib.Path
    home: pathlib.Path  # its discovery cache; never the home of the person who runs the tests

    def __call__(self, *arguments: str, stdin: object = None) -> Ran:
        """`stdin` is an API object."""
        environment = {"KUBECONFIG": str(self.kubeconfig), "HOME": str(self.home), "PATH": os.environ["PATH"]}
        ran = subprocess.run(
            [self.program, *arguments],
            input=None if stdin is None else json.dumps(stdin),
            capture_output=True,
            text=True,
            timeout=30 * BUSY,
            check=False,
            env=environment,
        )
        return Ran(ran.returncode, ran.stdout, ran.stderr)
