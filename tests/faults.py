"""A fault to try the boundaries with: rules that ask what messages may name raise."""

from webhook.core.policy.policy import Messages
from webhook.core.rules.frame import trials


class Raising:
    """Messages that can be asked so many times what they may name, and raise from then on."""

    def __init__(self, readable=0):
        self._readable = readable

    def __getattr__(self, name):
        return getattr(Messages(), name)

    def name_workloads(self, *, offline):
        return self.name_domains(offline)

    def count_others(self, *, offline):  # noqa: ARG002 as it is asked
        return True

    def name_domains(self, _key):
        self._readable -= 1
        if self._readable < 0:
            raise RuntimeError("broken on purpose")
        return True


def unfixable(monkeypatch):
    """From now on every fix that is tried raises."""
    monkeypatch.setattr(trials, "applied", _raise)


def _raise(*_):
    raise RuntimeError("broken on purpose")
