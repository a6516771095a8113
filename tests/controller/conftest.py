"""What most tests of the controller begin with."""

import pytest
from controller.town import town


@pytest.fixture(name="api")
def _api():
    with town() as api:
        yield api
