"""The set-ups of docs/how-to/ci.md, as their services run them, each in an environment with nothing else."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
import yaml

REPOSITORY = pathlib.Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "how-to" / "ci.md").read_text()
ACTION = yaml.safe_load((REPOSITORY / "action.yml").read_text())
PYTHON = pathlib.Path(sys.base_prefix) / "bin"
INSTALL, CHECK = ACTION["runs"]["steps"]
FINDING = "selector-not-self"


def shown(name):
    """The file of this name, as the page shows it."""
    [text] = re.findall(rf"```yaml\n# {re.escape(name)}\n(.*?)```", PAGE, re.DOTALL)
    return yaml.safe_load(text)


class Work:
    """A repository of somebody who sets up a check, and how its commands run: without this project's environment."""

    def __init__(self, root):
        self.root, self.home = root / "work", root / "home"
        self.path = [str(PYTHON), "/usr/bin", "/bin"]
        self.manifest = self.root / "manifests" / "web.yaml"
        self.manifest.parent.mkdir(parents=True)
        self.home.mkdir()
        self.manifest.write_text((REPOSITORY / "examples" / "warned.yaml").read_text())

    def run(self, *command, **environment):
        author = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a"}
        own = {"PATH": ":".join(self.path), "HOME": str(self.home), "PRE_COMMIT_HOME": str(self.home / "hooks")}
        return subprocess.run(
            command,
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | author | {"GIT_COMMITTER_EMAIL": "a@b"} | own | environment,
        )

    def program(self, name, script):
        """Puts a program in front of the others."""
        (self.home / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.home / name).chmod(0o755)
        self.path = [str(self.home), *(each for each in self.path if each != str(self.home))]

    def repair(self):
        self.manifest.write_text((REPOSITORY / "examples" / "clean.yaml").read_text())


@pytest.fixture
def work(tmp_path):
    return Work(tmp_path)


# -- the action of GitHub


class Runner:
    """Runs the steps of the action and of a workflow as GitHub's runner does."""

    def __init__(self, work):
        self.work, self.temp = work, work.home / "temp"
        self.temp.mkdir()
        self.added = self.temp / "path"

    def step(self, script, **environment):
        self.added.write_text("")
        given = {"RUNNER_TEMP": self.temp, "GITHUB_PATH": self.added, "GITHUB_ACTION_PATH": REPOSITORY}
        given = {name: str(value) for name, value in given.items()} | environment
        done = self.work.run("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script, **given)
        self.work.path[:0] = reversed(self.added.read_text().split())
        return done

    def uses(self, *steps, **inputs):
        """Steps of the action, by default all, until one fails."""
        values = {name: each["default"] for name, each in ACTION["inputs"].items()} | inputs
        for step in steps or ACTION["runs"]["steps"]:
            given = {
                name: re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda found: values[found[1]], text)
                for name, text in step.get("env", {}).items()
            }
            done = self.step(step["run"], **given)
            if done.returncode:
                break
        return done


def test_the_action_fails_a_pull_request_until_the_manifest_is_repaired(work):
    [job] = shown(".github/workflows/evenspread.yml")["jobs"].values()
    [inputs] = [step["with"] for step in job["steps"] if step["uses"].startswith("evenspread/")]
    runner = Runner(work)
    done = runner.uses(**inputs, **{"sarif-file": "out.sarif"})
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith(f"::error file=manifests/web.yaml,line=15,col=9,title=evenspread/{FINDING}::")
    [result] = json.loads((work.root / "out.sarif").read_text())["runs"][0]["results"]
    assert result["ruleId"] == FINDING

    # Later steps have the command, and keep their own python.
    piped = runner.step("cat manifests/*.yaml | evenspread check - -o github")
    assert (piped.returncode, f"title=evenspread/{FINDING}" in piped.stdout) == (1, True)
    assert runner.step("command -v python3").stdout == f"{PYTHON / 'python3'}\n"


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        pytest.param({}, ["check", "-o", "github", "--", "."], id="the defaults"),
        pytest.param(
            {"paths": "a b/*.yaml", "args": "--fail-on low"},
            ["check", "--fail-on", "low", "-o", "github", "--", "a", "b/*.yaml"],
            id="paths, patterns and options",
        ),
        pytest.param({"paths": ""}, [], id="nothing to check"),
    ],
)
def test_the_action_gives_its_inputs_to_the_command(work, inputs, expected):
    (work.root / "b").mkdir()
    (work.root / "b" / "web.yaml").touch()  # the shell expands no pattern
    work.program("evenspread", "printf '%s\\n' \"$@\"")
    assert Runner(work).uses(CHECK, **inputs).stdout.split() == expected


