"""A fault to try the boundaries with: rules that look at `messages.detail` raise."""

from webhook.core.rules.frame import trials


class Raising:
    """Messages whose ``detail`` can be read so many times, and raises from then on."""

    docs_url = ""
    footer = ""

    def __init__(self, readable=0):
        self._readable = readable

    @property
    def detail(self):
        self._readable -= 1
        if self._readable < 0:
            raise RuntimeError("broken on purpose")
        return "own-namespace"


def unfixable(monkeypatch):
    """From now on every fix that is tried raises."""
    monkeypatch.setattr(trials, "applied", _raise)


def _raise(*_):
    raise RuntimeError("broken on purpose")
