#!/usr/bin/env bash
# Installs the missing dependencies of lifepod, and prints each with its purpose. Prints nothing if nothing is missing.
# --for-tests also installs the dependencies of the tests, and fails if a dependency that it cannot install is missing. --for-machines also
# installs the tools that build and run the virtual machines of the tests.
set -euo pipefail
cd "$(dirname "$0")/.."

purpose=${1:-}

say() { echo "setup: $*"; }
fail() {
  echo "setup: $*" >&2
  exit 1
}

# Owners of the files ------------------------------------------------------------------------------

# Gives what root has created in the checkout of another user, as with sudo, to this user, who otherwise could neither change nor delete it.
hand_over() {
  local created
  if [ "$(id -u)" = 0 ] && [ "$(stat -c %u .)" != 0 ]; then
    for created in node_modules src/api/generated; do
      # A link inside the path could lead to files of others.
      [ "$(realpath -m "$created")" != "$(pwd -P)/$created" ] || [ ! -e "$created" ] ||
        find "$created" ! -user "$(stat -c %u .)" -exec chown -h --reference=. {} + ||
        say "not all files in $PWD/$created could be given to the owner of $PWD"
    done
  fi
}

require_own_files() {
  [ -O . ] || return 0
  local file
  for file in node_modules src/api/generated dist lifepod-*.tgz; do
    [ ! -e "$file" ] || [ -O "$file" ] || [ -w "$file" ] || [ -L "$file" ] ||
      fail "$PWD/$file belongs to $(stat -c %U "$file"), probably because a command with sudo created it: run 'sudo chown -R $(id -un 2>/dev/null): ${PWD@Q}', then run the setup again"
  done
}

# npm packages -------------------------------------------------------------------------------------

# Succeeds if the installed packages match package-lock.json. npm writes node_modules/.package-lock.json at the end of an installation; if
# that file is older than package-lock.json, the installation is outdated. If node_modules is a link to that of another checkout, as in a
# worktree, the package-lock.json files of both checkouts are compared instead of ages.
npm_is_current() {
  [ -x node_modules/node/bin/node ] &&
    [ -f node_modules/.package-lock.json ] &&
    if [ -L node_modules ]; then
      cmp -s package-lock.json "$(readlink -f node_modules)/../package-lock.json"
    else
      [ ! package-lock.json -nt node_modules/.package-lock.json ]
    fi
}

# Uses `npm install`, because `npm ci` rejects a lock file without packages for platforms that lifepod does not support.
install_npm_packages() {
  [ ! -L node_modules ] || fail "node_modules is a link to $(readlink -f node_modules), whose packages are not those of package-lock.json: remove the link, then run the setup again"
  command -v npm >/dev/null || fail "npm is missing: install Node.js 20 or newer with npm, then run the setup again"
  local registry
  # The messages show the address without the user name and the password that it may contain.
  registry=$(npm config get registry | sed 's#//[^/]*@#//#') || registry="npm's registry"
  say "installing the npm packages of package-lock.json (Node.js 24, the libraries, the test tools) from $registry, which needs the network"
  # A registry may refuse the ping with a status such as 404 and still serve packages.
  local ping
  ping=$(npm ping --fetch-retries=0 --fetch-timeout=5000 --loglevel=error 2>&1 >/dev/null) || true
  if grep -qE 'ENOTFOUND|ECONNREFUSED|EAI_AGAIN|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|network timeout' <<<"$ping"; then
    say "$registry does not answer: npm may try for minutes, and then fail unless its cache has all packages; check the network"
  fi
  # npm's own pauses between attempts, of up to a minute, would leave a machine without a network silent for minutes.
  npm install --no-save --no-audit --no-fund --loglevel=error --fetch-retries=3 \
    --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000 >/dev/null ||
    fail "npm could not install the packages: if the messages above are about the network, check whether this machine reaches $registry"
  [ -x node_modules/node/bin/node ] ||
    fail "npm has not run the install script of the package 'node': type 'npm rebuild --ignore-scripts=false node', then run the setup again"
  # npm does not always rewrite this file. It must be newer than package-lock.json, or npm_is_current fails.
  touch node_modules/.package-lock.json
  node_modules/node/bin/node -e "require('lmdb')" ||
    fail "the packages 'node' and 'lmdb' are not usable on this machine: lifepod needs Linux with glibc on x64 or arm64"
}

# Debian packages ----------------------------------------------------------------------------------

# Prints the requirements, one per line: program, Debian package, purpose.
requirements() {
  cat <<'LIST'
containerd containerd runs the containers
runc runc starts a container's processes
nft nftables sets the firewall rules of Pods and Services
conntrack conntrack lets clients of UDP Services reach new endpoints
ip iproute2 sets up and removes the Pod network
busybox busybox-static provides the busybox image if no registry can be reached
catatonit catatonit is the program of the sandbox image
LIST
}

find_program() {
  command -v "$1" >/dev/null || [ -x "/usr/sbin/$1" ] || [ -x "/sbin/$1" ]
}

