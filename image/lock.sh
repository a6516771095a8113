#!/usr/bin/env bash
# Pin the packages of packages.txt at what Debian 12 has today: architecture, SHA-256 and address of each file.
#
#   image/lock.sh >image/packages.lock
#
# apt checks Debian's signatures on the lists that the hashes come from. Needs apt and debian-archive-keyring, and no root:
# it has lists of its own.
set -euo pipefail
cd "$(dirname "$0")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{state/lists/partial,cache/archives/partial}
touch "$work/status"
for suite in "debian bookworm" "debian bookworm-updates" "debian-security bookworm-security"; do
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/$suite main"
done >"$work/sources.list"

echo "# Made by image/lock.sh. The date is that of every file in the image, and where snapshot.debian.org has the packages."
date -u +"date %Y-%m-%dT00:00:00Z"
for architecture in amd64 arm64; do
    mine=(-qq -o Dir::State="$work/state" -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache"
        -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" -o APT::Sandbox::User=root)
    apt-get "${mine[@]}" update
    grep -v '^#' packages.txt | xargs apt-get "${mine[@]}" --print-uris download | LC_ALL=C sort |
        sed -nE "s/^'([^']+)' \S+ [0-9]+ SHA256:([0-9a-f]{64})\$/$architecture \2 \1/p"
done
