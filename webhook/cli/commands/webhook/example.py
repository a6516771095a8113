"""The example files of ``evenspread webhook --example``, and the requests suggested to its user."""

import os
import shlex
from pathlib import Path

from msgspec import Struct

_FILES = Path(__file__).parents[3] / "example"
POLICY = _FILES / "policy.yaml"
CLUSTER = _FILES / "cluster.jsonl"


class ServerAddress(Struct, frozen=True, kw_only=True):
    """The server's address for clients on this machine. ``authority`` is the file of the temporary CA."""

    host: str
    port: int
    health_port: int
    authority: Path | None

    @property
    def url(self) -> str:
        """The URL of the admission port."""
        return f"https://{_bracketed(self.host)}:{self.port}"

    @property
    def health_url(self) -> str:
        """The URL of the health port."""
        return f"http://{_bracketed(self.host)}:{self.health_port}"


def tour(place: ServerAddress, console: str) -> str:
    """Return an introduction with three example requests. ``console`` is the console's URL."""
    return f"""\
evenspread answers at {place.url} (CA: {place.authority})
  policy   {_shown(POLICY)}: denies faults, injects defaults
  cluster  {_shown(CLUSTER)}
  console  {console}: open it in a browser to see the cluster's problems and their fixes

Paste these three requests into another terminal. An API server would send the same.

1. A Rollout with maxSkew 0. The API server does not validate templates in custom resources. evenspread denies it.
   GitOps tools show the first line of the message.

{_call(place, "denied-rollout.json", "validate", " | python3 -m json.tool")}

2. A Deployment whose constraint counts the pods of another application. kube-apiserver accepts it silently.
   evenspread allows it with a warning, which kubectl prints.

{_call(place, "warned-deployment.json", "validate", " | python3 -m json.tool")}

3. A pod without constraints. evenspread adds the policy's defaults, with the selector that kube-scheduler would take
   from the ReplicaSet. The command decodes the JSON Patch in the answer.

{_call(place, "bare-pod.json", "mutate", _DECODED)}

Health and metrics: {place.health_url}/readyz {place.health_url}/metrics
Press Ctrl-C to stop. This also deletes the CA.
"""


_DECODED = """ \\
     | sed 's/.*"patch":"\\([^"]*\\)".*/\\1/' | base64 -d | python3 -m json.tool"""


def _call(place: ServerAddress, file: str, route: str, rest: str) -> str:
    # Absolute paths: the other terminal can be in any directory.
    return (
        f"   curl -sS --cacert {shlex.quote(str(place.authority))} -H 'Content-Type: application/json' \\\n"
        f"     --data {shlex.quote(f'@{_FILES / file}')} \\\n"
        f"     '{place.url}/{route}?timeout=2s'{rest}"
    )


def _shown(path: Path) -> str:
    """Return the path relative to the working directory. A path outside the directory is returned unchanged."""
    here = Path(os.getcwd())  # noqa: PTH109 Path.cwd() would resolve links
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
