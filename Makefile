# kvjournal: make run and make test do all their set-up on a bare Debian or Ubuntu with Go and a C compiler.

SHELL := /bin/bash
DIR ?= kvjournal-data
ENDPOINT ?=
MASTER ?=
DURATION ?=
# Tests that kill, soak or measure take their size from here.
KILLS ?= 20
POINTS ?= 1000
DAMAGES ?= 1000
FUZZTIME ?= 30s
HOURS ?= 1
OUT ?= soak
# make install goes to DESTDIR/PREFIX.
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
DESTDIR ?=
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null)
PACKAGES := ./...
# make bench: flags of bench/ beside these, as BENCH='--contenders kvjournal,raft-wal --events-1 0'.
ROUNDS ?= 5
SIZES ?= 1000000,10000000,100000000
BENCH ?=

.PHONY: help setup build manual install uninstall run test lint bench bench-growth benchmarks browser figures past doubts lookups reconcile crash damage events soak fuzz clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

# libzmq, pkg-config and curl come from the system's package manager, modules from Go.
setup: ## what the others need: libzmq, pkg-config, curl, modules
	@command -v go >/dev/null || { echo "Go is missing: see https://go.dev/doc/install" >&2; exit 1; }
	@command -v $${CC:-cc} >/dev/null || { echo "a C compiler is missing: apt-get install gcc libc6-dev" >&2; exit 1; }
	@if ! pkg-config --exists libzmq 2>/dev/null; then \
		command -v apt-get >/dev/null || { echo "libzmq (4.3 or later, with headers) and pkg-config are missing: install them" >&2; exit 1; }; \
		echo "installing libzmq3-dev and pkg-config"; \
		sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
		$$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq libzmq3-dev pkg-config >/dev/null; \
	fi
	@command -v curl >/dev/null || { \
		command -v apt-get >/dev/null || { echo "curl is missing: the tests run the README's examples" >&2; exit 1; }; \
		sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; $$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq curl >/dev/null; \
	}
	@go mod download
	@cd bench && go mod download
	@cd query/web/browsertest && go mod download
	@cd query/httpapi/openapitest && go mod download

build: setup ## build bin/kvjournal and bin/mooncakesim
	@mkdir -p bin
	go build -ldflags "-X main.version=$(VERSION)" -o bin/ ./cmd/kvjournal ./cmd/mooncakesim

manual: build ## man pages and completions of all commands, in bin/share
	bin/kvjournal manual bin/share

install: build ## program, man pages, completions, systemd unit: PREFIX=/usr/local, SYSCONFDIR=/etc, DESTDIR=
	@PREFIX='$(PREFIX)' SYSCONFDIR='$(SYSCONFDIR)' DESTDIR='$(DESTDIR)' bash cmd/kvjournal/packaging/install.sh

uninstall: build ## remove what make install put there, but for settings and data
	@PREFIX='$(PREFIX)' SYSCONFDIR='$(SYSCONFDIR)' DESTDIR='$(DESTDIR)' bash cmd/kvjournal/packaging/install.sh -u

run: build ## record, index and serve; ENDPOINT=tcp://host:5557 MASTER=http://host:9003, else a simulated master; DURATION=20s
	@DIR='$(DIR)' ENDPOINT='$(ENDPOINT)' MASTER='$(MASTER)' DURATION='$(DURATION)' bash cmd/kvjournal/packaging/run.sh

test: setup ## the whole test suite, with the race detector
	go test -race -timeout 60m $(PACKAGES)
	go test -run Allocates ./index
	cd query/httpapi/openapitest && go test -timeout 30m ./...
	cd bench && go test -timeout 30m ./...
	@$(MAKE) --no-print-directory browser

