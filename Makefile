# The entry point for people and CI. `make` alone prints the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
export PATH := $(PATH):$(HOME)/.cargo/bin
PREFIX ?= /usr/local
DESTDIR ?=
S ?= 60

help: ## print this
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

setup: ## install what all targets need (FULL=1: cargo-deny and cargo-fuzz too); each target installs what it needs itself
	@scripts/setup.sh all

build: ## build the router and its client into target/release, their symbols beside them
	@scripts/setup.sh build
	scripts/release.sh -p shoal -p shoalctl
	@scripts/symbols.sh target/release/shoal target/release/shoalctl

dpdk: ## build dpdk_plugin.so into target/dpdk, where DPDK's headers are
	@scripts/dpdk.sh

deb: ## packages for Debian into target/packages: router, lab, DPDK plugin, symbols, VPP's names
	@scripts/setup.sh deb
	@scripts/deb.sh

image: deb ## a container image of the packages into target/image/shoal.tar (as root)
	@scripts/setup.sh image
	@scripts/image.sh

demo: build ## two hosts and a router in namespaces (KEEP=1 stays with a CLI)
	@scripts/setup.sh demo
	@scripts/in-namespace.sh scripts/demo.sh

test: ## that the router works: unit and property tests, real hosts in namespaces, vpp_papi
	@scripts/setup.sh test
	@scripts/run-tests.sh test

test-all: ## what CI runs: `make test`, then clippy, the lab, DPDK, virtual machines, GoVPP
	@scripts/setup.sh all
	@scripts/run-tests.sh test rest

unit: ## all tests that need no namespaces (P=shoal-config: of one crate)
	@scripts/setup.sh test
	cargo test --locked $(if $(P),-p $(P),--workspace)

netns: ## real hosts in network namespaces, virtual machines among them
	@scripts/setup.sh all
	@scripts/run-tests.sh programs dpdk-build netns guests

papi: build ## vpp_papi, scapy and vppcfg against the router
	@scripts/setup.sh test
	@scripts/papi.sh

vpp-suite: build ## VPP's own tests that pass must go on passing (VPP_SUITE=vpp/test FILES="ip4 neighbor" WRITE=1)
	@scripts/setup.sh suite
	@VPP_SUITE="$(VPP_SUITE)" WRITE="$(WRITE)" scripts/vpp-suite.sh $(FILES)

govpp: build ## a GoVPP program, with bindings generated from share/api
	@scripts/setup.sh all
	@scripts/govpp.sh

bench: ## clocks, instructions, allocations per packet into target/bench.json (ARGS="--seconds 5" BASE=before.json)
	@scripts/setup.sh bench
	@BASE="$(BASE)" scripts/bench.sh $(ARGS)

lab: build ## measure routers by the RFCs: doctor, a demonstration, a report (ARGS="suite paper")
	@scripts/setup.sh all
	@scripts/lab.sh $(ARGS)

lab-proof: ## prove that the lab measures right: what is too slow for `make test-all`, and MLRsearch's own library beside ours
	@scripts/setup.sh lab
	@scripts/lab-proof.sh

power: build ## what the router takes of a processor at each load (RATES="0 1000" EACH=5)
	@scripts/setup.sh demo
	@scripts/in-namespace.sh scripts/power.sh

stress: ## the tests of `make test` three times beside a busy loop on each core (ROUNDS=1, STAGES="netns")
	@scripts/setup.sh test
	@scripts/stress-tests.sh

fuzz: ## fuzz one target for S seconds, or all (T=NAME S=60)
	@FULL=1 scripts/setup.sh build && scripts/fuzz.sh "$(T)" $(S)

lint: ## format, clippy, layers, unsafe, sizes, documents, licences, advisories
	@scripts/setup.sh build
	@scripts/lint.sh

gen: ## write generated references anew
	@scripts/setup.sh build
	@scripts/gen.sh

check: lint build ## all of it: lint, generated files up to date, test-all, the lab's guard (BASE=older/shoal)
	@scripts/gen.sh --check
	@scripts/setup.sh all
	@scripts/run-tests.sh test rest
	@scripts/guard.sh $(if $(BASE),--base $(BASE))

install: ## install what `make build` built below PREFIX (/usr/local), with DESTDIR for packages; builds nothing
	@DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" scripts/install.sh

.PHONY: help setup build dpdk deb image demo test test-all unit netns papi vpp-suite govpp bench lab lab-proof power stress fuzz lint gen check install
