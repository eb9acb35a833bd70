#!/usr/bin/env bash
# Makes an archive of the data folder of an older lifepod, whose engine was killed while defer containers ran. Usage, as root:
#   make.sh CHECKOUT NUMBER ARCHIVE
# CHECKOUT is a checkout of the older version with node_modules and generated types, NUMBER chooses address ranges, 1 to 100.
set -euo pipefail
checkout=$1 number=$2 archive=$(realpath -m "$3")
here=$(realpath "$(dirname "$0")")
lifepod=$checkout/bin/lifepod
data=$(mktemp -d /tmp/lifepod-data-XXXXXX)
export KUBECONFIG=$data/kubeconfig HOME=$data
ended() {
  "$lifepod" down --data-dir "$data" || true
  rm -rf "$data"
}
trap ended EXIT

mkdir -m 0700 "$data/manifests" "$data/seccomp"
echo '{"defaultAction": "SCMP_ACT_ALLOW"}' >"$data/seccomp/all.json"
cp "$here/static.yaml" "$data/manifests"
# The time until the archive is used counts as an outage, which must not exceed the longest extension.
"$lifepod" up --detach --data-dir "$data" --node-name node-1 --port 0 --max-grace-period-extension 4000000000 \
  --pod-cidr "10.119.$((2 * number)).0/24" --service-cidr "10.119.$((2 * number + 1)).0/24" \
  --eviction-hard 'memory.available<100Mi' --image-gc-high-threshold 100
"$here/../../node_modules/node/bin/node" -e "import('$here/../support/images.ts').then((m) => m.busyboxArchive()).then(console.log)" >"$data/image"
"$lifepod" image load --data-dir "$data" "$(cat "$data/image")"
rm "$data/image"
kubectl apply -f "$here/objects.yaml"
kubectl apply -f "$here/stateful-set.yaml" && kubectl rollout status --timeout=60s statefulset/web || echo "without a StatefulSet"
kubectl wait --for=condition=Ready --timeout=60s pod/keeper pod/gone pod/half-run pod/half-drained pod/static-node-1
kubectl wait --for=jsonpath='{.status.phase}'=Succeeded --timeout=60s pod/finished
kubectl delete pod gone
kubectl delete pod half-run half-drained --wait=false
running() { kubectl wait --for=jsonpath="{.status.deferContainerStatuses[$2].state.running}" --timeout=60s "pod/$1"; }
running half-drained 0
running half-run 3
kubectl get pods -o json >"$data/pods-at-kill.json"
kill -9 "$(cut -d' ' -f1 "$data/lock")"
mkdir "$data/archived"
tar --one-file-system -C "$data" --exclude=./archived --exclude=./containerd --exclude=./run --exclude=./logs --exclude=./pods-memory \
  --exclude=./ballast --exclude='./*.log' --exclude=./lock --exclude=./.cache --exclude=./.kube --exclude='*.sock' -c . | tar -C "$data/archived" -x
# LMDB's file has space that was allocated in advance.
"$here/../../node_modules/node/bin/node" -e "import('$here/../../src/store/lmdb/copy-file.ts').then((m) => m.copyLmdbFile('$data/archived/store'))"
rm -f "$data/archived/store/lock.mdb"
tar -C "$data/archived" -c . | gzip -9 >"$archive"
ls -l "$archive"
tar -tvzf "$archive"
