"""What `evenspread webhook --example` serves, and what it says about it."""

import os
import shlex
from pathlib import Path

from msgspec import Struct

_FILES = Path(__file__).parents[3] / "example"
POLICY = _FILES / "policy.yaml"
CLUSTER = _FILES / "cluster.jsonl"


class ServerAddress(Struct, frozen=True, kw_only=True):
    """Where the server answers, as a client on this machine dials it; ``authority`` is the throw-away CA's file."""

    host: str
    port: int
    health_port: int
    authority: Path | None

    @property
    def url(self) -> str:
        """The admission port."""
        return f"https://{_bracketed(self.host)}:{self.port}"

    @property
    def health_url(self) -> str:
        """The plain port."""
        return f"http://{_bracketed(self.host)}:{self.health_port}"


def tour(place: ServerAddress, console: str) -> str:
    """Three commands, and what each of them shows; ``console`` is where a browser finds that."""
    return f"""\
evenspread answers at {place.url} (CA: {place.authority})
  policy   {_shown(POLICY)}: denies what is wrong, injects defaults
  cluster  {_shown(CLUSTER)}
  console  {console} shows what is wrong there, and what would help; open it in a browser

Three requests as an API server would send them; paste them into another terminal:

1. A Rollout with maxSkew 0. No API server validates the template inside a custom resource: denied here, and
   the first line of the message is what GitOps tools show.

{_call(place, "denied-rollout.json", "validate", " | python3 -m json.tool")}

2. A Deployment whose constraint counts the pods of another application: kube-apiserver accepts it without a word.
   Allowed, with the warning that kubectl would print.

{_call(place, "warned-deployment.json", "validate", " | python3 -m json.tool")}

3. A pod that declares no constraints gets the policy's defaults, with the selector that kube-scheduler would deduce
   from its ReplicaSet: the JSON Patch of the answer, decoded.

{_call(place, "bare-pod.json", "mutate", _DECODED)}

Health and metrics: {place.health_url}/readyz {place.health_url}/metrics
Ctrl-C ends it; the CA goes with it.
"""


_DECODED = """ \\
     | sed 's/.*"patch":"\\([^"]*\\)".*/\\1/' | base64 -d | python3 -m json.tool"""


def _call(place: ServerAddress, file: str, route: str, rest: str) -> str:
    # Whole paths: the other terminal may stand anywhere.
    return (
        f"   curl -sS --cacert {shlex.quote(str(place.authority))} -H 'Content-Type: application/json' \\\n"
        f"     --data {shlex.quote(f'@{_FILES / file}')} \\\n"
        f"     '{place.url}/{route}?timeout=2s'{rest}"
    )


def _shown(path: Path) -> str:
    """The path from where the user stands, if it lies below."""
    here = Path(os.getcwd())  # noqa: PTH109 PWD may name it by a link that Path.cwd() resolves
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
