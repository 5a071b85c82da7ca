# `make demo` and `make test` are all that is needed; both build what is missing.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Tools run from the module proxy at the versions given here.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GORELEASER  := github.com/goreleaser/goreleaser/v2@v2.15.1

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

.PHONY: help build demo test evidence check check-plugin check-lab test-unit test-istio test-lab bench fuzz lab release-snapshot clean

help: ## Show the targets.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

build: ## Build the plugin for this machine into bin/.
	go build -o bin/rollouts-plugin-trafficrouter-istio -ldflags "-X main.version=$(VERSION)" ./plugin

demo: ## Play the incident with the native router and with the plugin, side by side (4 min; the first time 50).
	cd e2e && go run ./cmd/demo

test: ## Everything that CI checks: vet, unit tests with -race, fuzz seeds, the lab's scenarios (30 min; the first time 75).
	@hack/test.sh

evidence: ## Count the requests that real clients lose, native router against plugin, into docs/evidence.md (15 min).
	cd e2e && go run ./cmd/evidence

check: check-plugin check-lab ## gofmt, go vet and staticcheck over all modules.

check-plugin:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "run gofmt -w on: $$unformatted"; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...

check-lab:
	cd e2e && go vet ./... && go run $(STATICCHECK) ./...
	cd e2e/istio && go vet ./... && go run $(STATICCHECK) ./...

test-unit: ## Unit tests and fuzz seeds, with the race detector.
	go test -race ./...

test-istio: ## Patches held against Istio's own validation.
	cd e2e/istio && go test ./...

test-lab: ## The scenarios on a real control plane; builds it if need be.
	cd e2e && go run ./cmd/lab build && go test -race -p 1 -parallel 4 -timeout 40m $$(go list ./... | grep -v '/mesh$$') && go test -timeout 30m ./mesh

bench: ## Benchmarks; the last ones with the plugin as a process and a real API server.
	go test -run '^$$' -bench . -benchmem ./...
	cd e2e && go test -run '^$$' -bench . -benchmem -benchtime 1000x ./bench

FUZZTIME ?= 1m
fuzz: ## Run every fuzz target for FUZZTIME.
	@for pkg in $$(go list ./pkg/...); do \
	  for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
	  done; \
	done

lab: ## Start the control plane with controller and plugin, until Ctrl-C.
	cd e2e && go run ./cmd/lab up

release-snapshot: ## Build the release's files into dist/, without publishing.
	go run $(GORELEASER) release --snapshot --clean
	cd dist && sha256sum --check checksums.txt

clean: ## Remove what was built, but not the lab's components (e2e/.bin).
	rm -rf bin dist
