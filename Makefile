# The newcomer's interface: each target installs and builds what it needs first, and is quick the second time.

PYTHON ?= python3
JOBS ?= $(shell nproc)
VENV := .venv
BENCH_VENV := .venv-bench
SITE_VENV := .venv-site
PY := $(VENV)/bin/python
RELEASE := build/release
STAMPS := build/stamps

DEBIAN_PACKAGES := libprotozero-dev rapidjson-dev libfmt-dev libcli11-dev libyaml-cpp-dev zlib1g-dev libgtest-dev ccache \
	ninja-build cmake g++ python3-venv python3-dev dpkg-dev file pkg-config
FUZZ_PACKAGES := clang-16 libclang-rt-16-dev llvm-16
CHECK_PACKAGES := clang-16 clang-format-16 clang-tidy-16
COVERAGE_PACKAGES := gcovr
ABI_PACKAGES := abigail-tools
REFERENCE_PACKAGES := doxygen
FUZZ ?= all
SECONDS ?= 600
VALUES ?= graphs programs
CASES ?= 500
SEED ?= 1
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
CXX_FILES = $(shell find src include tests python examples packaging -name '*.h' -o -name '*.cpp' -o -name '*.c')
PY_DIRS = $(wildcard python tests/python tests/fuzz/values tests/package bench examples tools packaging)
SOURCES := $(shell find src include python cmake CMakeLists.txt -type f -not -name '*.pyc' 2>/dev/null)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help deps venv core build install wheel demo test test-cpp test-python test-heavy test-package test-subproject test-abi abi-update deb test-wheel test-dev test-threads fuzz fuzz-values coverage \
	bench format check tidy docs site reference clean

help:  ## this list
	@sed -nE 's/^([a-z-]+):.*## *(.*)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "  make %-9s %s\n", $$1, $$2}'

deps:  ## the Debian packages, where they are missing
	@missing=$$(for p in $(DEBIAN_PACKAGES) $(MORE_PACKAGES); do \
	  dpkg-query -W -f='$${db:Status-Abbrev}' $$p 2>/dev/null | grep -q '^ii' || echo $$p; done); \
	if [ -n "$$missing" ]; then \
	  echo "installing" $$missing; \
	  $(SUDO) apt-get -qq update && \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $$missing; \
	fi

$(VENV)/.stamp: tools/requirements.txt | deps
	@echo "making $(VENV)"
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install -q --disable-pip-version-check -r $<
	@touch $@

venv: $(VENV)/.stamp  ## the virtual environment of the tests

$(RELEASE)/build.ninja: CMakeLists.txt CMakePresets.json $(VENV)/.stamp
	cmake --preset release -DTONNX_PYTHON=ON -DPython_EXECUTABLE=$(CURDIR)/$(PY)
	@touch $@

core: deps $(RELEASE)/build.ninja  ## the binary and the Python module, without the tests
	@cmake --build $(RELEASE) -j $(JOBS) --target tonnx_cli _core

build: deps $(RELEASE)/build.ninja  ## the binary, the libraries, the Python module and the tests
	@cmake --build $(RELEASE) -j $(JOBS)

