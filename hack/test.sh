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

say "building the lab's components in the background (from nothing: about 40 minutes; log below if it fails)"
(cd e2e && go run ./cmd/lab build) >"$work/build.log" 2>&1 &
build=$!

check "gofmt, go vet, staticcheck: plugin" make --no-print-directory check-plugin
check "unit tests and fuzz seeds, -race" go test -race ./...
check "the lab's own module: vet, staticcheck" make --no-print-directory check-lab

say "waiting for the lab's components"
while kill -0 "$build" 2>/dev/null; do
  sleep 20
  kill -0 "$build" 2>/dev/null && say "building: $(tail -n 1 "$work/build.log")"
done
if wait "$build"; then
  # One package after the other: two labs at once would slow each other down,
  # and within a package the scenarios run side by side.
  check "scenarios on a real control plane, -race" bash -c 'cd e2e && go test -race -p 1 -parallel 4 -timeout 40m ./...'
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
