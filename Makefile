# `make run` serves an example on http://127.0.0.1:8080; `make test` runs all tests.
# Both install missing packages (Debian 12, or 13 with PHP_CONFIG=php-config8.4) and build first.

CARGO ?= cargo
PHP_CONFIG ?= php-config8.2
export PHP_CONFIG

.PHONY: help run test prepared unflake build bench setup setup-test setup-bench lint lint-text reference unit bench-unit release-unit model whole php php-tests \
	php84 php84-next php85 two-versions threads chaos chaos-rates chaos-transports visitors connections interrupted upgrades queue-kills built engine accounting \
	reads spies pictures collector pebble caddy packages packages-test packages-test-13 rpm rpm-test images images-test chart-test docs release release-prepare release-test nightly deny fuzz hostile clean php-engine pgo peers

help:
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: setup ## serve examples/hello on http://127.0.0.1:8080, with a quick, unoptimized build
	$(CARGO) build --profile quick --locked -p samovar -p samovar-php
	@echo "run: this server is built without optimization and needs several times the CPU time per request"
	@echo "hint: \`make build\` makes the one to measure and to use, in about ten minutes"
	target/quick/samovar serve examples/hello/public --access-log - --relink false

# Containers usually run as root.
run: export SAMOVAR_ALLOW_ROOT = true

test: prepared ## all tests: Rust, C, PHP, whole servers, formatting, linters (TEST="words" selects some)
	@scripts/step.sh tests $(RUN_TESTS) $(TEST)
	@scripts/step.sh --summary

unflake: setup-test built ## one test 200 times next to busy loops, then next to other tests (TEST=name, RUNS)
	$(RUN_TESTS) --unflake $(TEST) --runs $(or $(RUNS),200)

bench: build setup-bench ## servers side by side: CPU per request, latency, memory (BENCH_ARGS=--quick to try)
	$(CARGO) build --release --locked -p samovar-load
	$(CARGO) build --release --locked -p samovar-front --example bare_hello
	bench/run.py $(BENCH_ARGS)

peers: ## build other servers from source for `make bench` (PEERS="swoole=FOLDER workerman=FOLDER roadrunner=FOLDER frankenphp=FOLDER")
	@scripts/setup.sh peers
	bench/peers/build.sh $(PEERS)

PGO = CARGO="$(CARGO)" scripts/pgo.sh

build: setup ## build target/release/samovar and samovar-php, optimized with the profile in scripts/pgo
	$(PGO) build

packages: build ## Debian packages of the server and of its worker, in target/packages (PHP_CONFIG, PACKAGE_MAINTAINER)
	scripts/packages.sh release target/packages

images: ## container image from these packages, in target/images (needs root; PHP_CONFIG, IMAGE_EXTENSIONS)
	deploy/images/build.sh target/packages target/images

images-test: packages images ## the image without a container engine: size, start, user, read-only root, health check (needs root)
	tests/images/run.py target/images/samovar-$$($(PHP_CONFIG) --version | cut -d . -f 1,2).tar

chart-test: ## the Helm chart: helm lint, kubeconform, rendered resources (builds both with Go; some minutes the first time)
	scripts/chart-test.sh target/chart

release: ## files of a release with checksums, in target/releases/VERSION (VERSION; PACKAGES=no leaves out the Debian packages)
	scripts/release.py build $(if $(filter no,$(PACKAGES)),--without-packages) -- "$(VERSION)"

release-prepare: ## a new version in all files, and its section in CHANGELOG.md (VERSION)
	scripts/release.py prepare -- "$(VERSION)"

release-test: setup ## the source archive of this commit: two are identical, and it builds without network (some minutes)
	scripts/release-test.sh target/release-test

docs: ## the documentation as a site with search, in target/docs/site (needs mdbook; DOCS_REPOSITORY)
	scripts/docs.py build

rpm: build ## RPM of the server for Enterprise Linux 9 and 10, in target/rpm; of the worker, too, if run there (needs nfpm or Go)
	scripts/rpm.sh release target/rpm

rpm-test: setup-test built ## the RPM of the server, installed in an empty folder (needs root, and nfpm or Go)
	tests/packages/rpm.sh $(SERVER)

