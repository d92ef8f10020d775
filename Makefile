# The front door. `make help` lists what can be asked for; every target can be run again.
SHELL := /bin/bash
.DEFAULT_GOAL := dev
MAKEFLAGS += --no-print-directory
JOBS ?= $(shell nproc)
CLUSTER_TOOL := tests/cluster/cluster
# The compiler cache must hit for any folder the sources lie in.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
export CCACHE_COMPILERCHECK := content
export CCACHE_SLOPPINESS := pch_defines,time_macros
export PYTHONDONTWRITEBYTECODE := 1

.PHONY: help deps dev release kube demo demo-down test e2e unit lint format sanitize soak fuzz bench \
        cluster-up cluster-down cluster-status cluster-shell crds install clean

help:  ## this list
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

deps:
	@./setup.sh build

build/%/build.ninja: CMakeLists.txt CMakePresets.json cmake/ossa.cmake
	@cmake --preset $* -Wno-dev > build-$*.log 2>&1 || { cat build-$*.log; rm -f build-$*.log; exit 1; }; rm -f build-$*.log

dev: deps-test build/dev/build.ninja  ## build everything with warnings as errors and assertions (build/dev/bin)
	@cmake --build --preset dev -j $(JOBS)

.PHONY: deps-test
deps-test:
	@./setup.sh test

release: deps  ## build what is shipped, guided by a profile (build/release/bin; PROFILE=renew, PROFILE=none)
	@JOBS=$(JOBS) cmake/release.sh ossa-webhook ossa-validator

kube:
	@$(CLUSTER_TOOL) build

demo: release kube  ## the whole thing on this machine: real control plane, webhook, samples; ends with a table
	@python3 tests/demo/demo.py up

demo-down:  ## end what `make demo` left running
	@python3 tests/demo/demo.py down

test: dev kube  ## all tests: unit, conformance, lint, end to end against a real API server
	@ctest --preset dev

unit: dev  ## the tests that need no network
	@ctest --preset dev -LE e2e

e2e: dev kube  ## only the tests against a real API server
	@ctest --preset dev -L e2e

lint: deps-test  ## layers, clocks, formatting
	@python3 tests/lint.py --format

format: deps-test  ## let clang-format decide
	@git ls-files '*.cpp' '*.hpp' | xargs clang-format-16 -i

sanitize: deps-test  ## unit and conformance tests and the hostile clients under ASan+UBSan, then under TSan
	@for s in asan tsan; do \
	  cmake --preset $$s -Wno-dev > /dev/null && cmake --build --preset $$s -j $(JOBS) && \
	  ctest --preset $$s -LE 'cluster|lint' || exit 1; done

soak: deps-test  ## 60 s of hostile clients and real load against the webhook under ASan and TSan (SOAK_SECONDS=60)
	@for s in asan tsan; do \
	  cmake --preset $$s -Wno-dev > /dev/null && cmake --build --preset $$s -j $(JOBS) --target ossa-webhook admission_load && \
	  python3 tests/e2e/soak.py --bin build/$$s/bin --seconds $${SOAK_SECONDS:-60} || exit 1; done

fuzz:  ## libFuzzer targets, FUZZ_SECONDS each (60)
	@./setup.sh fuzz && tests/fuzz/run.sh $${FUZZ_SECONDS:-60}

bench: deps-test  ## speed and memory, as ratios within one run (build/bench/*.json)
	@JOBS=$(JOBS) cmake/release.sh ossa-webhook ossa-validator admission_load limit_server admit_bench && tests/bench/run.sh

cluster-up: kube  ## a real Kubernetes control plane (kubeconfig at build/cluster/kubeconfig)
	@$(CLUSTER_TOOL) up

cluster-down:  ## end it
	@$(CLUSTER_TOOL) down

cluster-status:  ## what of it runs
	@$(CLUSTER_TOOL) status

crds: dev  ## write manifests/crds from the schemas
	@cmake --build --preset dev --target crds

install: release  ## install the programs (DESTDIR=, PREFIX=/usr/local)
	@cmake --install build/release --prefix $(or $(PREFIX),/usr/local)

clean: ## remove build/ (the cluster must be down; caches under ~/.cache stay)
	@rm -rf build
