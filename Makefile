# `make run` serves an example on http://127.0.0.1:8080; `make test` runs all tests.
# Both install what is missing (Debian 12, or 13 with PHP_CONFIG=php-config8.4) and build first.

CARGO ?= cargo
PHP_CONFIG ?= php-config8.2
export PHP_CONFIG

.PHONY: help run test unflake build bench setup setup-test setup-bench lint lint-text unit bench-unit model whole php php-tests \
	php84 php84-next two-versions threads chaos chaos-rates chaos-transports visitors interrupted upgrades built engine ledger \
	reads spies collector pebble caddy nightly deny fuzz hostile clean php-engine pgo peers

help:
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: setup ## serve examples/hello on http://127.0.0.1:8080, with a server that is built quickly
	$(CARGO) build --profile quick --locked -p samovar -p samovar-php
	@echo "run: this server is built without optimization and needs several times the CPU time per request"
	@echo "hint: \`make build\` makes the one to measure and to use, in about ten minutes"
	target/quick/samovar serve examples/hello/public --access-log - --relink false

# Containers usually run as root.
run: export SAMOVAR_ALLOW_ROOT = true

test: setup-test built ## all tests: Rust, C, PHP, whole servers, formatting and linters (TEST="words" runs some)
	@scripts/step.sh tests $(RUN_TESTS) $(TEST)
	@scripts/step.sh --summary

unflake: setup-test built ## one test 200 times next to busy loops, then next to its neighbours (TEST=name, RUNS)
	$(RUN_TESTS) --unflake $(TEST) --runs $(or $(RUNS),200)

bench: build setup-bench ## servers side by side: CPU per request, latency, memory (BENCH_ARGS=--quick to try)
	$(CARGO) build --release --locked -p samovar-load
	$(CARGO) build --release --locked -p samovar-front --example bare_hello
	bench/run.py $(BENCH_ARGS)

peers: ## other servers, of their sources, for `make bench` (PEERS="swoole=FOLDER workerman=FOLDER roadrunner=FOLDER frankenphp=FOLDER")
	@scripts/setup.sh peers
	bench/peers/build.sh $(PEERS)

PGO = CARGO="$(CARGO)" scripts/pgo.sh

build: setup ## target/release/samovar and samovar-php, optimized by the profile in scripts/pgo
	$(PGO) build

pgo: setup-test setup-bench ## that profile anew: after changes of the hot path, or for another compiler (20 minutes; PGO_SECONDS)
	$(PGO) train

php-engine: setup ## a libphp of the installed PHP that takes less CPU, in target/engine (ENGINE=FOLDER; 3 to 20 minutes)
	scripts/php-engine.sh $(ENGINE)

# The server under test: `tested` is built with the tests; `release` is what users run.
SERVER ?= tested
BINARY = $(CURDIR)/target/$(SERVER)/samovar

# Cargo's messages: they say where the test programs are.
MESSAGES = target/tests/built.json
RUN_TESTS = env SAMOVAR_BIN=$(BINARY) SAMOVAR_BINARY=$(BINARY) target/tested/run-tests --built $(MESSAGES) $(TIER)
# One test, whose output is shown while it runs.
SHOW = $(RUN_TESTS) --show

# One build for the tests, the server that they start, and clippy, which looks at our crates while they are compiled.
built: setup ## all test programs and the server
	@mkdir -p target/tests
	@scripts/step.sh build env RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings \
	    $(CARGO) test --no-run --locked --workspace --all-targets --profile tested \
	    --message-format=json-render-diagnostics >$(MESSAGES)

setup: ## install the Debian packages that the build needs
	@scripts/setup.sh build

setup-test: ## those that the tests and linters need, too
	@scripts/setup.sh test
	@scripts/php-src.sh

setup-bench: ## those that the benchmarks need
	@scripts/setup.sh bench

lint: built lint-text ## formatting and linters of Rust, C, shell, Python and PHP; the tree against its documents
	$(RUN_TESTS) tidy::

