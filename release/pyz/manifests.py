"""The manifests of package managers: krew's plugin and Homebrew's formula. Both name the same archives."""

import hashlib
from collections.abc import Mapping
from textwrap import indent
from typing import NamedTuple

import yaml

HOMEPAGE = "https://evenspread.io"
SUMMARY = "Check and explain topologySpreadConstraints"
_RELEASES = "https://github.com/evenspread/evenspread/releases/download"
# In the order of `brew style`.
_SYSTEMS = {"darwin": "macos", "linux": "linux"}
_PROCESSORS = {"arm64": "arm", "amd64": "intel"}


class Download(NamedTuple):
    """The address of an archive, and its checksum."""

    uri: str
    sha256: str


def download(version: str, platform: str, archive: bytes) -> Download:
    """Return the address and checksum of an archive. ``platform`` is as in ``linux-amd64``."""
    name = f"evenspread-{version}-{platform}.zip"
    return Download(f"{_RELEASES}/v{version}/{name}", hashlib.sha256(archive).hexdigest())


def krew_manifest(version: str, downloads: Mapping[str, Download]) -> str:
    """Return the manifest of the plugin ``kubectl evenspread`` for krew's index."""
    platforms = []
    for platform, archive in downloads.items():
        system, architecture = platform.split("-")
        platforms.append(
            {
                "selector": {"matchLabels": {"os": system, "arch": architecture}},
                "uri": archive.uri,
                "sha256": archive.sha256,
                "bin": "evenspread",
            }
        )
    spec = {
        "version": f"v{version}",
        "homepage": HOMEPAGE,
        "shortDescription": SUMMARY,
        "description": "Check manifests for constraints that spread nothing or keep pods Pending, and explain\n"
        "where kube-scheduler can place a pod. It needs Python 3.11 to 3.14.\n",
        "platforms": platforms,
    }
    plugin = {"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin"}
    return yaml.safe_dump({**plugin, "metadata": {"name": "evenspread"}, "spec": spec}, sort_keys=False)


def _block(condition: str, lines: str) -> str:
    return f"on_{condition} do\n{indent(lines, '  ')}end\n"


def homebrew_formula(version: str, downloads: Mapping[str, Download], python: str) -> str:
    """Return the formula for a tap of Homebrew. ``python`` is the release of Python to run with."""
    systems = []
    for system, name in _SYSTEMS.items():
        blocks = [
            _block(processor, f'url "{downloads[key].uri}"\nsha256 "{downloads[key].sha256}"\n')
            for architecture, processor in _PROCESSORS.items()
            if (key := f"{system}-{architecture}") in downloads
        ]
        systems += [_block(name, "".join(blocks))] if blocks else []
    archives = indent("\n".join(systems), "  ")
    # Not in the PATH: kubectl's credential plugins may need another Python.
    return f"""\
class Evenspread < Formula
  desc "{SUMMARY}"
  homepage "{HOMEPAGE}"
  version "{version}"
  license "Apache-2.0"

  depends_on "python@{python}"

{archives}
  def install
    libexec.install "evenspread"
    (bin/"evenspread").write <<~SH
      #!/bin/sh
      exec "#{{Formula["python@{python}"].opt_bin}}/python{python}" "#{{libexec}}/evenspread" "$@"
    SH
    chmod 0755, bin/"evenspread"
    bin.install_symlink "evenspread" => "kubectl-evenspread"
    man1.install "evenspread.1"
    generate_completions_from_executable(bin/"evenspread", "completion", shells: [:bash, :zsh, :fish])
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/evenspread version")
  end
end
"""
