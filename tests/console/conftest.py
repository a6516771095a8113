"""The console in front of a scan of the test's own."""

import pytest

from webhook.console.app import create_console


@pytest.fixture(name="browse")
def _browse():
    """``browse(shown)``: Flask's test client."""

    def browse(shown, simulator=None):
        return create_console(lambda: shown, simulator).test_client()

    return browse
