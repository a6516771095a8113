#!/usr/bin/env bash
# readers.sh SEED COUNT PYTHON [FILE]: how Karpenter and the descheduler read COUNT random constraints of each family, beside
# kube-scheduler.
set -euo pipefail
seed=$1 count=$2 python=$3 file=${4:-}
here=$(cd "$(dirname "$0")" && pwd)
oracle=$("$here/build.sh")
karpenter=$("$here/readers/build.sh" karpenter)
descheduler=$("$here/readers/build.sh" descheduler)

echo "seed $seed (make readers SEED=$seed EACH=$count repeats it), Kubernetes $("$oracle" version), Karpenter $("$karpenter" version), descheduler $("$descheduler" version)"
cd "$here/.."
"$python" -m conformance.readers "$oracle" "$karpenter" "$descheduler" "$seed" "$count" ${file:+"$file"}
