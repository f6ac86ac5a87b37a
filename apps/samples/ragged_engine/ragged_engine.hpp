// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/ragged.hpp>

#include "apps/support/device_memory.hpp"
#include "apps/support/timed_stream.hpp"
#include "apps/tmap/pad/engine.hpp"

#include <CLI/CLI.hpp>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

// The code that the samples of ragged operations share: it runs each operation on the GPU or,
// without one, on the host, with the same arguments and results.

namespace tmap::tool {

/// Memory for operations, on the GPU or on the host.
class working_memory {
 public:
  std::uint64_t address() const {
    return on_host_ ? reinterpret_cast<std::uint64_t>(on_host_.get()) : on_gpu_.address();
  }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(address());
  }

 private:
  friend class ragged_engine;
  std::unique_ptr<std::byte[]> on_host_;
  apps::device_memory on_gpu_;
};

/// A batch of packed tensors. An array in host memory describes them.
class described_batch {
 public:
  described_batch(std::uint32_t element_bytes, std::uint32_t rank) : element_bytes_{element_bytes}, rank_{rank} {}

  /// Adds a tensor with these dims, innermost first.
  void add(std::uint64_t address, std::initializer_list<std::uint64_t> dims);

  /// Returns the batch, which is valid until the next `add`.
  tensor_batch get() const;

 private:
  std::uint32_t element_bytes_;
  std::uint32_t rank_;
  std::vector<map_patch> patches_;
};

/// The seconds of an operation, which runs to its end. It fails if a tensor was bad.
using run_time = outcome<double>;

class ragged_engine {
 public:
  /// Accepts "host" as the name of the simulator.
  static outcome<ragged_engine> create(engine_request request);

  bool is_gpu() const { return stream_ != nullptr; }
  const std::string& description() const { return description_; }

  outcome<working_memory> allocate(std::uint64_t bytes) const;
  outcome<working_memory> upload(std::span<const std::byte> bytes) const;
  outcome<void> download(const working_memory& from, std::span<std::byte> to) const;

  run_time copy(const tensor_batch& source, const tensor_batch& destination) const;
  run_time pad(const tensor_batch& source, const dense_batch& destination, const ragged::fill_value& fill) const;
  run_time unpad(const dense_batch& source, const tensor_batch& destination) const;
  run_time transpose(const tensor_batch& source, const tensor_batch& destination) const;
  run_time cast(const tensor_batch& source, const tensor_batch& destination, const ragged::cast_values& values) const;
  run_time saxpy(float a, const tensor_batch& x, const tensor_batch& y) const;
  run_time max_pool_1d(const tensor_batch& source, const tensor_batch& destination, std::uint32_t radius) const;
  run_time largest_of_rows(const tensor_batch& source, const tensor_batch& destination) const;

 private:
  template <class Operate>
  run_time run(const char* action, const tensor_batch& batch, const Operate& operate) const;

  std::unique_ptr<apps::timed_stream> stream_;  ///< null on the host
  std::string description_;
};

/// Adds the option `--engine auto|gpu|host`.
void add_engine_option(CLI::App& app, engine_request& request);

}  // namespace tmap::tool
