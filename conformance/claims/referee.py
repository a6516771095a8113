"""Questions to the oracle, one line each; equal questions are asked once."""

import gzip
import hashlib
import json
import subprocess


class Referee:
    """An oracle that answers line by line."""

    def __init__(self, oracle):
        self.oracle = oracle
        self.running = {}
        self.known = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for each in self.running.values():
            each.stdin.close()
            each.wait()

    def ask(self, command, question):
        """Errors: AssertionError for what the oracle cannot run."""
        line = json.dumps(question, sort_keys=True)
        if (command, line) not in self.known:
            if len(self.known) > 2000:
                self.known.clear()
            answer = json.loads(self.answer(command, line))
            assert not answer.get("error"), answer["error"]
            self.known[command, line] = answer
        return self.known[command, line]

    def answer(self, command, line):
        if command not in self.running:
            asked = [self.oracle, command, "-j", "1"]
            self.running[command] = subprocess.Popen(asked, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        process = self.running[command]
        process.stdin.write(line + "\n")
        process.stdin.flush()
        return process.stdout.readline()

    def place(self, question):
        """What all orders come to; `oracle place`."""
        return self.ask("place", question)


class Unasked(LookupError):
    """A question that was not asked when the answers were written down."""


class Recorded:
    """A referee whose answers were written down: by the question's hash, and only what claims depend on."""

    def __init__(self, answers):
        self.answers = answers

    def place(self, question):
        try:
            return self.answers[digest(question)]
        except KeyError:
            raise Unasked from None


class Recording:
    """A referee that keeps its answers."""

    def __init__(self, referee):
        self.referee, self.answers = referee, {}

    def place(self, question):
        answer = self.referee.place(question)
        kept = {name: value for name, value in answer.items() if name not in {"id", "witness", "message", "states"}}
        self.answers[digest(question)] = kept
        return answer


def digest(question):
    text = json.dumps({name: value for name, value in question.items() if name != "id"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def write_cases(path, cases):
    """Worlds with their answers, one a line; equal content gives an equal file."""
    text = "".join(json.dumps({"world": world, "answers": answers}, sort_keys=True) + "\n" for world, answers in cases)
    with open(path, "wb") as out, gzip.GzipFile(fileobj=out, mode="wb", mtime=0, filename="") as packed:
        packed.write(text.encode())


def read_cases(path):
    with gzip.open(path, "rt") as lines:
        for line in lines:
            case = json.loads(line)
            yield case["world"], case["answers"]
