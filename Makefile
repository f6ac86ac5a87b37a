# SPDX-License-Identifier: Apache-2.0
# The front door: `make demo` and `make test` install what is missing, configure, build and run.
PRESET ?= release
BUILD := build/$(PRESET)
JOBS ?= $(shell nproc)
DEMO := build/demo
MAKEFLAGS += --no-print-directory

.PHONY: all demo test bench docs format packages configure clean

all: configure
	cmake --build --preset $(PRESET) --parallel $(JOBS)

demo: configure
	cmake --build --preset $(PRESET) --parallel $(JOBS) --target tmap_tool tmap_demo_pictures
	$(BUILD)/apps/demo_pictures/tmap_demo_pictures $(DEMO)/pictures
	$(BUILD)/apps/tmap/tmap pad $(DEMO)/pictures --out $(DEMO)/out
	@echo "open $(CURDIR)/$(DEMO)/out/contact_sheet.png"

test: all
	bash tests/run.sh $(BUILD)

bench: configure
	cmake --build --preset $(PRESET) --parallel $(JOBS) --target encode_bench use_bench ragged_bench grouped_gemm_bench tmap_shared
	$(BUILD)/apps/bench/encode/encode_bench
	$(BUILD)/apps/bench/use/use_bench
	$(BUILD)/apps/bench/ragged/ragged_bench
	$(BUILD)/apps/bench/gemm/grouped_gemm_bench
	$(BUILD)/apps/bench/gemm/grouped_gemm_bench --shapes > $(BUILD)/gemm_shapes.json
	python3 apps/bench/encode/triton_descriptors.py
	python3 apps/bench/ragged/ragged_torch.py
	TMAP_LIBRARY=$(BUILD)/libtmap.so python3 apps/bench/gemm/gemm_torch.py $(BUILD)/gemm_shapes.json
	TMAP_LIBRARY=$(BUILD)/libtmap.so python3 python/benchmarks/overhead.py

docs:
	bash cmake/install_packages.sh mkdocs:mkdocs pygmentize:python3-pygments
	mkdocs build --strict --quiet
	@echo "open $(CURDIR)/build/site/index.html"

format:
	git ls-files '*.hpp' '*.cpp' '*.cuh' '*.cu' '*.h' | xargs clang-format -i

packages:
	bash cmake/install_packages.sh

configure: packages
	cmake --preset $(PRESET) $(CMAKE_FLAGS)
	@ln -sf $(BUILD)/compile_commands.json compile_commands.json

clean:
	rm -rf build compile_commands.json
