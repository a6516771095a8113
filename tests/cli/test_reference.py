from cli import reference

from webhook.cli.main import evenspread


def test_the_page_says_what_help_prints():
    text = reference.FILE.read_text()
    assert reference.with_help(text) == text, "run: make docs"


def test_every_command_is_on_the_page():
    text = reference.FILE.read_text()
    assert [name for name in evenspread.list_commands(None) if f"<!-- help: {name} -->" not in text] == []
