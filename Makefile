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
build: ## Build cellcast-hub, cellcast-agent, cellcast and the images into bin/.
	@mkdir -p bin
	go build -o bin/ ./cmd/... ./hack/demo
	@# Static, without paths and build ids, so that the images are the same each time.
	@mkdir -p bin/images
	CGO_ENABLED=0 GOOS=linux go build -trimpath -buildvcs=false -ldflags='-s -w -buildid=' -o bin/images/ ./cmd/cellcast-canary ./hack/image/pause
	@go run ./hack/image -name cellcast.io/canary:dev -o bin/images/cellcast-canary.tar bin/images/cellcast-canary
	@go run ./hack/image -name cellcast.io/pause:dev -o bin/images/pause.tar bin/images/pause
	@ln -sf cellcast bin/kubectl-cellcast
	@ln -sf cellcast bin/kubectl-create_placement
	@ln -sf cellcast bin/kubectl-create-placement

.PHONY: node
node: kube build ## Say whether a cell can have a real node here, on which pods run.
	@go run ./test/world/havenode

.PHONY: demo
demo: node ## Start a hub and three cells, do the main job on them, stop them.
	@bin/demo run

.PHONY: demo-up
demo-up: node ## Start the demo's clusters and leave them running.
	@bin/demo up

.PHONY: demo-down
demo-down: ## Stop what demo-up left running.
	@bin/demo down

.PHONY: test
test: node ## Run every test, on real control planes.
	CELLCAST_REQUIRE_WORLD=1 go test $(RACE) -timeout 25m $$(go list ./... | grep -v -e /test/resilience -e /test/targets)
	@# By itself: pods that start and targets that answer late are waited for.
	CELLCAST_REQUIRE_WORLD=1 go test $(RACE) -timeout 25m ./test/targets
	@# By itself and without the race detector: it puts a fleet under load.
	CELLCAST_REQUIRE_WORLD=1 go test -timeout 15m -v ./test/resilience

.PHONY: flood
flood: kube build ## Post 100,000 tokens of strangers to a hub and a cell, and print what it cost them.
	CELLCAST_REQUIRE_WORLD=1 CELLCAST_FLOOD_POSTS=100000 go test -timeout 15m -v -run Flood ./test/targets

.PHONY: bench
bench: kube build ## Measure decisions, placements, mints, the client and memory; prints lines `bench NAME VALUE UNIT`.
	CELLCAST_REQUIRE_WORLD=1 go run ./test/bench

.PHONY: generate
generate: ## Write everything that is derived from apis/.
	hack/update-codegen.sh

.PHONY: verify
verify: ## Fail when generated files, formatting, go.mod or the linter disagree.
	hack/verify.sh
