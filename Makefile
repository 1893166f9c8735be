# The commands of this tree. Each installs what it needs first (tools/packages.sh, requirements.txt), without asking,
# then builds with CMake's presets, then does its job. Set-up leaves marks in .setup/ and .venv/: a second run skips it.

PYTHON ?= python3
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)
# Further arguments for pytest, for example: make test PYTEST_ARGS='-k lab -x'
PYTEST_ARGS ?=
# Files of tests run so many at a time, for many of them wait (for the guest, for a timeout); PYTEST_JOBS=0: one after
# the other.
PYTEST_JOBS ?= 3

export PYTHON
python := .venv/bin/python
commands := .venv/bin/homing
pytest_jobs := -n $(PYTEST_JOBS) --no-loadscope-reorder
# Threads that spin while they wait would starve the guest and each other on a small machine.
export OMP_WAIT_POLICY ?= passive

# Bytecode is kept, whatever the user's shell says: .venv is compiled when it is imported, by the first of many hundred
# processes. Pytest alone has to collect in each of its own, 17 s without and 4 s with (of a processor).
unexport PYTHONDONTWRITEBYTECODE

# Two makes in one tree build one after the other: Ninja has no lock of its own.
alone := $(if $(shell command -v flock),flock .setup/build.lock)

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory
.DELETE_ON_ERROR:
# Set-up, configuration, build and job follow each other; within the build, Ninja uses all processors.
.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help demo test test-all check format bench install docs clean distclean setup build tested \
        check-format check-tidy check-python check-page check-docs check-shell check-sanitizers

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .setup/demo $(commands) build/release/build.ninja ## a program's pages sent home on four NUMA nodes, counted: the table of the README
	@$(alone) cmake --build --preset release -j $(JOBS) --target homing homing-costs lab/all cg_gfortran
	@$(python) -m homing.demo

test: .setup/test tested ## the tests (one boot of the guest among them)
	@$(python) -m pytest $(pytest_jobs) -m "not full" $(PYTEST_ARGS)

test-all: .setup/test-all build ## the tests and the long matrices
	@TEST_ALL=1 RC_PARAMS="max_success=300" $(python) -m pytest $(pytest_jobs) $(PYTEST_ARGS)

check: .setup/check check-format check-python check-page check-docs check-shell check-tidy check-sanitizers ## formatting, static analysis, sanitizers
	@echo "check: all clean"

format: .setup/check .venv/complete ## lay out the sources the way `make check` wants them
	@clang-format-19 -i $(c_sources)
	@$(python) -m ruff check --quiet --fix $(python_sources)

bench: .setup/bench build ## every benchmark, into benchmarks/results/ (one of them: .venv/bin/homing bench NAME)
	@$(python) -m homing bench $(or $(BENCH),--all)

install: .setup/build $(commands) build/release/build.ninja ## the command, library, headers, Fortran module, CMake and pkg-config files into PREFIX (DESTDIR is honoured)
	@$(alone) cmake --build --preset release -j $(JOBS) --target homing_installed
	@umask 022; prefix=$$(realpath -ms -- "$(PREFIX)"); DESTDIR="$(DESTDIR)" cmake --install build/release --strip --prefix "$$prefix" >build/install.log || \
	    { tail -n 5 build/install.log; exit 1; }; echo "installed: $(DESTDIR)$$prefix/bin/homing, and what belongs to it in $(DESTDIR)$$prefix"

docs: check-docs ## the documentation as a site, in build/site
	@echo "docs: build/site/index.html"

clean: ## remove what was built
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

distclean: clean ## remove the set-up as well (.venv, .setup)
	rm -rf .venv .venv-docs .setup web/node_modules web/node_modules.lock

# Where nothing can be kept in the user's cache folder (a read-only home), this tree keeps it: the guest's kernel, costs.
cache := $(or $(HOMING_CACHE),$(or $(filter /%,$(XDG_CACHE_HOME)),$(HOME)/.cache)/homing)
cache_writable := $(shell at="$(cache)"; until [ -e "$$at" ]; do at=$$(dirname "$$at"); done; \
    if [ -w "$$at" ]; then echo yes; else echo "homing: $$at cannot be written to: .setup/cache is used instead" >&2; fi)
