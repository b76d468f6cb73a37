# `make run` serves an example on http://127.0.0.1:8080; `make test` runs all tests.
# Both install what is missing (Debian 12, or 13 with PHP_CONFIG=php-config8.4) and build first.

CARGO ?= cargo
PHP_CONFIG ?= php-config8.2
export PHP_CONFIG

.PHONY: help run test build bench setup setup-test setup-bench lint unit model whole php php84 php84-next deny fuzz clean

help:
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: build ## serve examples/hello on http://127.0.0.1:8080
	target/release/samovar serve examples/hello/public --access-log -

test: setup-test lint unit model whole php ## all tests
	@echo "all tests passed"

bench: build setup-bench ## servers side by side: CPU per request, latency, memory (BENCH_ARGS=--quick to try)
	$(CARGO) build --release --locked -p samovar-load
	$(CARGO) build --release --locked -p samovar-front --example bare_hello
	bench/run.py $(BENCH_ARGS)

build: setup ## target/release/samovar and samovar-php
	$(CARGO) build --release --locked -p samovar -p samovar-php

setup:
	@scripts/setup.sh build

setup-test:
	@scripts/setup.sh test
	@scripts/php-src.sh

setup-bench:
	@scripts/setup.sh bench

lint: ## formatting, clippy, clang-format
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	clang-format --dry-run --Werror crates/worker/csrc/*.c crates/worker/csrc/*.h

unit: ## tests inside the crates, and those of the benchmarks' own code
	$(CARGO) test --workspace --locked --exclude samovar-tests
	/usr/bin/python3 -m unittest discover --quiet -s bench/suite/tests -t bench

model: ## the shared-memory protocol under the model checker
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom $(CARGO) test --release --locked -p samovar-ring --lib model

whole: build ## whole-server tests, beside nginx + php-fpm
	$(CARGO) test --locked -p samovar-tests

php: build ## tests of the Composer package samovar/runtime
	cd php && phpunit --colors=never --fail-on-skipped

php84: ## tests of whole servers and of php/ with PHP 8.4, in a Debian 13 below /var/cache/samovar (needs root)
	scripts/second-root.sh trixie 8.4 make setup-test whole php

php84-next: ## the same in Debian's testing, with what comes next: Symfony 7.4, Laravel 13, nginx 1.30
	scripts/second-root.sh forky 8.4 make setup-test whole php

deny: ## licences and sources of the dependencies (needs cargo-deny)
	$(CARGO) deny --locked check licenses bans sources

fuzz: ## a minute of fuzzing the front against hostile memory (needs cargo-fuzz and nightly)
	cd crates/ring && $(CARGO) +nightly fuzz run scribble -- -max_total_time=60

clean:
	$(CARGO) clean
