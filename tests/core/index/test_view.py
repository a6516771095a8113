"""A table answers each query itself: a query passed on would find no view below."""

import pytest

from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.view import View

TABLES = [pytest.param(type(value), id=name) for name, value in vars(ClusterIndex()).items() if isinstance(value, View)]


def queries(view):
    return {name for name, value in vars(view).items() if not name.startswith("_") and callable(value)}


@pytest.mark.parametrize("table", TABLES)
def test_a_table_answers_every_query_itself(table):
    (view,) = (each for each in table.__mro__ if View in each.__bases__)
    assert queries(view) - set(vars(table)) == set()
    assert queries(view)


def test_every_view_has_a_table():
    assert len(TABLES) == len(View.__subclasses__()) == 5
