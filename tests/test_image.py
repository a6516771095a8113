"""The Dockerfile, as far as that can be tested without building it; the program from nothing but what it copies."""

import fnmatch
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from chart.rendered import ZERO, one

from webhook import __version__

ROOT = Path(__file__).parent.parent
IGNORED = (ROOT / ".dockerignore").read_text().split()
SITE = "/opt/evenspread/lib/python3.11/site-packages/"


def stages():
    """The instructions of each stage: word and rest."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    found = []
    for word, rest in (line.split(None, 1) for line in text.splitlines() if line.strip()):
        if word == "FROM":
            found.append([])
        if found:
            found[-1].append((word, " ".join(rest.split())))
    return found


BUILD, RUN = stages()
COPIED = [
    tuple(rest.split()) for stage in (BUILD, RUN) for word, rest in stage if word == "COPY" and "--from" not in rest
]


def setting(word):
    (rest,) = [rest for found, rest in RUN if found == word]
    return rest


def context_of(source):
    """The files below a path of the repository that reach the build."""
    allowed = [pattern.removeprefix("!") for pattern in IGNORED if pattern.startswith("!")]
    top = source.partition("/")[0]
    if IGNORED[0] != "*" or top not in allowed:
        return []
    place = ROOT / source
    found = [place] if place.is_file() else [each for each in place.rglob("*") if each.is_file()]
    return [each for each in found if not fnmatch.fnmatch(str(each), "*/__pycache__/*")]


def test_dependencies_are_wheels_with_the_hashes_of_the_lock():
    (install,) = [rest for word, rest in BUILD if word == "RUN" and " install --no-cache" in rest]
    assert {"--require-hashes", "--only-binary", "--no-deps"} <= {*install.split()}
    assert install.endswith("--requirement /tmp/requirements.lock")


def test_nothing_is_run_or_installed_in_the_image_that_runs():
    assert {word for word, _ in RUN} == {"FROM", "LABEL", "COPY", "ENV", "USER", "EXPOSE", "ENTRYPOINT", "CMD"}
    assert "distroless" in (ROOT / "Dockerfile").read_text().partition("ARG RUN_IMAGE=")[2].partition("\n")[0]
    (environment,) = [rest for word, rest in BUILD if "venv" in rest and "install" not in rest]
    assert "--without-pip" in environment


def test_the_user_is_a_number_and_the_charts():
    context = one("Deployment", ZERO)["spec"]["template"]["spec"]["securityContext"]
    assert setting("USER") == f"{context['runAsUser']}:{context['runAsGroup']}"


def test_the_ports_are_the_charts():
    (container,) = one("Deployment", ZERO)["spec"]["template"]["spec"]["containers"]
    assert setting("EXPOSE").split() == [str(each["containerPort"]) for each in container["ports"]]


@pytest.mark.parametrize("source", [source for source, _ in COPIED])
def test_what_is_copied_reaches_the_build(source):
    assert context_of(source)


@pytest.mark.parametrize("source", [".venv", ".git", "tests", "charts", "docs"])
def test_nothing_else_reaches_it(source):
    assert context_of(source) == []


def test_the_program_starts_from_what_is_copied(tmp_path):
    for source, target in COPIED:
        if target.startswith(SITE):
            for file in context_of(source):
                place = tmp_path / target.removeprefix(SITE) / file.relative_to(ROOT / source)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, place)
    _, *arguments = json.loads(setting("ENTRYPOINT"))
    command = json.loads(setting("CMD"))
    environment = {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(*more):
        return subprocess.run(  # noqa: S603  what the image runs
            [sys.executable, *arguments, *more],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    assert run("version").stdout.split()[1] == __version__
    started = run(*command, "--bind", "nowhere")
    assert (started.returncode, started.stderr.startswith("evenspread: --bind nowhere:")) == (2, True)
    assert not [*tmp_path.rglob("__pycache__")]
