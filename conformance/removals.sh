#!/usr/bin/env bash
# removals.sh SEED COUNT PYTHON [RELEASE]: the order in which we expect controllers to remove COUNT random sets of pods, against
# the controllers' own code of a release.
set -euo pipefail
seed=$1 count=$2 python=$3 release=${4:-1.37}
here=$(cd "$(dirname "$0")" && pwd)
program=$("$here/build.sh" "$release" removals)

echo "seed $seed (make removals RELEASE=$release SEED=$seed COUNT=$count repeats it), Kubernetes $release"
cd "$here/.."
"$python" -m conformance.removals "$program" "$seed" "$count"
