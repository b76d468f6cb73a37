# `make run` serves an example on http://127.0.0.1:8080; `make test` runs all tests.
# Both install what is missing (Debian 12, or 13 with PHP_CONFIG=php-config8.4) and build first.

CARGO ?= cargo
PHP_CONFIG ?= php-config8.2
export PHP_CONFIG

.PHONY: help run test build bench setup setup-test setup-bench lint unit model whole php php84 php84-next two-versions threads chaos \
	chaos-rates chaos-transports visitors interrupted upgrades tested engine ledger reads spies collector pebble caddy nightly deny fuzz hostile clean \
	php-engine pgo peers

help:
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: build ## serve examples/hello on http://127.0.0.1:8080
	target/release/samovar serve examples/hello/public --access-log -

# Who tries it out in a container is root there.
run: export SAMOVAR_ALLOW_ROOT = true

test: setup-test lint unit model whole php ## all tests
	@echo "all tests passed"

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

# The profile of the server that tests run; TESTED=release is what users run.
TESTED ?= tested
BINARY = $(CURDIR)/target/$(TESTED)/samovar

tested: setup ## the server as `make test` runs it, in half of the time of `make build`
	if [ $(TESTED) = release ]; then $(PGO) build; \
	    else $(CARGO) build --profile $(TESTED) --locked -p samovar -p samovar-php; fi

# Who tests a server builds it, and tests that one and no other.
WITH_SERVER = whole php two-versions threads chaos chaos-transports chaos-rates visitors interrupted upgrades engine ledger \
	collector pebble caddy
$(WITH_SERVER): tested
$(WITH_SERVER): export SAMOVAR_BIN = $(BINARY)
php: export SAMOVAR_BINARY = $(BINARY)

setup: ## install the Debian packages that the build needs
	@scripts/setup.sh build

setup-test: ## those that the tests and linters need, too
	@scripts/setup.sh test
	@scripts/php-src.sh

setup-bench: ## those that the benchmarks need
	@scripts/setup.sh bench

