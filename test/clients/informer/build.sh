#!/usr/bin/env bash
# Builds the informer with Go and client-go of Debian 13, which are unpacked into a folder and not installed.
# usage: build.sh FOLDER
# Writes the program to FOLDER/informer, unless it is newer than its source. Exits with 3, and a line that says why, if Go or client-go
# cannot be downloaded.
set -euo pipefail
source=$(cd "$(dirname "$0")" && pwd)/main.go
mkdir -p "$1"
folder=$(cd "$1" && pwd)
[ ! "$folder/informer" -nt "$source" ] || exit 0

unavailable() {
  echo "the informer of client-go cannot be built: $*"
  exit 3
}
command -v apt-get >/dev/null || unavailable "apt-get is missing"
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null | grep '/debian/\?$' | head -n 1 || true)
[ -n "$mirror" ] || unavailable "the sources of apt contain no Debian mirror"

mkdir -p "$folder/apt/lists" "$folder/apt/cache/archives/partial" "$folder/packages" "$folder/root"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" >"$folder/apt/sources.list"
options=(
  -q
  -o "Dir::Etc::sourcelist=$folder/apt/sources.list" -o Dir::Etc::sourceparts=-
  -o "Dir::State::lists=$folder/apt/lists" -o "Dir::Cache=$folder/apt/cache"
  -o Acquire::Check-Valid-Until=false -o Acquire::Languages=none -o APT::Sandbox::User=root
)
apt-get "${options[@]}" update >"$folder/log" 2>&1 || unavailable "apt-get update failed: $(tail -n 1 "$folder/log")"
packages=$(
  apt-cache "${options[@]}" depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances \
    golang-k8s-client-go-dev golang-1.24-go 2>>"$folder/log" | grep '^golang-' | grep -vE '^golang-(any|go)$' | sort -u
) || unavailable "Debian has no golang-k8s-client-go-dev"
# shellcheck disable=SC2086
(cd "$folder/packages" && apt-get "${options[@]}" download $packages >>"$folder/log" 2>&1) ||
  unavailable "the packages cannot be downloaded: $(tail -n 1 "$folder/log")"
for package in "$folder/packages/"*.deb; do dpkg -x "$package" "$folder/root"; done
rm -r "$folder/packages"

go=$folder/root/usr/lib/go-1.24
GOROOT=$go GOPATH=$folder/root/usr/share/gocode GO111MODULE=off GOFLAGS='' GOTOOLCHAIN=local GOCACHE=$folder/cache \
  "$go/bin/go" build -o "$folder/informer" "$source"
rm -r "$folder/root" "$folder/cache"