packages-test: setup-test built ## the packages in a new Debian 12: install, upgrade under load, downgrade, purge (needs root and 2 GB)
	apt-get install -y -qq --no-install-recommends lintian >/dev/null
	scripts/packages-test.sh bookworm 8.2 $(SERVER)

packages-test-13: ## the same with PHP 8.4 in a Debian 13; builds the binaries there (needs root and 4 GB)
	scripts/packages-test.sh trixie 8.4

pgo: setup-test setup-bench ## record that profile again, after changes of the hot path or for another compiler (20 minutes; PGO_SECONDS)
	$(PGO) train

php-engine: setup ## build a libphp of the installed PHP that takes less CPU, in target/engine (ENGINE=FOLDER; 3 to 20 minutes)
	scripts/php-engine.sh $(ENGINE)

# The server under test: `tested` is built with the tests; `release` is the build for users.
SERVER ?= tested
BINARY = $(CURDIR)/target/$(SERVER)/samovar

# Cargo's messages, which contain the paths of the test programs.
MESSAGES = target/tests/built.json
# A shell starts background jobs with SIGINT ignored, and nohup ignores SIGHUP: tests send both.
RUN_TESTS = env --default-signal=HUP,INT SAMOVAR_BIN=$(BINARY) SAMOVAR_BINARY=$(BINARY) target/tested/run-tests --built $(MESSAGES) $(TIER)
# Runs one test and shows its output while it runs.
SHOW = $(RUN_TESTS) --show

# Installs the packages of the tests while the tests are compiled. Compiling needs only those of
# the build.
prepared: setup
	@rm -f target/tests/steps.tsv
	@scripts/step.sh setup-test $(MAKE) --silent setup-test & setup=$$!; \
	    $(MAKE) --silent -o setup built; built=$$?; wait $$setup && exit $$built

# One build for the tests, the server that they start, and clippy, which checks our crates while
# they are compiled.
built: setup ## build all test programs and the server
	@mkdir -p target/tests
	@scripts/step.sh build env RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings \
	    $(CARGO) test --no-run --locked --workspace --all-targets --profile tested \
	    --message-format=json-render-diagnostics >$(MESSAGES)

setup: ## install the Debian packages that the build needs
	@scripts/setup.sh build

setup-test: ## install the packages for the tests and linters, too
	@scripts/setup.sh test
	@scripts/php-src.sh

setup-bench: ## install the packages for the benchmarks
	@scripts/setup.sh bench

lint: built lint-text ## formatting and linters of Rust, C, shell, Python and PHP; checks of the tree against its documents
	$(RUN_TESTS) tidy::

reference: built ## write the generated pages and headers: docs/reference, the source map, ring.h
	UPDATE=1 $(RUN_TESTS) tidy::reference suite::cli::cli_page config::docs ring::c_header

