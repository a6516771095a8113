"""The probes of the core's coverage: a line or branch that did not run is named."""

import core_coverage
import pytest


@pytest.mark.parametrize(
    ("source", "gaps"),
    [
        pytest.param("if x:\n    pass", ["1 else"], id="an else that is not written"),
        pytest.param("if not x:\n    pass\nelse:\n    pass", ["2 if"], id="an else that is"),
        pytest.param("if x:\n    pass\nelse:\n    raise AssertionError", [], id="a branch that nothing reaches"),
        pytest.param("for _ in range(0):\n    pass", ["2 loop"], id="a loop over nothing"),
        pytest.param("for _ in range(x):\n    break", ["1 end of the loop"], id="a loop that always breaks"),
        pytest.param("while True:\n    break", [], id="a loop without an end"),
        pytest.param("try:\n    1 / 0\n    x = 2\nexcept ArithmeticError:\n    pass", ["3"], id="behind an error"),
        pytest.param("try:\n    pass\nexcept ArithmeticError:\n    pass", ["3 except"], id="no error"),
        pytest.param("match x:\n    case 1:\n        pass", ["1 no case"], id="a match without a default"),
        pytest.param("match x:\n    case 2:\n        pass\n    case _:\n        pass", ["3 case"], id="a case"),
        pytest.param('def f():\n    """Text."""\n    return 1', ["3"], id="a function that nothing calls"),
        pytest.param("def f(): ...", [], id="a function of a protocol"),
    ],
)
def test_what_did_not_run_is_named(source, gaps):
    module, probes = core_coverage.instrument(source)
    ran = bytearray(len(probes))
    exec(compile(module, "probed", "exec"), {core_coverage.RAN: ran, "x": 1})  # noqa: S102 the table's own code
    missing = [f"{line} {branch}".rstrip() for (line, branch), did in zip(probes, ran, strict=True) if not did]
    assert missing == gaps