lint-text:
	target/tested/lint-language
	$(CARGO) fmt --all --check
	find crates/worker/csrc -name '*.[ch]' -exec clang-format --dry-run --Werror {} +
	shellcheck scripts/*.sh scripts/php-engine/cc bench/peers/build.sh .ci/run
	flake8 bench
	find php examples bench -name vendor -prune -o -name var -prune -o -name '*.php' -print0 | \
	    xargs -0 -n 1 -P 2 php -n -d display_errors=stderr -l >/dev/null
	cd php && phpcs -q
	phpcs -q -n --standard=PSR12 --ignore='*.blade.php,*/vendor/*,*/var/*' examples bench php/wordpress

unit: built bench-unit ## tests inside the crates, and those of the benchmarks' own code
	$(RUN_TESTS) --skip suite:: --skip conformance --skip make/

bench-unit:
	/usr/bin/python3 -m unittest discover --quiet -s bench/suite/tests -t bench

model: ## the shared-memory protocol under the model checker
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom $(CARGO) test --profile model --locked -p samovar-ring -p samovar-shared --lib interleavings

whole: setup-test built ## whole-server tests, many of them next to nginx + php-fpm
	$(RUN_TESTS) suite:: conformance

php: setup-test built ## tests of the Composer package samovar/runtime
	$(RUN_TESTS) make/php

php-tests:
	cd php && phpunit --colors=never --fail-on-skipped

php84: ## tests of whole servers and of php/ with PHP 8.4, in a Debian 13 below /var/cache/samovar (root, 3 GB)
	scripts/second-root.sh trixie 8.4 make setup-test spies whole php

php84-next: ## the same in Debian's testing, with what comes next: Symfony 7.4, Laravel 13, nginx 1.30
	scripts/second-root.sh forky 8.4 make setup-test spies whole php

two-versions: ## two PHP versions in pools of one server: this machine's, and Debian 13's in a folder (root, 3 GB)
	scripts/two-versions.sh trixie 8.4

threads: export FRONT_THREADS = 3
threads: built ## whole servers whose front has three threads, whatever is tested of them
	$(RUN_TESTS) $(patsubst %,suite::%::,acme admin compression consoles control edge exporters fastcgi fastcgi_upstream faults \
		fronts http locations pools reload service smuggling upgrade)

chaos: built ## all that can go wrong, mixed, for minutes (CHAOS_SECONDS, CHAOS_SEED, CHAOS_ONLY, CHAOS_MODEL)
	$(SHOW) suite::chaos::all_kinds_mixed

chaos-transports: built ## the same over FastCGI (nginx in front) and over HTTP/2 and TLS (HAProxy in front)
	CHAOS_TRANSPORT=fastcgi $(SHOW) suite::chaos::all_kinds_mixed
	CHAOS_TRANSPORT=h2 $(SHOW) suite::chaos::all_kinds_mixed

chaos-rates: built ## good requests' p50 and p99, calm and next to ten crashes a second
	$(SHOW) ten_crashes_a_second

visitors: export OUTSIDE_REQUESTS ?= 100000
visitors: built ## 100,000 visitors of connections that were opened above a checkpoint (OUTSIDE_REQUESTS, OUTSIDE_SEED)
	$(SHOW) no_visitor_meets_another

interrupted: export TASKS_REQUESTS ?= 100000
interrupted: built ## 100,000 requests that end at odd places while tasks wait in the middle of something (TASKS_REQUESTS, TASKS_SEED)
	$(SHOW) nothing_stays_of_tasks_however_they_end

upgrades: built ## a hundred upgrades under load in each execution model
	$(SHOW) --only-ignored suite::upgrade::

engine: export RELINK_EVERY = 1
engine: built ## php-src's tests of the engine and the language, all of them, in a PHP that was relinked and as it was built
	$(SHOW) what_passes_as_built_passes_relinked

ledger: built ## the CPU time of 10,000 requests in each execution model is accounted for
	$(SHOW) --only-ignored suite::ledger::

reads: export SPY_READS ?= 100000
reads: built ## 100,000 reads of stacks that move, and of processes that are forked and killed all the time (SPY_READS)
	$(SHOW) spy/stacks::moving spy/stacks::storms

# Another PHP than Debian's: PHP_CONFIG=/opt/php/bin/php-config, with PHP beside it. Built for threads, it is looked at with several
# of them, where it has its library for embedding.
spies: ## stacks of another PHP, read from outside: make spies PHP_CONFIG=/opt/php/bin/php-config (SPY_READS)
	$(CARGO) test --locked -p samovar-spy --test layout --test stacks -- --nocapture

collector: export COLLECTOR_BIN = $(CURDIR)/target/collector/collector
collector: built ## spans and figures at OpenTelemetry's own collector, built of its Go modules (Go 1.22; some minutes)
	scripts/collector.sh $(COLLECTOR_BIN)
	$(SHOW) a_real_collector

pebble: export PEBBLE_BIN = $(CURDIR)/target/pebble/pebble
pebble: built ## certificates by Pebble, Let's Encrypt's authority for tests, built of its Go module
	scripts/pebble.sh $(CURDIR)/target/pebble
	$(SHOW) --only-ignored suite::acme::pebble

caddy: export CADDY_BIN = $(CURDIR)/target/caddy/caddy
caddy: built ## Caddy in front, by FastCGI and by HTTP, built of its Go module (Go 1.26; some minutes)
	scripts/caddy.sh $(CURDIR)/target/caddy
	$(SHOW) --only-ignored caddy

# What the nightly tier has beyond `make test`, and why it is not in that:
#   the release build (LTO and the profile take eight minutes); servers of one script that relink PHP, too (twice the CPU
#   time of each start); every case of conformance by FastCGI and HTTP/2 (four times the requests); crowds of 500 instead of
#   200 requests; three threads of the front (all of its tests again); minutes of chaos; 100,000 visitors, interrupted
#   requests and reads; a hundred upgrades; all 5,000 tests of php-src's engine; Go programs that are built first.
nightly: export SERVER = release
nightly: export TIER = --nightly
nightly: export RELINK = all
nightly: export FASTCGI = all
nightly: export HTTP2 = all
nightly: export CROWD_REQUESTS = 500
# Those that fetch Go modules come last.
NIGHTLY = setup-test build whole threads php chaos chaos-rates chaos-transports visitors interrupted upgrades engine ledger reads \
	spies hostile pebble caddy
nightly: $(NIGHTLY) ## what is too slow for every run

deny: built ## licences and sources of the dependencies: our own look, and cargo-deny's where it is installed
	$(RUN_TESTS) --output target/tests/deny tidy::dependencies::
	@if $(CARGO) deny --version >/dev/null 2>&1; then \
	    $(CARGO) deny --locked check licenses bans sources; \
	else \
	    echo "deny: cargo-deny is not installed, so only our own look at licences and sources was taken"; \
	    echo "hint: cargo install --locked cargo-deny"; \
	fi

fuzz: ## a minute each of fuzzing the front against hostile memory, PROXY headers and FastCGI, and the file of settings (needs cargo-fuzz and nightly)
	cd crates/ring && $(CARGO) +nightly fuzz run scribble -- -max_total_time=60
	cd crates/front && $(CARGO) +nightly fuzz run proxy_header -- -max_total_time=60
	cd crates/front && $(CARGO) +nightly fuzz run fastcgi -- -max_total_time=60
	cd crates/front && $(CARGO) +nightly fuzz run fastcgi_answer -- -max_total_time=60
	cd crates/config && $(CARGO) +nightly fuzz run file -- -max_total_time=60

# Each run draws other bytes, but for those of the settings' file; what fails is told with its bytes.
hostile: ## what `make fuzz` asks, for minutes, of bytes that nobody guides, with the usual compiler (PROPTEST_CASES)
	export PROPTEST_CASES=$${PROPTEST_CASES:-100000}; $(CARGO) test --release --locked -p samovar-ring -p samovar-front -p samovar-config \
		--test hostile --test fastcgi_bytes --test proxy_bytes

clean: ## remove what was built
	$(CARGO) clean
