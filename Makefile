# SPDX-License-Identifier: Apache-2.0
# The front door: `make demo` and `make test` install what is missing, configure, build and run.
PRESET ?= release
JOBS ?= $(shell nproc)
BUILD := build/$(PRESET)
DEMO := build/demo
# The demo has a build of its own, which has only what it needs. DEMO_PRESET=release takes the one
# of `make`.
has_gpu := $(wildcard /dev/nvidia0)$(shell command -v nvidia-smi 2>/dev/null)
DEMO_PRESET ?= $(if $(has_gpu),demo-gpu,demo-host)
DEMO_BUILD := build/$(DEMO_PRESET)
DOCS_VENV := build/docs_venv
WHEEL_VENV := build/wheel_venv
TORCH_HEADERS := build/torch_headers
# The wheel has the operators of PyTorch in C++. TORCH=0 leaves them out.
TORCH ?= 1
with_torch := $(filter-out 0,$(TORCH))
MAKEFLAGS += --no-print-directory

# $(call configured,<preset>,<build folder>): CMake runs again by itself when its files change.
configured = @[ -f $(2)/CMakeCache.txt ] && [ -z "$(CMAKE_FLAGS)" ] && [ CMakePresets.json -ot $(2)/CMakeCache.txt ] || \
  cmake --preset $(1) $(CMAKE_FLAGS)

.PHONY: all demo test bench docs wheel wheel_aarch64 torch_headers format install packages configure clean help

all: configure
	@cmake --build --preset $(PRESET) --parallel $(JOBS)

demo: packages
	$(call configured,$(DEMO_PRESET),$(DEMO_BUILD))
	@cmake --build --preset $(DEMO_PRESET) --parallel $(JOBS) --target tmap_demo tmap_tool
	$(DEMO_BUILD)/apps/demo/tmap_demo $(DEMO)
	@echo "the tool       $(CURDIR)/$(DEMO_BUILD)/apps/tmap/tmap"

test: all
	bash tests/run.sh $(BUILD)

bench: configure
	@cmake --build --preset $(PRESET) --parallel $(JOBS) --target encode_bench use_bench ragged_bench grouped_gemm_bench tmap_shared
	$(BUILD)/apps/bench/encode/encode_bench
	$(BUILD)/apps/bench/use/use_bench
	$(BUILD)/apps/bench/ragged/ragged_bench
	$(BUILD)/apps/bench/gemm/grouped_gemm_bench
	$(BUILD)/apps/bench/gemm/grouped_gemm_bench --shapes > $(BUILD)/gemm_shapes.json
	python3 apps/bench/encode/triton_descriptors.py
	python3 apps/bench/ragged/ragged_torch.py
	TMAP_LIBRARY=$(BUILD)/libtmap.so python3 apps/bench/gemm/gemm_torch.py $(BUILD)/gemm_shapes.json
	TMAP_LIBRARY=$(BUILD)/libtmap.so python3 python/benchmarks/overhead.py

docs: $(DOCS_VENV)/installed
	bash cmake/install_packages.sh doxygen:doxygen
	mkdir -p build/doxygen
	doxygen docs/Doxyfile
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/python -m mkdocs build --strict
	@echo "open $(CURDIR)/build/site/index.html"

$(DOCS_VENV)/installed: docs/requirements.txt
	bash cmake/install_packages.sh
	python3 -m venv --clear $(DOCS_VENV)
	$(DOCS_VENV)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check --no-deps --requirement $<
	@$(DOCS_VENV)/bin/python -m pip uninstall --quiet --yes setuptools pip  # a quarter of its size, done with
	touch $@

wheel: configure $(WHEEL_VENV)/installed $(if $(with_torch),$(TORCH_HEADERS)/installed)
	@$(if $(with_torch),grep --quiet '^TMAP_TORCH_ROOT:[A-Z]*=.' $(BUILD)/CMakeCache.txt || \
	  cmake -B $(BUILD) -DTMAP_TORCH_ROOT=$(CURDIR)/$(TORCH_HEADERS)/torch)
	@cmake --build --preset $(PRESET) --parallel $(JOBS) --target tmap_portable $(if $(with_torch),tmap_torch_portable)
	bash python/make_wheel.sh $(WHEEL_VENV) $(BUILD)/portable/libtmap.so build/wheel \
	  $(if $(with_torch),$(BUILD)/portable/libtmap_torch.so)

# The operators need PyTorch's headers alone. The wheel for macOS has the same ones as others, and is
# the smallest: 80 MB.
torch_headers: $(TORCH_HEADERS)/installed
$(TORCH_HEADERS)/installed: $(WHEEL_VENV)/installed
	rm -rf $(TORCH_HEADERS)
	$(WHEEL_VENV)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check --no-deps --only-binary=:all: \
	  --platform macosx_11_0_arm64 --python-version 3.12 --target $(TORCH_HEADERS) torch==2.11.0
	@find $(TORCH_HEADERS) -mindepth 1 -maxdepth 1 ! -name torch -exec rm -r {} +
	@find $(TORCH_HEADERS)/torch -mindepth 1 -maxdepth 1 ! -name include -exec rm -r {} +
	touch $@

# Compiled on x86-64. The tests run under qemu.
wheel_aarch64: $(WHEEL_VENV)/installed build/aarch64_cuda
	bash cmake/install_packages.sh aarch64-linux-gnu-g++:g++-aarch64-linux-gnu qemu-aarch64:qemu-user
	$(call configured,aarch64,build/aarch64)
	@cmake --build --preset aarch64 --parallel $(JOBS) --target tmap_portable
	bash python/make_wheel.sh $(WHEEL_VENV) build/aarch64/portable/libtmap.so build/wheel_aarch64
	bash python/tests/aarch64.sh $(WHEEL_VENV) build/wheel_aarch64/*.whl build/aarch64_tests

build/aarch64_cuda: $(WHEEL_VENV)/installed
	$(WHEEL_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
	  --platform manylinux_2_17_aarch64 --target $@ nvidia-cuda-runtime==13.0.96

$(WHEEL_VENV)/installed: python/wheel_requirements.txt
	bash cmake/install_packages.sh
	python3 -m venv --clear $(WHEEL_VENV)
	$(WHEEL_VENV)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check --no-deps --requirement $<
	touch $@

format:
	git ls-files '*.hpp' '*.cpp' '*.cuh' '*.cu' '*.h' | xargs clang-format -i

install: all
	cmake --install $(BUILD) $(if $(PREFIX),--prefix $(PREFIX))

packages:
	@bash cmake/install_packages.sh

configure: packages
	$(call configured,$(PRESET),$(BUILD))
	@ln -sf $(BUILD)/compile_commands.json compile_commands.json

clean:
	rm -rf build compile_commands.json

help:
	@echo "make            build everything into build/release"
	@echo "make demo       build the demo and run it"
	@echo "make test       build everything and run the tests"
	@echo "make install    install into PREFIX, /usr/local by default"
	@echo "make bench      run the benchmarks, on a machine with a GPU"
	@echo "make docs       make the site, build/site/index.html"
	@echo "make wheel      make the Python package's wheel, in build/wheel; TORCH=0 leaves out operators in C++"
	@echo "make wheel_aarch64  the same for aarch64, whose tests run under qemu"
	@echo "make format     format the sources"
	@echo "make packages   install the Debian or Ubuntu packages that the build needs"
	@echo "make clean      remove build/"
	@echo
	@echo "PRESET=host     builds without kernels and needs no nvcc; docs/building.md lists presets and options"
	@echo "CMAKE_FLAGS=... passes options to CMake"
	@echo "JOBS=4          compiles four files at once"
