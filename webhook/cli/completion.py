"""``evenspread completion``, and the program that kubectl asks to complete ``kubectl evenspread``."""

import sys

import click
from click.shell_completion import ShellComplete, get_completion_class

_DIRECTIVE_FILES = ":0"
_DIRECTIVE_NO_FILES = ":4"


@click.command(
    help="""Print a script that completes commands, options and rules.

\b
  bash  source <(evenspread completion bash)      in ~/.bashrc
  zsh   source <(evenspread completion zsh)       in ~/.zshrc
  fish  evenspread completion fish | source       in ~/.config/fish/config.fish

kubectl completes "kubectl evenspread" by itself once kubectl_complete-evenspread is in the PATH."""
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script for a shell."""
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell}")
    root = click.get_current_context().find_root().command
    click.echo(found(root, {}, "evenspread", "_EVENSPREAD_COMPLETE").source())


def kubectl() -> None:
    """Complete for kubectl: the words so far are the arguments, the answer is one choice a line and a directive.

    Source: kubectl pkg/cmd/plugin/plugin_completion.go; cobra's ShellCompDirective.
    """
    from webhook.cli.main import evenspread  # noqa: PLC0415 main imports this module when asked to

    *given, incomplete = sys.argv[1:] or [""]
    choices = ShellComplete(evenspread, {}, "evenspread", "").get_completions(given, incomplete)
    for choice in choices:
        if choice.type == "plain":
            click.echo(f"{choice.value}\t{choice.help}" if choice.help else choice.value)
    files = any(choice.type != "plain" for choice in choices)
    click.echo(_DIRECTIVE_FILES if files else _DIRECTIVE_NO_FILES)