lint: ## formatting and linters of Rust, C, shell, Python and PHP; the tree against its documents
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	find crates/worker/csrc -name '*.[ch]' -exec clang-format --dry-run --Werror {} +
	shellcheck scripts/*.sh scripts/php-engine/cc bench/peers/build.sh .ci/run
	flake8 bench
	find php examples bench -name vendor -prune -o -name var -prune -o -name '*.php' -print0 | \
	    xargs -0 -n 1 -P 2 php -d display_errors=stderr -l >/dev/null
	cd php && phpcs -q
	phpcs -q -n --standard=PSR12 --ignore='*.blade.php,*/vendor/*,*/var/*' examples bench php/wordpress
	$(TIDY)

unit: ## tests inside the crates, and those of the benchmarks' own code
	$(TESTS) --exclude samovar-tests
	/usr/bin/python3 -m unittest discover --quiet -s bench/suite/tests -t bench

model: ## the shared-memory protocol under the model checker
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom $(CARGO) test --profile tested --locked -p samovar-ring -p samovar-shared --lib interleavings

# All steps name the whole workspace: of other selections, cargo would build the libraries again, with other features.
TESTS = $(CARGO) test --locked --workspace

# Whether the tree is as its documents say; needs no server.
TIDY = $(TESTS) --quiet --test tidy --

# The programs of tests/.
WHOLE = $(patsubst tests/suite/%.rs,--test %,$(wildcard tests/suite/*.rs)) --test conformance

# Runs a command, and fails if a server's process that it started is left afterwards. Asked for with a test, it is built of
# the libraries that tests have.
LEAVES_NOTHING = $(CARGO) build --quiet --locked --workspace --bin leaves-nothing --test tidy && \
	target/debug/leaves-nothing
CHAOS = $(LEAVES_NOTHING) $(TESTS) --test chaos --

# These tests wait more than they compute (three fifths of two cores): half as many again as there are cores run at once.
whole: export RUST_TEST_THREADS ?= $(shell expr $$(nproc) \* 3 / 2)
whole: ## whole-server tests, beside nginx + php-fpm; none of their processes may be left
	$(LEAVES_NOTHING) $(TESTS) $(WHOLE)

php: ## tests of the Composer package samovar/runtime
	cd php && phpunit --colors=never --fail-on-skipped

php84: ## tests of whole servers and of php/ with PHP 8.4, in a Debian 13 below /var/cache/samovar (root, 3 GB)
	scripts/second-root.sh trixie 8.4 make setup-test spies whole php

php84-next: ## the same in Debian's testing, with what comes next: Symfony 7.4, Laravel 13, nginx 1.30
	scripts/second-root.sh forky 8.4 make setup-test spies whole php

two-versions: ## two PHP versions in pools of one server: this machine's, and Debian 13's in a folder (root, 3 GB)
	scripts/two-versions.sh trixie 8.4

threads: export FRONT_THREADS = 3
threads: ## whole servers whose front has three threads, whatever is tested of them
	$(LEAVES_NOTHING) $(TESTS) $(addprefix --test ,acme admin compression consoles control edge fastcgi faults fronts http \
		locations passing pools reload service smuggling telling upgrade)

chaos: ## all that can go wrong, mixed, for minutes (CHAOS_SECONDS, CHAOS_SEED, CHAOS_ONLY, CHAOS_MODEL)
	$(CHAOS) --ignored --test-threads 1 --nocapture all_kinds_mixed

chaos-transports: ## the same over FastCGI (nginx in front) and over HTTP/2 and TLS (HAProxy in front)
	export CHAOS_TRANSPORT=fastcgi; $(CHAOS) --ignored --test-threads 1 --nocapture all_kinds_mixed
	export CHAOS_TRANSPORT=h2; $(CHAOS) --ignored --test-threads 1 --nocapture all_kinds_mixed

chaos-rates: ## good requests' p50 and p99, calm and beside ten crashes a second
	$(CHAOS) --ignored --test-threads 1 --nocapture ten_crashes_a_second

visitors: ## 100,000 visitors of connections that were opened above a checkpoint (OUTSIDE_REQUESTS, OUTSIDE_SEED)
	export OUTSIDE_REQUESTS=$${OUTSIDE_REQUESTS:-100000}; $(LEAVES_NOTHING) $(TESTS) --test isolation -- \
		--nocapture no_visitor_meets_another

interrupted: ## 100,000 requests that end at odd places while tasks wait in the middle of something (TASKS_REQUESTS, TASKS_SEED)
	export TASKS_REQUESTS=$${TASKS_REQUESTS:-100000}; $(LEAVES_NOTHING) $(TESTS) --test parallel -- \
		--nocapture nothing_stays_of_tasks_however_they_end

upgrades: ## a hundred upgrades under load in each execution model
	$(LEAVES_NOTHING) $(TESTS) --test upgrade -- --ignored --nocapture

engine: ## php-src's tests of the engine and the language, all of them, in a PHP that was relinked and as it was built
	export RELINK_EVERY=1; $(LEAVES_NOTHING) $(TESTS) --test relink -- \
		--nocapture what_passes_as_built_passes_relinked

ledger: ## the CPU time of 10,000 requests in each execution model is somebody's
	$(LEAVES_NOTHING) $(TESTS) --test ledger -- --ignored --nocapture

reads: ## 100,000 reads of stacks that move, and of processes that are forked and killed all the time (SPY_READS)
	SPY_READS=$${SPY_READS:-100000} $(TESTS) --test stacks -- --nocapture moving storms

# Another PHP than Debian's: PHP_CONFIG=/opt/php/bin/php-config, with PHP beside it. Built for threads, it is looked at with several
# of them, where it has its library for embedding.
spies: ## stacks of another PHP, read from outside: make spies PHP_CONFIG=/opt/php/bin/php-config (SPY_READS)
	$(CARGO) test --locked -p samovar-spy --test layout --test stacks -- --nocapture

nightly: export TESTED = release
collector: export COLLECTOR_BIN = $(CURDIR)/target/collector/collector
collector: ## spans and figures at OpenTelemetry's own collector, built of its Go modules (Go 1.22; some minutes)
	scripts/collector.sh $(COLLECTOR_BIN)
	$(LEAVES_NOTHING) $(TESTS) --test telling -- --ignored a_real_collector

pebble: export PEBBLE_BIN = $(CURDIR)/target/pebble/pebble
pebble: ## certificates by Pebble, Let's Encrypt's authority for tests, built of its Go module
	scripts/pebble.sh $(CURDIR)/target/pebble
	$(LEAVES_NOTHING) $(TESTS) --test acme -- --ignored pebble nonces

caddy: export CADDY_BIN = $(CURDIR)/target/caddy/caddy
caddy: ## Caddy in front, by FastCGI and by HTTP, built of its Go module (Go 1.26; some minutes)
	scripts/caddy.sh $(CURDIR)/target/caddy
	$(LEAVES_NOTHING) $(TESTS) --test fastcgi --test edge -- --ignored caddy

nightly: export FASTCGI = all
nightly: export CROWD_REQUESTS = 500
nightly: export HTTP2 = all
# Those that fetch Go modules come last.
NIGHTLY = setup-test whole threads php chaos chaos-rates chaos-transports visitors interrupted upgrades engine ledger reads spies \
	hostile pebble caddy
nightly: $(NIGHTLY) ## what is too slow for every run

deny: ## licences and sources of the dependencies: our own look, and cargo-deny's where it is installed
	$(TIDY) dependencies::
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