lint: setup ## gofmt, go vet, staticcheck
	@bad=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$bad" ] || { echo "gofmt: $$bad" >&2; exit 1; }
	go vet $(PACKAGES)
	go run $(STATICCHECK) $(PACKAGES)
	cd bench && go vet ./... && go run $(STATICCHECK) ./...
	cd query/web/browsertest && go vet ./... && go run $(STATICCHECK) ./...
	cd query/httpapi/openapitest && go vet ./... && go run $(STATICCHECK) ./...

bench: setup ## beside what could be used instead, ROUNDS=5 in turn: table, bench/results/latest.json and plots
	cd bench && go run . --rounds $(ROUNDS) $(BENCH)

bench-growth: setup ## from SIZES=1000000,10000000,100000000 events: what appending and asking cost at each
	cd bench && go run . --growth $(SIZES) $(BENCH)

benchmarks: setup ## benchmarks of the packages
	go test -run '^$$' -bench . -benchtime 2s $(PACKAGES)

# chromium comes from the system's package manager; KVJOURNAL_CHROMIUM names another browser of its kind.
browser: setup ## the page in a real Chromium
	@if [ -z "$$KVJOURNAL_CHROMIUM" ] && ! command -v chromium >/dev/null; then \
		command -v apt-get >/dev/null || { echo "chromium is missing: install it, or name one of its kind with KVJOURNAL_CHROMIUM" >&2; exit 1; }; \
		echo "installing chromium"; \
		sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
		$$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	fi
	cd query/web/browsertest && go test -timeout 30m ./...

figures: build ## the product's figures on this machine: flat out, disk, first answer after kill -9
	bash cmd/kvjournal/packaging/figures.sh

past: build ## what questions about the past cost, on 20 million events
	bash cmd/kvjournal/packaging/past.sh

doubts: build ## how long a million doubts take to resolve with the master, under load
	bash cmd/kvjournal/packaging/doubts.sh

# wrk comes from the system's package manager.
lookups: build ## what a recorder on one core answers over HTTP beside 50,000 events/s, asked by wrk
	@command -v wrk >/dev/null || { \
		command -v apt-get >/dev/null || { echo "wrk is missing: install it" >&2; exit 1; }; \
		sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; $$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq wrk >/dev/null; \
	}
	@bash cmd/kvjournal/packaging/lookups.sh

reconcile: setup ## ten minutes of losses and restarts beside a master: nothing confirmed is wrong
	KVJOURNAL_RECONCILE=10m go test -run 'ReconcileUnderLosses' -timeout 30m -v ./cmd/kvjournal

crash: setup ## crash and break a directory at POINTS=1000 operations each, then kill -9 a real recorder under load KILLS=20 times
	KVJOURNAL_POINTS=$(POINTS) go test -count=1 -timeout 120m -v ./query/internal/storm
	KVJOURNAL_POINTS=$(POINTS) go test -count=1 -run EachFailure -timeout 120m -v ./query/backup
	KVJOURNAL_KILLS=$(KILLS) go test -count=1 -run 'Kill9' -timeout 120m -v ./cmd/kvjournal

events: setup ## a consumer of a million server-sent events, killed at random: nothing missed, nothing twice
	KVJOURNAL_SSE_EVENTS=1000000 go test -count=1 -run 'EventsMissNothing' -timeout 60m -v ./cmd/kvjournal

soak: setup ## HOURS=1 of load, losses, restarts, readings, questions and backups; memory and latencies, plotted in OUT=soak
	KVJOURNAL_SOAK=$(HOURS)h KVJOURNAL_SOAK_OUT=$(abspath $(OUT)) go test -run '^TestSoak$$' -timeout 0 -v ./cmd/kvjournal

damage: setup ## DAMAGES=1000 random damages of a directory: found, never a wrong answer, repaired
	KVJOURNAL_DAMAGES=$(DAMAGES) go test -run 'TestDamage$$' -timeout 120m -v ./query/service

fuzz: setup ## each fuzz target for FUZZTIME=30s
	@set -e; for pkg in $$(go list $(PACKAGES)); do \
		for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg; \
		done; \
	done

clean: ## remove what was built
	rm -rf bin
