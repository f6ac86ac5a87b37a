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

// What the samples of ragged operations share: each operation on the GPU, or, where there is none,
// on the host, with the same arguments and bytes.

namespace tmap::tool {

/// Memory in which operations work: the GPU's or the host's.
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

/// A batch of packed tensors, described by an array in host memory.
class described_batch {
 public:
  described_batch(std::uint32_t element_bytes, std::uint32_t rank) : element_bytes_{element_bytes}, rank_{rank} {}

  /// Dims innermost first.
  void add(std::uint64_t address, std::initializer_list<std::uint64_t> dims);

  /// Good until the next `add`.
  tensor_batch get() const;

 private:
  std::uint32_t element_bytes_;
  std::uint32_t rank_;
  std::vector<map_patch> patches_;
};

/// Seconds, as an outcome: each operation is run to its end and fails when a tensor was bad.
using run_time = outcome<double>;

class ragged_engine {
 public:
  /// The simulator's name here is "host".
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

/// `--engine auto|gpu|host`.
void add_engine_option(CLI::App& app, engine_request& request);

}  // namespace tmap::tool
