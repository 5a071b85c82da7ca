# `make demo` and `make test` are all that is needed; both build what is missing.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Tools run from the module proxy at the versions given here.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GORELEASER  := github.com/goreleaser/goreleaser/v2@v2.15.1
ACTIONLINT  := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

.PHONY: help build demo simulate test evidence check check-plugin check-lab check-workflows check-licences licences vulnerabilities test-unit test-istio test-lab test-matrix bench fuzz lab release release-snapshot release-reproducible clean

help: ## Show the targets.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

build: ## Build the plugin for this machine into bin/.
	go build -o bin/rollouts-plugin-trafficrouter-istio -ldflags "-X main.version=$(VERSION)" ./plugin

demo: ## Play the incident with the native router and with the plugin, side by side (4 min; the first time 50).
	cd e2e && go run ./cmd/demo

simulate: ## Play your own Rollout with both routers: make simulate F=rollout.yaml (1 min; the first time 30; SIMULATE="--scenario canary").
	@test -n "$(F)" || { echo "name the files or folders with your Rollout, or - for stdin: make simulate F=rollout.yaml"; exit 2; }
	cd e2e && go run ./cmd/simulate $(foreach f,$(F),-f "$(if $(filter -,$(f)),-,$(abspath $(f)))") $(SIMULATE)

test: ## Everything that CI checks: vet, unit tests with -race, fuzz seeds, the lab's scenarios (30 min; the first time 75).
	@hack/test.sh

evidence: ## Count the requests that real clients lose, native router against plugin, into docs/evidence.md (15 min).
	cd e2e && go run ./cmd/evidence

check: check-plugin check-lab check-workflows check-licences ## gofmt, go vet and staticcheck over all modules, workflows, licences.

check-plugin:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "run gofmt -w on: $$unformatted"; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...

check-lab:
	cd e2e && go vet ./... && go run $(STATICCHECK) ./...
	cd e2e/istio && go vet ./... && go run $(STATICCHECK) ./...

check-workflows:
	go run $(ACTIONLINT) -shellcheck= -pyflakes=
	@unpinned=$$(grep -nE '^ *-? *uses:' .github/workflows/*.yml | grep -vE 'uses: (\./|[^@]+@[0-9a-f]{40} \# v[0-9]+\.[0-9]+\.[0-9]+$$)' || true); \
	  test -z "$$unpinned" || { echo "give each action by the commit, with its version behind it:"; echo "$$unpinned"; exit 1; }

check-licences:
	cd hack/licences && go vet ./... && go test ./... && go run . --check ../..

licences: ## List the licences of what a binary contains, into docs/licences.md.
	cd hack/licences && go run . ../..

vulnerabilities: ## Look for known vulnerabilities in what a binary contains; needs access to vuln.go.dev.
	hack/vulnerabilities.sh $(GOVULNCHECK)

test-unit: ## Unit tests and fuzz seeds, with the race detector.
	go test -race -timeout 20m ./...

test-istio: ## Patches held against Istio's own validation.
	cd e2e/istio && go test ./...

test-lab: ## The scenarios on a real control plane; builds it if need be.
	cd e2e && go run ./cmd/lab build && go test -race -p 1 -parallel 4 -timeout 40m $$(go list ./... | grep -v '/mesh$$') && go test -timeout 50m ./mesh

test-matrix: ## The plugin on every supported controller and version of Istio's kinds, into docs/compatibility.md (10 min).
	cd e2e && go run ./cmd/matrix

bench: ## Benchmarks, then native router and plugin with many canaries and idle Rollouts, into docs/benchmarks.md (45 min).
	go test -run '^$$' -bench . -benchmem ./...
	cd e2e && go test -run '^$$' -bench . -benchmem -benchtime 1000x ./bench
	cd e2e && go run ./cmd/bench

FUZZTIME ?= 1m
fuzz: ## Run every fuzz target for FUZZTIME.
	@for pkg in $$(go list ./pkg/...); do \
	  for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
	  done; \
	done

lab: ## Start the control plane with controller and plugin, until Ctrl-C.
	cd e2e && go run ./cmd/lab up

release: ## Build and upload the release of the tag that is checked out, as a draft; the workflow does this.
	go run $(GORELEASER) release --clean --draft

release-snapshot: ## Build the release's files into dist/, without publishing.
	go run $(GORELEASER) release --snapshot --clean
	cd dist && sha256sum --check checksums.txt

release-reproducible: ## Build this machine's binary of dist/ again, elsewhere, and compare the sums.
	hack/rebuild.sh

clean: ## Remove what was built, but not the lab's components (e2e/.bin).
	rm -rf bin dist
