#!/usr/bin/env bash
# Looks for known vulnerabilities in the code that the plugin calls. Without the
# vulnerability database nothing is known: that is a failure of its own, told
# apart from a finding, and never a success.
#
#   hack/vulnerabilities.sh MODULE@VERSION [DATABASE]
set -euo pipefail
cd "$(dirname "$0")/.."
tool=$1
database=${2:-https://vuln.go.dev}

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
GOBIN=$bin go install "$tool"

code=0
"$bin/govulncheck" -db "$database" ./... >"$bin/out" 2>&1 || code=$?
cat "$bin/out"
case $code in
0) echo "no known vulnerability is called" ;;
3)
  echo "vulnerable code is called: see above" >&2
  exit 3
  ;;
*)
  echo "NOTHING WAS CHECKED: govulncheck ended with $code before it could tell. It needs $database;" >&2
  echo "the workflow .github/workflows/vulnerabilities.yml runs it every day." >&2
  exit 2
  ;;
esac
