"""``evenspread completion``, and the completion program for ``kubectl evenspread``."""

import sys

import click
from click.shell_completion import ShellComplete, get_completion_class

_DIRECTIVE_FILES = ":0"
_DIRECTIVE_NO_FILES = ":4"


@click.command(
    short_help="Print a script for shell completion.",
    help="""Print a shell script that completes commands, options and rule ids.

\b
  bash  source <(evenspread completion bash)      in ~/.bashrc
  zsh   source <(evenspread completion zsh)       in ~/.zshrc
  fish  evenspread completion fish | source       in ~/.config/fish/config.fish

kubectl completes "kubectl evenspread" if kubectl_complete-evenspread is in the PATH.""",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell."""
    script = get_completion_class(shell)
    if script is None:
        raise click.UsageError(f"no completion for {shell}")
    root = click.get_current_context().find_root().command
    click.echo(script(root, {}, "evenspread", "_EVENSPREAD_COMPLETE").source())


def kubectl() -> None:
    """Print completions for kubectl: one choice a line, then a directive. The arguments are the words so far.

    Source: kubectl pkg/cmd/plugin/plugin_completion.go; cobra's ShellCompDirective.
    """
    from webhook.cli.main import evenspread  # noqa: PLC0415 main imports this module for the command

    *words, incomplete = sys.argv[1:] or [""]
    choices = ShellComplete(evenspread, {}, "evenspread", "").get_completions(words, incomplete)
    for choice in choices:
        if choice.type == "plain":
            click.echo(f"{choice.value}\t{choice.help}" if choice.help else choice.value)
    files = any(choice.type != "plain" for choice in choices)
    click.echo(_DIRECTIVE_FILES if files else _DIRECTIVE_NO_FILES)
