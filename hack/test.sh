#!/usr/bin/env bash
# Runs every check, the quick ones while the lab's components are still being
# built, and names at the end what failed.
set -uo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
started=$(date +%s)
failed=()

say() { printf '[%4ds] %s\n' "$(($(date +%s) - started))" "$*"; }

# check NAME COMMAND...: runs one part and remembers a failure.
check() {
  local name=$1
  shift
  say "$name"
  "$@" || { failed+=("$name"); say "FAILED: $name"; }
}

# accepted FOLDER: asks Istio about every object that tests wrote down in FOLDER.
# A folder without any fails: the tests that write have to be asked, too.
accepted() {
  wait "$oracle" || { cat "$work/oracle.log"; return 1; }
  "$work/validate" "$1"
}

# Tests add what they write to a file of their own in the folder WRITTEN_OBJECTS.
mkdir -p "$work/written/unit" "$work/written/lab"

(cd e2e/istio && go build -o "$work/validate" ./cmd/validate) >"$work/oracle.log" 2>&1 &
oracle=$!
say "building the lab's components in the background (from nothing: about 50 minutes; log below if it fails)"
(cd e2e && go run ./cmd/lab build) >"$work/build.log" 2>&1 &
build=$!

check "gofmt, go vet, staticcheck: plugin" make --no-print-directory check-plugin
check "unit tests and fuzz seeds, -race" env WRITTEN_OBJECTS="$work/written/unit" go test -race -timeout 20m ./...
check "patches held against Istio's validation" make --no-print-directory test-istio
check "Istio accepts what the unit tests wrote" accepted "$work/written/unit"
check "the lab's own modules: vet, staticcheck" make --no-print-directory check-lab
check "workflows: actionlint, pinned actions" make --no-print-directory check-workflows
check "licences: the list is up to date, all are allowed" make --no-print-directory check-licences

say "waiting for the lab's components"
while kill -0 "$build" 2>/dev/null; do
  sleep 20
  kill -0 "$build" 2>/dev/null && say "building: $(tail -n 1 "$work/build.log")"
done
if wait "$build"; then
  # One package after the other: two labs at once would slow each other down,
  # and within a package the scenarios run side by side.
  check "scenarios on a real control plane, -race" env WRITTEN_OBJECTS="$work/written/lab" bash -c \
    'cd e2e && go test -race -p 1 -parallel 4 -timeout 40m $(go list ./... | grep -v "/mesh$")'
  # The clients' own speed counts here: only the plugin has the race detector.
  check "real requests in a mesh" bash -c 'cd e2e && go test -timeout 50m ./mesh'
  check "Istio accepts what the scenarios wrote" accepted "$work/written/lab"
else
  cat "$work/build.log"
  failed+=("building the lab's components")
fi

if ((${#failed[@]})); then
  say "FAILED:"
  printf '  %s\n' "${failed[@]}"
  exit 1
fi
say "all passed"
