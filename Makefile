# SPDX-License-Identifier: Apache-2.0
# make demo    install what is missing, build, simulate heat with up to 64 ranks and check what that predicts for 1024;
#              measure the examples, model them, write filters and reports
# make test    install what is missing, build, run all tests
# make test-bare     all tests in an empty Debian root; SUITE=trixie for Debian 13
# make test-address, test-thread, test-undefined    all tests with a sanitizer in the runtime
# make lint    all static checks
# make dist    build the source distribution and the wheel in dist/, and check both in empty environments
# make docs    the documentation as a site in build/site; a warning is an error
# make reference   the pages of commands and metrics in docs/reference anew
# make screenshots   the pictures of the documentation anew
# make bench-NAME   run benchmarks/NAME.py
SHELL := /bin/bash
VENV ?= .venv
PY := $(VENV)/bin/python
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PATH := $(abspath $(VENV))/bin:$(PATH)

NATIVE := CMakeLists.txt $(shell find agent/runtime agent/machine/native agent/shim agent/interpreter agent/resources llvm_pass mpi_wrap/native/reduction -name '*.cpp' -o -name '*.c' -o -name '*.h' \
            -o -name '*.def' -o -name CMakeLists.txt) agent/interpreter/sitecustomize.py \
          $(shell find share/cmake share/modulefiles share/CMakeLists.txt -type f)

.PHONY: demo dist docs reference screenshots test test-bare test-address test-thread test-undefined lint build build-test format clean \
        packages packages-test FORCE

demo: build
	@$(PY) examples/demo.py

# All tests with a runtime that a sanitizer watches. Programs that get it through LD_PRELOAD cannot have the sanitizer
# first, and MPI libraries leak; what is not built with the thread sanitizer synchronizes unseen.
test-address test-thread test-undefined: build-test
	@echo "Building Quipu with a sanitizer ..."
	@cmake -S . -B build/$@ -G Ninja -DQUIPU_SANITIZE=$(@:test-%=%) \
	    -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 >/dev/null
	@cmake --build build/$@ -- --quiet && cmake --install build/$@ --prefix build/$@/home >/dev/null
	@ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0 TSAN_OPTIONS=ignore_noninstrumented_modules=1:die_after_fork=0 \
	    QUIPU_HOME=$(CURDIR)/build/$@/home PATH=$(CURDIR)/build/$@/home/bin:$(PATH) XDG_CACHE_HOME=$(CURDIR)/build/$@/cache $(PY) -m pytest

# Three workers on two cores: one for the tests that start ranks, one that begins with those that wait for Slurm
# (tests/conftest.py), one for all others.
test: build-test
	@$(PY) -m pytest --numprocesses 3

SUITE ?= bookworm
test-bare:
	@.ci/bare --suite $(SUITE) make test

lint: build-test
	@.ci/lint

dist: build
	@.ci/dist

docs: build-test
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet && echo "build/site/index.html"

reference: build-test
	@$(PY) .ci/site/pages.py

# docs/images: about five minutes
screenshots: build-test
	@$(PY) .ci/site/screenshots.py

# The package and what the examples use. Tests, checks and the documentation need more: build-test.
build: $(VENV)/.built

build-test: packages-test $(VENV)/.extras

bench-%: build-test
	@$(PY) benchmarks/$*.py $(ARGS)

# Debian packages; does nothing when all are there.
packages:
	@.ci/packages build

packages-test: packages
	@.ci/packages test

# Touched when packages were installed: another LLVM means another plugin.
build/.packages: | packages
	@mkdir -p build && touch $@

# Changed when Python files came, went or moved: an editable installation knows where each of them is.
# Two makes at once (tests beside lint) write a list each.
build/.modules: FORCE
	@mkdir -p build && find agent modeling report mpi_wrap package -name '*.py' | sort > $@.$$$$ && \
		if cmp -s $@.$$$$ $@; then rm $@.$$$$; else mv $@.$$$$ $@; fi

FORCE:

$(VENV)/bin/python: | packages
	@python3 .ci/make_environment.py $(VENV)

$(VENV)/.built: $(NATIVE) build/.packages build/.modules pyproject.toml $(VENV)/bin/python
	@echo "Building Quipu (pass, runtime, wrappers, Python package) ..."
	@$(PY) -m pip install --quiet --no-build-isolation --editable '.[examples,ir]'
	@$(VENV)/bin/quipu doctor --prepare
	@touch $@

# Packages that tests use when they are there: one that cannot be installed is reported, and the tests skip it by name.
$(VENV)/.extras: pyproject.toml .ci/install_extras.py | $(VENV)/.built
	@$(PY) .ci/install_extras.py
	@touch $@

format:
	@clang-format-19 -i $$(git ls-files '*.c' '*.cpp' '*.h')
	@$(VENV)/bin/ruff format agent modeling report mpi_wrap package tests benchmarks examples

clean:
	@rm -rf build $(VENV) demo-out
