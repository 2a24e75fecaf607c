# The entry point for people and CI. `make` alone prints the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
export PATH := $(PATH):$(HOME)/.cargo/bin
PREFIX ?= /usr/local
DESTDIR ?=
S ?= 60

help: ## print this
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

setup: ## install what is missing (FULL=1: cargo-deny and cargo-fuzz too)
	@scripts/setup.sh

build: setup ## build the router and its client
	cargo build --locked --release -p shoal -p shoalctl

dpdk: ## build dpdk_plugin.so into target/dpdk, where DPDK's headers are
	@scripts/dpdk.sh

demo: build ## two hosts and a router in namespaces (KEEP=1 stays with a CLI)
	@scripts/in-namespace.sh scripts/demo.sh

test: setup ## lints, all tests, real hosts in namespaces (V=1 shows all output)
	@scripts/run-tests.sh lint unit netns papi govpp

unit: setup ## all tests that need no namespaces (P=shoal-config: of one crate)
	cargo test --locked $(if $(P),-p $(P),--workspace)

netns: build ## real hosts in network namespaces
	@scripts/run-tests.sh netns

papi: build ## vpp_papi, scapy and vppcfg against the router
	@scripts/papi.sh

govpp: build ## a GoVPP program, with bindings generated from share/api
	@scripts/govpp.sh

bench: setup ## clocks, instructions, allocations per packet into target/bench.json (ARGS="--seconds 5" BASE=before.json)
	@BASE="$(BASE)" scripts/bench.sh $(ARGS)

lab: build ## measure routers by the RFCs: doctor, a demonstration, a report (ARGS="suite paper")
	@scripts/lab.sh $(ARGS)

lab-proof: setup ## prove that the lab measures right: what is too slow for `make test`, and MLRsearch's own library beside ours
	@scripts/lab-proof.sh

power: build ## what the router takes of a processor at each load (RATES="0 1000" EACH=5)
	@scripts/in-namespace.sh scripts/power.sh

fuzz: ## fuzz one target for S seconds, or all (T=NAME S=60)
	@FULL=1 scripts/setup.sh && scripts/fuzz.sh "$(T)" $(S)

lint: setup ## format, clippy, layers, unsafe, sizes, documents, licences, advisories
	@scripts/lint.sh

gen: setup ## write generated references anew
	@scripts/gen.sh

check: lint build ## all of it: lint, generated files up to date, test, the lab's guard (BASE=older/shoal)
	@scripts/gen.sh --check
	@scripts/run-tests.sh unit netns papi govpp
	@scripts/guard.sh $(if $(BASE),--base $(BASE))

install: build ## install below PREFIX (/usr/local), with DESTDIR for packages
	@DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" scripts/install.sh

.PHONY: help setup build dpdk demo test unit netns papi govpp bench lab lab-proof power fuzz lint gen check install
