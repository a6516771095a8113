"""The worker of the console's what-if form: a `WhatIfChange` on standard input, a document on standard output.

The console starts it as a process of its own and bounds its time and memory (`webhook/console/what_if.py`).
"""

import sys

import click
import msgspec
from msgspec.structs import replace

from webhook.answers.simulated import simulated
from webhook.cli.commands.simulate.command import Question, answered
from webhook.cli.exit_codes import CommandError
from webhook.cli.frame import Frame
from webhook.cli.live_cluster import Given
from webhook.cli.options import current_cluster_options, frame_options
from webhook.console.what_if import WhatIfChange
from webhook.core.decoders import decoder_of

_STATES = 20_000  # of the search


@click.command
@current_cluster_options
@frame_options
def work(*, given: Given, frame: Frame) -> None:
    """Answer one question of the console about the cluster that the options name."""
    change = decoder_of(WhatIfChange).decode(sys.stdin.buffer.read())
    question = Question(
        words=(change.title,),
        what_if=change.what_if,
        replicas=change.replicas,
        rollout=change.rollout,
        states=_STATES,
    )
    answers, _ = answered(question, given, replace(frame, namespace=change.namespace))
    sys.stdout.buffer.write(msgspec.json.encode(simulated(answers)))


def main() -> None:
    """Answer, or say why not in one line on the standard error."""
    try:
        work.main(standalone_mode=False)
    except click.ClickException as error:
        sys.exit(f"Error: {error.format_message()}")
    except CommandError as error:
        sys.exit(str(error))
    except Exception as error:  # noqa: BLE001 as of the command line: a traceback helps nobody
        sys.exit(f"a fault of evenspread itself, please report it ({type(error).__name__}: {error})")


if __name__ == "__main__":
    main()
