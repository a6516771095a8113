#!/usr/bin/env bash
# Push the chart into a registry, and print the digest that it has there.
#
#   release/publish_chart.sh REGISTRY/charts dist/release/evenspread-0.1.0.tgz
#
# Whoever pushes has logged in (helm registry login). INSECURE=1 for a registry without TLS on this machine.
set -euo pipefail

helm push "$2" "oci://$1" ${INSECURE:+--plain-http} 2>&1 | tee /dev/stderr | sed -n 's/^Digest: //p'
