#!/usr/bin/env bash
# Builds the pinned Kubernetes and etcd into bin/, and on Linux containerd, which
# real nodes need. Called by `make kube`; a second call, with nothing changed, is
# instant.
set -euo pipefail
cd "$(dirname "$0")"
out=$(cd ../.. && pwd)/bin
mkdir -p "$out"
stamp="$out/.kube-$(cat go.mod go.sum build.sh main.go kubectl/main.go containerd/go.mod containerd/go.sum | cksum | tr -d ' ')"

if [ -e "$stamp" ]; then
  exit 0
fi
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
v=k8s.io/component-base/version
ldflags="-s -w -X $v.gitVersion=$version -X $v.gitMajor=1 -X $v.gitMinor=$(echo "$version" | cut -d. -f2) -X $v.gitTreeState=clean"

echo "kube: building etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet and kubectl $version into bin/"
echo "kube: once only; about 18 minutes on two cores with an empty build cache, about one with a warm one"
start=$SECONDS
go build -ldflags "$ldflags" -o "$out/kube" .
go build -ldflags "$ldflags" -o "$out/kubectl" ./kubectl
for name in etcd kube-apiserver kube-controller-manager kube-scheduler kubelet; do
  ln -sf kube "$out/$name"
done
if [ "$(go env GOOS)" = linux ]; then
  cd containerd
  c=github.com/containerd/containerd/v2
  version=$(go list -m -f '{{.Version}}' "$c")
  echo "kube: building containerd, its shim and ctr $version into bin/"
  go build -tags no_btrfs,no_devmapper,no_zfs -ldflags "-s -w -X $c/version.Version=$version" \
    -o "$out/" "$c/cmd/containerd" "$c/cmd/containerd-shim-runc-v2" "$c/cmd/ctr"
fi
rm -f "$out"/.kube-*
touch "$stamp"
echo "kube: built in $((SECONDS - start)) s"
