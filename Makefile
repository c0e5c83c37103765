# Two commands are enough: `make demo` and `make test`. They need Go, git and
# make; a C compiler where the tests shall run under the race detector.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The race detector needs cgo; without a C compiler the tests run without it.
RACE := $(shell [ "$$(go env CGO_ENABLED)" = 1 ] && command -v "$$(go env CC)" >/dev/null && echo -race)

.PHONY: help
help: ## Show the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: kube
kube: ## Build the pinned etcd, Kubernetes and kubectl into bin/ (once; a second call is instant).
	@if [ -z "$${KUBEBUILDER_ASSETS:-}" ]; then hack/kube/build.sh; fi

.PHONY: build
build: ## Build cellcast-hub, cellcast-agent and cellcast into bin/.
	@mkdir -p bin
	go build -o bin/ ./cmd/... ./hack/demo
	@ln -sf cellcast bin/kubectl-cellcast
	@ln -sf cellcast bin/kubectl-create_placement
	@ln -sf cellcast bin/kubectl-create-placement

.PHONY: demo
demo: kube build ## Start a hub and three cells, do the main job on them, stop them.
	@bin/demo run

.PHONY: demo-up
demo-up: kube build ## Start the demo's clusters and leave them running.
	@bin/demo up

.PHONY: demo-down
demo-down: ## Stop what demo-up left running.
	@bin/demo down

.PHONY: test
test: kube build ## Run every test, on real control planes.
	CELLCAST_REQUIRE_WORLD=1 go test $(RACE) -timeout 25m $$(go list ./... | grep -v /test/resilience)
	@# By itself and without the race detector: it puts a fleet under load.
	CELLCAST_REQUIRE_WORLD=1 go test -timeout 15m -v ./test/resilience

.PHONY: bench
bench: kube build ## Measure decisions, placements, mints, the client and memory; prints lines `bench NAME VALUE UNIT`.
	CELLCAST_REQUIRE_WORLD=1 go run ./test/bench

.PHONY: generate
generate: ## Write everything that is derived from apis/.
	hack/update-codegen.sh

.PHONY: verify
verify: ## Fail when generated files, formatting, go.mod or the linter disagree.
	hack/verify.sh
