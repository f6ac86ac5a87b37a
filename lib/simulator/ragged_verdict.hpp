// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/ragged.hpp>
#include <tmap/route.hpp>

#include <cstdint>

namespace tmap::simulator {

/// How the dims of the destination must follow from those of the source.
enum class dims_relation : std::uint32_t {
  equal,
  swapped,  ///< dims 0 and 1 exchanged
  reduced,  ///< dim 0 is 1
  cut,      ///< the destination holds what fits (`pad`)
  corner,   ///< the destination is no larger than the source (`unpad`)
};

/// One tensor of an operation: by which number the caller knows it, its sides, what became of it.
struct tensor_pair {
  std::uint64_t index{};
  tensor_layout source;
  tensor_layout destination;
  bool ends_behind_buffer{};  ///< its packed side does
  ragged::tensor_status status{};
};

/// What the planning kernel of the GPU says of the same tensor. Any bits are legal input.
ragged::tensor_status judge(const tensor_pair& pair, dims_relation relation, const ragged::options& with);

/// One tensor alone; `judge_destination` also asks whether its elements share bytes.
ragged::tensor_status judge_side(const tensor_layout& tensor, const ragged::options& with);
ragged::tensor_status judge_destination(const tensor_layout& tensor, const ragged::options& with);

/// The faults of one row number.
ragged::tensor_status judge_row(std::int64_t row, std::uint64_t rows);

/// Writes statuses and counts them for the header.
class verdict_writer {
 public:
  explicit verdict_writer(const ragged::options& with) : with_{with} {}
  ~verdict_writer() {
    if (with_.header != nullptr) *with_.header = header_;
  }
  verdict_writer(const verdict_writer&) = delete;
  verdict_writer& operator=(const verdict_writer&) = delete;

  void write(std::uint64_t index, ragged::tensor_status status);

 private:
  const ragged::options& with_;
  batch_header header_{};
};

}  // namespace tmap::simulator
