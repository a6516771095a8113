"""Run the command line by itself, with its processor time and memory bounded by the kernel, and measure both."""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

MOST_SECONDS = 20  # of the processor: the kernel ends what takes longer
MOST_MIB = 2048  # of address space: what asks for more gets none
_PROGRAM = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, ({MOST_SECONDS}, {MOST_SECONDS}))
resource.setrlimit(resource.RLIMIT_AS, ({MOST_MIB} << 20, {MOST_MIB} << 20))
from webhook.cli.main import main
try:
    code = main(sys.argv[2:])
finally:
    took = resource.getrusage(resource.RUSAGE_SELF)
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]
    open(sys.argv[1], "w").write(f"{{took.ru_utime + took.ru_stime}} {{peak}}")
sys.exit(code)
"""


class Ran(NamedTuple):
    """How a command line ended; ``seconds`` are of the processor."""

    code: int
    output: str
    errors: str
    seconds: float
    mib: float


def confined(directory, *arguments, **environment):
    """Run ``evenspread`` in this directory."""
    told = Path(directory).parent / f"{Path(directory).name}.measured"
    told.unlink(missing_ok=True)
    done = subprocess.run(  # noqa: S603 our own program
        [sys.executable, "-c", _PROGRAM, str(told), *arguments],
        cwd=directory,
        capture_output=True,
        env={"PATH": "/usr/bin:/bin", **environment},
        timeout=600,
        check=False,
    )
    seconds, kib = told.read_text().split() if told.exists() else ("inf", "inf")
    output, errors = done.stdout.decode(), done.stderr.decode()
    return Ran(done.returncode, output, errors, float(seconds), float(kib) / 1024)