ifeq ($(cache_writable),)
export XDG_CACHE_HOME := $(CURDIR)/.setup/cache
unexport HOMING_CACHE
endif

# --- set-up -----------------------------------------------------------------------------------------------------------

setup: .setup/build ## only install what building needs

groups_build    := build
groups_demo     := build lab
groups_test     := build lab test
groups_test-all := build lab test all
groups_bench    := build lab test bench
groups_check    := build check docs
groups_docs     := docs

.setup/build .setup/demo .setup/test .setup/test-all .setup/bench .setup/check .setup/docs: .setup/%: tools/packages.tsv tools/packages.sh
	@tools/packages.sh $(groups_$*)
	@rm -f build/*/build.ninja # CMake looks again for what it did not find before
	@touch $@

.venv/complete: requirements.txt tools/venv.sh | .setup/build
	@tools/venv.sh

# The command `homing` of this tree, and its companions.
$(commands): .venv/complete pyproject.toml tools/commands.py
	@$(python) tools/commands.py

# --- build ------------------------------------------------------------------------------------------------------------

build: $(commands) build/release/build.ninja ## the library, the programs and the tests
	@$(alone) cmake --build --preset release -j $(JOBS)
	@$(python) -m compileall -q homing && $(python) -m homing.bundle # a summary compiles nothing

tested: $(commands) build/release/build.ninja
	@$(alone) cmake --build --preset release -j $(JOBS) --target homing_tested
	@$(python) -m compileall -q homing && $(python) -m homing.bundle

# Ninja runs CMake again by itself when a CMakeLists.txt changed; a changed preset needs this.
build/%/build.ninja: CMakePresets.json .venv/complete
	@mkdir -p $(@D)
	@$(alone) cmake --preset $* -DPython3_EXECUTABLE="$(CURDIR)/$(python)" >$(@D)/configure.log 2>&1 || { cat $(@D)/configure.log; exit 1; }
	@touch $@

# --- checks -----------------------------------------------------------------------------------------------------------

c_sources = $(shell git ls-files --cached --others --exclude-standard '*.c' '*.h' '*.cpp' '*.hpp')
shell_sources = $(shell git ls-files --cached --others --exclude-standard '*.sh') .ci/run
python_sources = homing tests cmake tools benchmarks packaging

check-format: .setup/check
	@clang-format-19 --dry-run -Werror $(c_sources)

check-python: .setup/check .venv/complete
	@$(python) -m ruff check $(python_sources)
	@$(python) -m mypy

check-page: .venv/complete
	@$(python) tools/page.py --check

.venv-docs/complete: tools/docs-requirements.txt
	@echo "homing set-up: Python packages for the documentation into .venv-docs" >&2
	@$(PYTHON) -m venv --clear .venv-docs
	@.venv-docs/bin/python -m pip install --quiet --no-input --disable-pip-version-check --no-deps --only-binary :all: -r $<
	@touch $@

# A link that leads nowhere ends the build.
check-docs: .setup/docs .venv/complete .venv-docs/complete
	@$(python) tools/site_pages.py build/docs
	@doxygen tools/Doxyfile
	@.venv-docs/bin/ford --quiet tools/ford.md
	@.venv-docs/bin/mkdocs build --quiet

check-shell: .setup/check .venv-docs/complete
	@shellcheck $(shell_sources)
	@.venv-docs/bin/hadolint --ignore DL3008 packaging/Containerfile # its Debian packages are those of its image

check-tidy: .setup/check build/tidy/build.ninja
	@cmake --build --preset tidy -j $(JOBS)

check-sanitizers: .setup/check build/asan/build.ninja build/ubsan/build.ninja build/tsan/build.ninja
	@for kind in asan ubsan tsan; do \
	    cmake --build --preset $$kind -j $(JOBS); \
	    echo "unit tests under $$kind"; \
	    build/$$kind/homing_unit_tests --gtest_brief=1; \
	done