lint-text:
	target/tested/lint-language
	$(CARGO) fmt --all --check
	find crates/worker/csrc -name '*.[ch]' -exec clang-format --dry-run --Werror {} +
	scripts/docs.py check
	shellcheck scripts/*.sh deploy/images/*.sh tests/packages/*.sh scripts/php-engine/cc bench/peers/build.sh .ci/run
	flake8 bench scripts tests/packages tests/chart tests/images deploy/images
	find php examples bench -name vendor -prune -o -name var -prune -o -name '*.php' -print0 | \
	    xargs -0 -n 1 -P 2 php -n -d display_errors=stderr -l >/dev/null
	cd php && phpcs -q
	phpcs -q -n --standard=PSR12 --ignore='*.blade.php,*/vendor/*,*/var/*' examples bench php/wordpress

unit: built bench-unit release-unit ## tests inside the crates, and tests of the benchmarks' and the release's own code
	$(RUN_TESTS) --skip suite:: --skip conformance --skip make/

bench-unit:
	/usr/bin/python3 -m unittest discover --quiet -s bench/suite/tests -t bench

release-unit:
	/usr/bin/python3 -m unittest discover --quiet -s scripts/releasing/tests -t scripts

model: setup-test built ## the shared-memory protocol under the model checker
	$(RUN_TESTS) ring-model:: shared-model::

whole: setup-test built ## whole-server tests, many of them next to nginx + php-fpm
	$(RUN_TESTS) suite:: conformance

php: setup-test built ## tests of the Composer package samovar/runtime
	$(RUN_TESTS) make/php

php-tests:
	cd php && phpunit --colors=never --fail-on-skipped

php84: ## tests of whole servers and of php/ with PHP 8.4, in a Debian 13 below /var/cache/samovar (needs root and 3 GB)
	scripts/second-root.sh trixie 8.4 make setup-test spies whole php

php85: built ## tests of isolation and of the conformance with php-fpm, with PHP 8.5 of Debian's experimental (needs root and 3 GB)
	scripts/other-php.sh experimental 8.5

php84-next: ## the same in Debian's testing, with coming versions: Symfony 7.4, Laravel 13, nginx 1.30
	scripts/second-root.sh forky 8.4 make setup-test spies whole php

two-versions: ## two PHP versions in pools of one server: this machine's, and Debian 13's in a folder (needs root and 3 GB)
	scripts/two-versions.sh trixie 8.4

threads: export FRONT_THREADS = 3
threads: built ## whole-server tests with three threads in the front
	$(RUN_TESTS) $(patsubst %,suite::%::,acme admin compression consoles control edge exporters fastcgi fastcgi_upstream faults \
		fronts http locations pools reload service smuggling upgrade)

chaos: built ## all kinds of failures, mixed, for minutes (CHAOS_SECONDS, CHAOS_SEED, CHAOS_ONLY, CHAOS_MODEL)
	$(SHOW) suite::chaos::all_kinds_mixed

chaos-transports: built ## the same over FastCGI (nginx in front) and over HTTP/2 and TLS (HAProxy in front)
	CHAOS_TRANSPORT=fastcgi $(SHOW) suite::chaos::all_kinds_mixed
	CHAOS_TRANSPORT=h2 $(SHOW) suite::chaos::all_kinds_mixed

chaos-rates: built ## p50 and p99 of good requests, without crashes and with ten crashes per second
	$(SHOW) good_request_latency_during_crashes

visitors: export OUTSIDE_REQUESTS ?= 100000
visitors: built ## 100,000 visitors on connections that were opened before the checkpoint (OUTSIDE_REQUESTS, OUTSIDE_SEED)
	$(SHOW) visitors_in_random_order_are_isolated

connections: export CONNECTION_SECONDS ?= 900
connections: built ## random visits on kept connections, and on new ones, for an hour (CONNECTION_SECONDS for each database, CONNECTION_SEED)
	$(SHOW) --only-ignored suite::isolation::connections::
	$(SHOW) suite::isolation::connection_fuzzer::

interrupted: export TASKS_REQUESTS ?= 100000
interrupted: built ## 100,000 requests that end at arbitrary points while their tasks wait (TASKS_REQUESTS, TASKS_SEED)
	$(SHOW) tasks_ended_at_random_points_leave_no_state

upgrades: built ## a hundred upgrades under load in each execution model
	$(SHOW) --only-ignored suite::upgrade::

engine: export RELINK_EVERY = 1
engine: built ## all of php-src's tests of the engine and the language, in a relinked PHP and in the original one
	$(SHOW) php_src_tests_passing_as_built_pass_relinked

queue-kills: export KILLED_JOBS ?= 1000000
queue-kills: built ## a million jobs while workers, templates, servers and Redis are killed (KILLED_JOBS, KILLS_SEED)
	$(SHOW) --only-ignored suite::queues::kills::

accounting: built ## request accounting: the CPU time of 10,000 requests in each execution model is accounted for
	$(SHOW) --only-ignored suite::request_accounting::

reads: export SPY_READS ?= 100000
reads: built ## 100,000 reads of changing stacks, and of processes that are constantly forked and killed (SPY_READS)
	$(SHOW) spy/stacks::moving spy/stacks::storms

# For a PHP other than Debian's: PHP_CONFIG=/opt/php/bin/php-config, with `php` in the same folder.
# A PHP built for threads is tested with several threads if it has its library for embedding.
spies: ## read stacks of another PHP from outside: make spies PHP_CONFIG=/opt/php/bin/php-config (SPY_READS)
	$(CARGO) test --locked -p samovar-spy --test layout --test stacks -- --nocapture

pictures: export PICTURES ?= docs/images
pictures: built ## the dashboard's pictures in the guide, from invented figures, in headless Chromium
	$(SHOW) --only-ignored pictures_of_the_guide

collector: export COLLECTOR_BIN = $(CURDIR)/target/collector/collector
collector: built ## export of spans and metrics to OpenTelemetry's own collector, built from its Go modules (Go 1.22; some minutes)
	scripts/collector.sh $(COLLECTOR_BIN)
	$(SHOW) opentelemetry_collector

pebble: export PEBBLE_BIN = $(CURDIR)/target/pebble/pebble
pebble: built ## certificates from Pebble, Let's Encrypt's authority for tests, built from its Go module
	scripts/pebble.sh $(CURDIR)/target/pebble
	$(SHOW) --only-ignored suite::acme::pebble

caddy: export CADDY_BIN = $(CURDIR)/target/caddy/caddy
caddy: built ## Caddy in front, over FastCGI and over HTTP, built from its Go module (Go 1.26; some minutes)
	scripts/caddy.sh $(CURDIR)/target/caddy
	$(SHOW) --only-ignored caddy

# The nightly tier runs the following in addition to `make test`. In parentheses: why `make test`
# leaves it out.
#   - the release build (LTO and the profile take eight minutes)
#   - servers of one script that relink PHP, too (twice the CPU time of each start)
#   - every conformance case over FastCGI and HTTP/2 (four times the requests)
#   - crowds of 500 instead of 200 requests, visits of applications by 1,000 instead of 500
#   - three threads of the front (all of its tests again)
#   - minutes of chaos
#   - an hour of random visits on kept connections
#   - 100,000 visitors, interrupted requests and reads; a hundred upgrades
#   - a million jobs while processes are killed, in the embedded store and in Redis
#   - all 5,000 tests of php-src's engine
#   - the Debian packages in a new Debian (installed from the mirror)
#   - the container image (a new Debian is installed from the mirror)
#   - the source archive (packed twice and built without the results of other builds)
#   - Go programs (they are built first)
nightly: export SERVER = release
nightly: export TIER = --nightly
nightly: export RELINK = all
nightly: export FASTCGI = all
nightly: export HTTP2 = all
nightly: export CROWD_REQUESTS = 500
nightly: export PRISTINE_REQUESTS = 1000
# The targets that fetch Go modules come last.
NIGHTLY = setup-test build whole threads php chaos chaos-rates chaos-transports visitors connections interrupted upgrades queue-kills engine accounting reads \
	spies packages-test images-test release-test hostile pebble caddy chart-test rpm-test
nightly: $(NIGHTLY) ## the tests that are too slow for every run

deny: built ## licences and sources of the dependencies: our own check, and cargo-deny's if it is installed
	$(RUN_TESTS) tidy::dependencies::
	@if $(CARGO) deny --version >/dev/null 2>&1; then \
	    $(CARGO) deny --locked check licenses bans sources; \
	else \
	    echo "deny: cargo-deny is not installed, so only our own look at licences and sources was taken"; \
	    echo "hint: cargo install --locked cargo-deny"; \
	fi

fuzz: ## fuzz the front with hostile memory, PROXY headers and FastCGI, and the settings file; a minute each (needs cargo-fuzz and nightly)
	cd crates/ring && $(CARGO) +nightly fuzz run scribble -- -max_total_time=60
	cd crates/front && $(CARGO) +nightly fuzz run proxy_header -- -max_total_time=60
	cd crates/front && $(CARGO) +nightly fuzz run fastcgi -- -max_total_time=60
	cd crates/front && $(CARGO) +nightly fuzz run fastcgi_response -- -max_total_time=60
	cd crates/config && $(CARGO) +nightly fuzz run file -- -max_total_time=60

# Each run draws new random bytes, except for the settings file. A failure is reported with its
# bytes.
hostile: ## the checks of `make fuzz` for minutes, with unguided random bytes and the usual compiler (PROPTEST_CASES)
	export PROPTEST_CASES=$${PROPTEST_CASES:-100000}; $(CARGO) test --release --locked -p samovar-ring -p samovar-front -p samovar-config \
		--test hostile --test fastcgi_bytes --test proxy_bytes

clean: ## remove all build results
	$(CARGO) clean