# in the folder of the build, so that nothing is compiled twice
$(STAMPS)/wheel: $(SOURCES) pyproject.toml $(VENV)/.stamp | build
	@mkdir -p $(@D)
	@rm -rf build/wheel dist
	@$(PY) -m pip wheel -q --disable-pip-version-check --no-build-isolation --no-deps -w build/wheel \
	  -Cbuild-dir=$(RELEASE) -Ccmake.define.TONNX_TESTS=ON .
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(PY) -m auditwheel repair -w dist build/wheel/*.whl >/dev/null 2>build/wheel/repair.log \
	  || (cat build/wheel/repair.log; false)
	@touch $@

wheel: $(STAMPS)/wheel  ## dist/*.whl, which needs no compiler and no library where it is installed
	@ls dist/*.whl

$(STAMPS)/package: $(STAMPS)/wheel
	@echo "installing the Python package into $(VENV)"
	@$(PY) -m pip install -q --disable-pip-version-check --force-reinstall --no-index --no-deps dist/*.whl
	@touch $@

install: $(STAMPS)/package  ## the Python package into .venv

demo: core  ## converts a real model, shows the code, compares it with ONNX Runtime
	@PYTHONPATH=$(RELEASE)/python $(PY) examples/demo.py

test: build test-cpp test-python test-package test-wheel  ## every test but the heavy ones
	@echo "all tests pass"

test-cpp: build
	@$(if $(UPDATE),TONNX_UPDATE_TEXTS=1 $(RELEASE)/tonnx_tests --gtest_brief=1 --gtest_filter='*PassText.*')
	@ctest --preset release -j $(JOBS)

test-python: build install
	@$(PY) -m ruff check -q $(PY_DIRS)
	@TONNX_CLI=$(CURDIR)/$(RELEASE)/tonnx $(PY) -m pytest -q -n $(JOBS) $(PYTEST_ARGS)

test-heavy: build install  ## the tests with large files, and against libtorch, which make test leaves out
	@$(PYTHON) tests/package/trial.py $(RELEASE) build/libtorch_trial --libtorch $(CURDIR)/$(PY)
	@$(RELEASE)/tonnx_api_tests --gtest_brief=1 --gtest_filter='ApiSize.*'
	@TONNX_CLI=$(CURDIR)/$(RELEASE)/tonnx $(PY) -m pytest -q -n $(JOBS) -m heavy

test-package: build  ## the prefix, the .deb and tonnx inside another project, with CMake and pkg-config
	@$(PYTHON) tests/package/trial.py $(RELEASE) build/package_trial
	@$(PY) tests/package/cpp_trial.py build/package_trial/examples_cpp_static

test-subproject: deps  ## builds tonnx inside another project, and runs its examples there: as long as a whole build
	@$(PYTHON) tests/package/trial.py $(RELEASE) build/subproject_trial --build-subproject

test-abi: MORE_PACKAGES := $(ABI_PACKAGES)
test-abi: build  ## whether programs that were compiled before still run with libtonnx.so: abidiff with what abi/ says of it
	@cmake --build $(RELEASE) -j $(JOBS) --target tonnx_described
	@$(PYTHON) tools/check_abi.py symbols $(RELEASE)/libtonnx.so
	@$(PYTHON) tools/check_abi.py types $(RELEASE)/described/libtonnx.so include/tonnx

abi-update: MORE_PACKAGES := $(ABI_PACKAGES)
abi-update: build  ## abi/ after a change of the interface that is meant
	@cmake --build $(RELEASE) -j $(JOBS) --target tonnx_described
	@$(PYTHON) tools/check_abi.py symbols $(RELEASE)/libtonnx.so --update
	@$(PYTHON) tools/check_abi.py types $(RELEASE)/described/libtonnx.so include/tonnx --update

deb: build  ## build/deb/tonnx_*.deb: the program, the libraries, headers, and what CMake and pkg-config look for
	@rm -rf build/deb
	@cpack --config $(RELEASE)/CPackConfig.cmake -B build/cpack -D CPACK_OUTPUT_FILE_PREFIX=$(CURDIR)/build/deb >build/cpack.log 2>&1 \
	  || (cat build/cpack.log; false)
	@ls build/deb/*.deb

test-wheel: wheel  ## installs the wheel where nothing else is, and converts a model with it
	@rm -rf build/empty
	@$(PYTHON) -m venv build/empty
	@build/empty/bin/pip install -q --disable-pip-version-check --no-deps --no-index dist/*.whl
	@$(PY) tests/package/wheel_trial.py build/empty/bin/python

test-dev: deps $(VENV)/.stamp install  ## the C++ tests and the hostile files under the sanitizers
	@test -f build/dev/build.ninja || cmake --preset dev
	@cmake --build build/dev -j $(JOBS)
	@ctest --preset dev -j $(JOBS)
	@TONNX_CLI=$(CURDIR)/build/dev/tonnx TONNX_SANITIZED=1 $(PY) -m pytest -q -n $(JOBS) tests/python/hostile/test_hostile.py

# each test in a process of its own, so that what conversions share is made by threads; without random addresses, since a kernel
# may have put something in the sanitizer's own places
test-threads: deps  ## many conversions at once, and all of the interface, under the thread sanitizer
	@test -f build/threads/build.ninja || cmake --preset threads
	@cmake --build build/threads -j $(JOBS) --target tonnx_api_tests
	@TSAN_OPTIONS=halt_on_error=1 setarch -R ctest --preset threads -j $(JOBS) -R '^Api'

fuzz: MORE_PACKAGES := $(FUZZ_PACKAGES)
fuzz: deps  ## coverage-guided fuzzing under the sanitizers: make fuzz FUZZ=onnx SECONDS=600; without FUZZ all of them; RUNS=1000: as many, the same each time
	@test -f build/fuzz/build.ninja || cmake --preset fuzz
	@cmake --build build/fuzz -j $(JOBS) --target tonnx_fuzz
	@$(PYTHON) tools/fuzz.py build/fuzz/tonnx_fuzz --target $(FUZZ) --seconds $(SECONDS) $(if $(RUNS),--runs $(RUNS)) --jobs $(JOBS)

fuzz-values: core  ## random graphs and programs against ONNX Runtime and PyTorch: make fuzz-values CASES=2000 SEED=7; ROUTES=pt2,simplify; CASE=7000012 runs one again
	@for generator in $(VALUES); do \
	  PYTHONPATH=$(RELEASE)/python $(PY) tests/fuzz/values/run.py $$generator --cases $(CASES) --seed $(SEED) --jobs $(JOBS) \
	    $(if $(ROUTES),--routes $(ROUTES)) $(if $(CASE),--case $(CASE)) || exit 1; \
	done

$(BENCH_VENV)/.stamp: tools/requirements.txt bench/requirements.txt | deps
	@echo "making $(BENCH_VENV)"
	@test -x $(BENCH_VENV)/bin/python || $(PYTHON) -m venv $(BENCH_VENV)
	@$(BENCH_VENV)/bin/python -m pip install -q --disable-pip-version-check -r tools/requirements.txt
	@$(BENCH_VENV)/bin/python -m pip install -q --disable-pip-version-check --no-deps -r bench/requirements.txt
	@touch $@

bench: build $(BENCH_VENV)/.stamp  ## speed, memory and accuracy side by side with the other converters
	@PYTHONPATH=$(RELEASE)/python $(BENCH_VENV)/bin/python bench/bench.py --cli $(RELEASE)/tonnx $(BENCH_ARGS)

format: MORE_PACKAGES := $(CHECK_PACKAGES)
format: deps $(VENV)/.stamp  ## formats the C++ and the Python
	@clang-format-16 -i $(CXX_FILES)
	@$(PY) -m ruff format -q $(PY_DIRS)
	@$(PY) -m ruff check -q --fix $(PY_DIRS)

check: MORE_PACKAGES := $(CHECK_PACKAGES)
check: deps $(VENV)/.stamp tidy  ## what make format would change, and what ruff, mypy and clang-tidy find
	@clang-format-16 --dry-run -Werror $(CXX_FILES)
	@$(PY) -m ruff format --check -q $(PY_DIRS)
	@$(PY) -m ruff check -q $(PY_DIRS)
	@$(PY) -m mypy
	@echo "all checks pass"

tidy: MORE_PACKAGES := $(CHECK_PACKAGES)
tidy: deps  ## what clang-tidy finds: make tidy PARTS="src/convert src/ir" looks at a part
	@test -f build/tidy/build.ninja || cmake --preset tidy >/dev/null
	@cmake --build build/tidy -j $(JOBS) --target CMakeFiles/tonnx_base.dir/cmake_pch.hxx.pch CMakeFiles/tonnx_formats.dir/cmake_pch.hxx.pch \
	  CMakeFiles/tonnx_rows.dir/cmake_pch.hxx.pch >/dev/null
	@$(PYTHON) tools/tidy.py build/tidy $(PARTS) --jobs $(JOBS)

coverage: MORE_PACKAGES := $(COVERAGE_PACKAGES)
coverage: deps $(VENV)/.stamp  ## the C++ lines and the rows of operators that no test reaches
	@test -f build/coverage/build.ninja || cmake --preset coverage -DPython_EXECUTABLE=$(CURDIR)/$(PY) >/dev/null
	@cmake --build build/coverage -j $(JOBS)
	@find build/coverage -name '*.gcda' -delete
	@ctest --preset coverage -j $(JOBS) >/dev/null
	@TONNX_CLI=$(CURDIR)/build/coverage/tonnx PYTHONPATH=build/coverage/python $(PY) -m pytest -q -n $(JOBS) $(PYTEST_ARGS) >/dev/null
	@gcovr --root . --filter src/ --object-directory build/coverage -j $(JOBS) --sort-uncovered --txt build/coverage/lines.txt
	@head -40 build/coverage/lines.txt; tail -3 build/coverage/lines.txt
	@echo "all files, and the lines that no test reaches: build/coverage/lines.txt; operators that no test exports:"
	@$(PY) -m pytest -q --list-untested-rows tests/python | tail -40

docs: build  ## docs/operators.md and docs/passes.md from the tables
	@mkdir -p docs build/docs
	@$(RELEASE)/tonnx ops --markdown > build/docs/operators.md
	@$(RELEASE)/tonnx simplify --list-passes --markdown > build/docs/passes.md
	@mv build/docs/operators.md build/docs/passes.md docs/
	@echo "docs/operators.md and docs/passes.md are up to date"

$(SITE_VENV)/.stamp: tools/site_requirements.txt
	@echo "making $(SITE_VENV)"
	@test -x $(SITE_VENV)/bin/python || $(PYTHON) -m venv $(SITE_VENV)
	@$(SITE_VENV)/bin/python -m pip install -q --disable-pip-version-check -r $<
	@touch $@

site: $(SITE_VENV)/.stamp reference  ## the documentation as a site, in build/site; a link that leads nowhere is an error
	@NO_MKDOCS_2_WARNING=1 $(SITE_VENV)/bin/python -m mkdocs build -q --strict
	@cp -r build/reference/html build/site/api
	@echo "build/site/index.html"

reference: MORE_PACKAGES := $(REFERENCE_PACKAGES)
reference: deps  ## the reference of the library in C++ and C, by Doxygen, in build/reference/html; warnings are errors
	@rm -rf build/reference && mkdir -p build/reference
	@TONNX_VERSION=$$(sed -nE 's/^.define TONNX_VERSION_[A-Z]+ ([0-9]+)$$/\1/p' include/tonnx/version.h | paste -sd.) doxygen docs/doxygen/Doxyfile
	@echo "build/reference/html/index.html"

clean:  ## removes what was built; keeps the virtual environments
	@rm -rf build
