#!/usr/bin/env bash
# Pin the packages of packages.txt at what Debian 13 has today: architecture, SHA-256, suite and path of each file.
#
#   image/lock.sh >image/packages.lock
#
# Apt fetches them from this machine's source of Debian, of release 12 or 13: a mirror has both. It checks Debian's signatures
# on the lists with the hashes. Needs debian-archive-keyring, and no root: it has lists of its own.
set -euo pipefail
cd "$(dirname "$0")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{state/lists/partial,cache/archives/partial}
touch "$work/status"
apt-get indextargets --no-release-info --format='$(RELEASE) $(SITE)' "Created-By: Packages" "Component: main" |
    sed -nE 's/^(trixie|bookworm)(-updates|-security)? /trixie\2 /p' | sort -u >"$work/sites"
[ -s "$work/sites" ] || {
    echo "image/lock.sh: apt has no source of Debian here" >&2
    exit 1
}
sed -E 's,^(\S+) (\S+)$,deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \2 \1 main,' "$work/sites" >"$work/sources.list"
# An address becomes suite and path; suites that share a site share its files.
sed -E 's/[.[\*^$]/\\&/g; s,^(\S+) (\S+)$,s#^\2/#\1 #;t,' "$work/sites" >"$work/paths.sed"

echo "# Made by image/lock.sh. The date is that of every file in the image."
date -u +"date %Y-%m-%dT00:00:00Z"
for architecture in amd64 arm64; do
    mine=(-qq -o Dir::State="$work/state" -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache"
        -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" -o APT::Sandbox::User=root)
    apt-get "${mine[@]}" update
    grep -v '^#' packages.txt | xargs apt-get "${mine[@]}" --print-uris download |
        sed -nE "s/^'([^']+)' \S+ [0-9]+ SHA256:([0-9a-f]{64})\$/\1 \2/p" | sed -E -f "$work/paths.sed" | LC_ALL=C sort |
        while read -r suite path hash; do echo "$architecture $hash $suite $path"; done
done
