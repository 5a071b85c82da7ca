#!/usr/bin/env bash
# Builds this machine's binary of dist/ again, twice, in two other folders with
# other settings, the second time without a build cache, and compares the sums.
# usage: hack/rebuild.sh, after `make release-snapshot`
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

os=$(go env GOHOSTOS) arch=$(go env GOHOSTARCH)
name=rollouts-plugin-trafficrouter-istio-$os-$arch
released=dist/$name
[[ -x $released ]] || { echo "there is no $released: make release-snapshot builds it"; exit 1; }

# What the binary says of itself: NAME VERSION (commit COMMIT, of DATE) GO OS/ARCH.
line=$("$released" --version)
[[ $line =~ ^[^\ ]+\ ([^\ ]+)\ \(commit\ ([0-9a-f]{40}),\ of\ ([^\),]+)\)\ (go[^\ ]+)\  ]] || { echo "$released has no release's stamp: $line"; exit 1; }
version=${BASH_REMATCH[1]} commit=${BASH_REMATCH[2]} date=${BASH_REMATCH[3]} go=${BASH_REMATCH[4]}

# build FOLDER: copies the files into it, without git's, and builds there with the
# flags of .goreleaser.yaml.
build() {
  mkdir -p "$1"
  cp -R go.mod go.sum plugin pkg "$1"
  (cd "$1" && CGO_ENABLED=0 GOOS=$os GOARCH=$arch GOTOOLCHAIN=$go go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X main.version=$version -X main.commit=$commit -X main.date=$date" -o "$name" ./plugin)
  (cd "$1" && sha256sum "$name") | cut -d ' ' -f 1
}

want=$(sha256sum "$released" | cut -d ' ' -f 1)
echo "$want  $line"
first=$(build "$work/a")
echo "$first  in another folder"
second=$(umask 077 && TZ=Asia/Tokyo LC_ALL=C TMPDIR=$work GOCACHE=$work/cache GOFLAGS=-p=2 build "$work/a longer path/of another depth")
echo "$second  in a third one, with other settings and from an empty build cache"
[[ $first == "$want" && $second == "$want" ]] || { echo "the sums differ"; exit 1; }
