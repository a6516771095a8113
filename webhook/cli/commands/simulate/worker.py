"""The process for the console's what-if form. Input and output are JSON.

It reads a `WhatIfChange` from stdin and writes the result to stdout. The console starts this process and limits its
time and memory (`webhook/console/what_if.py`).
"""

import sys

import click
import msgspec
from msgspec.structs import replace

from webhook.answers.simulated import simulated
from webhook.cli.commands.simulate.command import SimulationRequest, answer_request
from webhook.cli.exit_codes import CommandError
from webhook.cli.frame import Frame
from webhook.cli.live_cluster import ClusterSelection
from webhook.cli.options import current_cluster_options, frame_options
from webhook.console.what_if import WhatIfChange
from webhook.core.decoders import decoder_of

_STATES = 20_000  # limit of the search; people wait for the page


@click.command
@current_cluster_options
@frame_options
def work(*, selection: ClusterSelection, frame: Frame) -> None:
    """Run a what-if simulation for the console: read the change from stdin and write the result as JSON to stdout."""
    change = decoder_of(WhatIfChange).decode(sys.stdin.buffer.read())
    request = SimulationRequest(
        words=(change.title,), what_if=change.what_if, replicas=change.replicas, rollout=change.rollout, states=_STATES
    )
    answers, _ = answer_request(request, selection, replace(frame, namespace=change.namespace))
    sys.stdout.buffer.write(msgspec.json.encode(simulated(answers)))


def main() -> None:
    """Run the requested simulation, or exit with the error as a single line on stderr."""
    try:
        work.main(standalone_mode=False)
    except click.ClickException as error:
        sys.exit(f"Error: {error.format_message()}")
    except CommandError as error:
        sys.exit(str(error))
    except Exception as error:  # noqa: BLE001 a line instead of a traceback, as on the command line
        sys.exit(f"a bug in evenspread, please report it ({type(error).__name__}: {error})")


if __name__ == "__main__":
    main()