def test_the_action_names_the_python_it_needs(work):
    work.program("python3", "exit 1")
    done = Runner(work).uses(INSTALL)
    assert done.returncode == 2
    assert done.stdout.startswith("::error::evenspread needs Python 3.11 or later: ")


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        pytest.param(
            "warned.yaml", (1, f"::error file=rendered.yaml,line=15,col=9,title=evenspread/{FINDING}::"), id="wrong"
        ),
        pytest.param("clean.yaml", (0, "Deployment shop/web fits: "), id="right"),
    ],
)
def test_the_recipe_checks_a_rendered_chart_with_last_nights_snapshot(work, manifest, expected):
    """`gh` gives the snapshot of the example cluster, and `helm` an example."""
    snapshot = REPOSITORY / "webhook" / "example" / "cluster.jsonl"
    work.program("gh", f'[ "$2" = list ] && echo 7 || {{ [ "$3" = 7 ] && gzip -c {snapshot} >cluster.jsonl.gz; }}')
    work.program("helm", f"cat {REPOSITORY}/examples/{manifest}")
    work.path.append(str(pathlib.Path(sys.executable).parent))
    [script] = re.findall(r"- run: \|\n(.*?)\n        env: \{GH_TOKEN", PAGE, re.DOTALL)
    done = Runner(work).step(script)
    assert (done.returncode, expected[1] in done.stdout) == (expected[0], True), done


# -- the job of GitLab


def test_the_job_of_gitlab_fails_until_the_manifest_is_repaired(work):
    [include] = shown(".gitlab-ci.yml")["include"]
    head, jobs = (REPOSITORY / include["file"]).read_text().split("\n---\n")
    source = f"git+file://{REPOSITORY}"
    values = {name: each["default"] for name, each in yaml.safe_load(head)["spec"]["inputs"].items()}
    values |= include["inputs"] | {"source": source}
    text = re.sub(r"\$\[\[ inputs\.([a-z]+) \]\]", lambda found: values[found[1]], jobs)
    job = yaml.safe_load(text)["evenspread"]
    work.run("python3", "-m", "venv", str(work.home / "image"))
    work.path.insert(0, str(work.home / "image" / "bin"))

    done = work.run("bash", "-eo", "pipefail", "-c", "\n".join(job["script"]))
    assert (done.returncode, done.stdout.startswith(f"manifests/web.yaml:15:9: high {FINDING} ")) == (1, True), done
    report = work.root / job["artifacts"]["reports"]["codequality"]
    [entry] = json.loads(report.read_text())
    assert (entry["check_name"], entry["location"]["path"]) == (FINDING, "manifests/web.yaml")
    work.repair()
    _, *script = job["script"]
    assert work.run("bash", "-eo", "pipefail", "-c", "\n".join(script)).returncode == 0
    assert json.loads(report.read_text()) == []


# -- pre-commit


def test_pre_commit_stops_a_commit_until_the_manifest_is_repaired(work):
    config = shown(".pre-commit-config.yaml")
    [hooks] = config["repos"]
    head = work.run("git", "-C", str(REPOSITORY), "rev-parse", "HEAD").stdout.strip()
    hooks |= {"repo": str(REPOSITORY), "rev": head}
    (work.root / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    (work.root / "values.yaml").write_text("image: {{ .Values.image }}\n")  # no manifest, and skipped
    work.run("git", "init", "--quiet")
    work.run("git", "add", ".")
    assert work.run(sys.executable, "-m", "pre_commit", "install").returncode == 0
    done = work.run("git", "commit", "--quiet", "--message", "web")
    assert (done.returncode, f"manifests/web.yaml:15:9: high {FINDING} " in done.stderr) == (1, True), done

    hooks["hooks"][0]["args"] = ["--fix", "--write", "--"]
    (work.root / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    work.run("git", "add", ".")
    fixed = work.run("git", "commit", "--quiet", "--message", "web")
    assert (fixed.returncode, "files were modified by this hook" in fixed.stderr) == (1, True), fixed
    work.run("git", "add", ".")
    assert work.run("git", "commit", "--quiet", "--message", "web").returncode == 0
