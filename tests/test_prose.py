"""The ratchet of the English counts what it says, and only ever tightens."""

import pytest

from tools.prose import Figures, Text, banned, figures, lowered, plain, sentences, worse

NOW = Figures(words=100, long=2.0, clauses=12.04, semi=0.0, odd=7.0, you=10.0)


def test_code_tables_and_headings_do_not_count():
    text = "# A title\n\nRun `make test; make lint` in your clone.\n\n| a | b |\n\n```\none; two; three four\n```\n"
    assert list(sentences(plain(text))) == ["Run CODE in your clone."]


@pytest.mark.parametrize(
    ("text", "figure"),
    [
        pytest.param("Give the pods that run a new node.", "clauses", id="a relative clause"),
        pytest.param("The pods run; the nodes wait for them.", "semi", id="a semicolon"),
        pytest.param("It comes to be known by each node.", "odd", id="an odd turn of phrase"),
        pytest.param("You see your pods on a node.", "you", id="the reader"),
        pytest.param(f"The pods {'run and ' * 16}end.", "long", id="a long sentence"),
    ],
)
def test_a_figure_counts(text, figure):
    assert getattr(figures([Text("page.md", text)]), figure) > 0
    assert getattr(figures([Text("page.md", "The scheduler places the pods.")]), figure) == 0


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        pytest.param({"long": 2.0, "clauses": 12.0, "you": 10.0}, [], id="equal, as rounded"),
        pytest.param({"clauses": 11.9}, ["docs: clauses 12.0, limit 11.9"], id="more clauses"),
        pytest.param({"you": 10.1}, ["docs: you 10.0, limit 10.1"], id="fewer words to the reader"),
        pytest.param({"words": 99}, ["docs: words 100, limit 99"], id="too many words"),
    ],
)
def test_a_figure_beyond_its_limit_is_named(goal, expected):
    assert worse("docs", NOW, goal) == expected


def test_limits_only_improve_and_the_cap_on_words_stays():
    goal = {"words": 200, "long": 5.0, "odd": 6.0, "you": 9.0}
    assert lowered(NOW, goal) == {"words": 200, "long": 2.0, "odd": 6.0, "you": 10.0}


def test_a_banned_phrase_is_found_with_its_page():
    assert banned([Text("page.md", "Whoever runs this waits.")]) == [("page.md", "Whoever")]
