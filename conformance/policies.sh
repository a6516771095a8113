#!/usr/bin/env bash
# policies.sh PYTHON: what the expressions of compiled admission policies cost at most, by the API server's own code.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$("$here/build.sh" 1.37 policies)
cd "$here/.."
"$1" -m conformance.policies "$program"