missing_packages() {
  while read -r program package why; do
    find_program "$program" || echo "$package: $why"
  done < <(requirements)
  [ -x /usr/lib/cni/ptp ] || [ -x /opt/cni/bin/ptp ] ||
    echo "containernetworking-plugins: connects Pods to the network (CNI)"
  if [ "$purpose" = --for-machines ]; then
    find_program qemu-system-x86_64 || echo "qemu-system-x86: runs the virtual machines"
    find_program mmdebstrap || echo "mmdebstrap: installs Debian in the virtual machines"
    find_program mke2fs || echo "e2fsprogs: creates the disks of the virtual machines"
    find_program ssh || echo "openssh-client: runs commands in the virtual machines"
  fi
  [ "$purpose" = --for-tests ] || return 0
  find_program iptables || echo "iptables: shows and sets rules in the tests of Pods of older versions"
  find_program docker-registry || echo "docker-registry: serves the images that the tests pull, on loopback"
  find_program skopeo || echo "skopeo: copies images to that registry"
  /usr/bin/python3 -c 'import kubernetes' 2>/dev/null || echo "python3-kubernetes: a client of the API in the tests"
  /usr/bin/ruby -e 'require "kubeclient"' 2>/dev/null || echo "ruby-kubeclient: a client of the API in the tests"
  find_program kubetail || echo "kubetail: a client of the API in the tests"
  find_program mkfs.ext4 || echo "e2fsprogs: creates the ext4 file system that a test fills up"
  compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null ||
    echo "postgresql: provides the image of examples/06-postgresql; no database server is set up"
}

install_debian_packages() {
  local missing=$1 packages
  packages=$(cut -d: -f1 <<<"$missing" | tr '\n' ' ' | sed 's/ $//')
  if ! command -v apt-get >/dev/null; then
    fail "apt-get is missing: install the programs of these Debian packages with your package manager: $packages"
  fi
  if [ "$(id -u)" != 0 ]; then
    fail "not root: run 'sudo apt-get install $packages', then run the setup again"
  fi
  say "installing Debian packages:"
  sed 's/^/setup:   /' <<<"$missing"
  # shellcheck disable=SC2086
  apt_install $packages || {
    apt-get -q update >/dev/null || fail "'apt-get update' failed: check the network and /etc/apt/sources.list"
    apt_install $packages || fail "apt-get could not install $packages"
  }
}

# Installs packages without starting their services, because lifepod and its tests start the programs that they need. The body is a
# subshell, so that the EXIT trap runs when the function ends.
apt_install() (
  no_server=/etc/postgresql-common/createcluster.d/lifepod-setup.conf
  no_service=/usr/sbin/policy-rc.d
  log=$(mktemp)
  # If the administrator has a policy-rc.d, it is neither replaced nor removed.
  [ ! -e "$no_service" ] || no_service=
  trap 'rm -f "$log" "$no_server" $no_service
    rmdir --ignore-fail-on-non-empty "${no_server%/*}" "$(dirname "${no_server%/*}")"' EXIT
  # The postgresql package would otherwise create a database.
  mkdir -p "${no_server%/*}"
  echo 'create_main_cluster = false' >"$no_server"
  [ -z "$no_service" ] || { printf '#!/bin/sh\nexit 101\n' >"$no_service" && chmod 755 "$no_service"; }
  DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "$@" >"$log" 2>&1 || {
    tail -n 3 "$log" >&2
    exit 1
  }
)

# kubectl 1.20 -------------------------------------------------------------------------------------

OLDER_KUBECTL=node_modules/.kubectl-1.20

# Unpacks kubectl 1.20 of Debian 12 without installing it, so that it does not replace the machine's kubectl. The body is a subshell, so
# that the EXIT trap runs when the function ends.
unpack_older_kubectl() (
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  download() (cd "$folder" && apt-get -q download 'kubernetes-client=1.20*' >/dev/null 2>&1)
  download || { apt-get -q update >/dev/null 2>&1 && download; } || {
    say "kubectl 1.20 is not available, because only Debian 12 has it: its tests are skipped"
    return 0
  }
  say "unpacking kubectl 1.20: an older client of the API in the tests"
  dpkg -x "$folder"/*.deb "$folder/unpacked"
  rm -rf "$OLDER_KUBECTL"
  mkdir "$OLDER_KUBECTL"
  mv "$folder/unpacked/usr/bin/kubectl" "$OLDER_KUBECTL/kubectl"
)

# Generated code -----------------------------------------------------------------------------------

generated_is_current() {
  [ -f src/api/generated/types.ts ] &&
    [ ! scripts/generate-api.ts -nt src/api/generated/types.ts ] &&
    [ ! scripts/own-descriptions.ts -nt src/api/generated/types.ts ] &&
    [ ! scripts/reference-descriptions.ts -nt src/api/generated/types.ts ] &&
    [ ! src/api/facts/facts.json -nt src/api/generated/types.ts ] &&
    [ ! src/api/facts/own.ts -nt src/api/generated/types.ts ] &&
    [ ! node_modules/@kubernetes/client-node/package.json -nt src/api/generated/types.ts ]
}

if [ "$purpose" = --for-machines ]; then
  [ "$(id -u)" = 0 ] || fail "the disks of the virtual machines are created as root: run this as root"
  [ "$(uname -m)" = x86_64 ] || fail "the virtual machines require x64"
  command -v apt-get >/dev/null || fail "building the virtual machines requires Debian's apt, which this machine does not have"
fi
if [ "$purpose" = --for-tests ]; then
  [ "$(id -u)" = 0 ] || fail "the tests start containers: run them as root"
  find_program kubectl || fail "kubectl is missing, and the tests use it: install it (https://kubernetes.io/docs/tasks/tools)"
fi
require_own_files
trap hand_over EXIT
npm_is_current || install_npm_packages
missing=$(missing_packages)
[ -z "$missing" ] || install_debian_packages "$missing"
[ "$purpose" != --for-tests ] || [ -x "$OLDER_KUBECTL/kubectl" ] || unpack_older_kubectl
generated_is_current || node_modules/node/bin/node --no-wasm-tier-up scripts/generate-api.ts
