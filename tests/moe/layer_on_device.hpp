// SPDX-License-Identifier: Apache-2.0
#pragma once

// Puts the operands of a layer of experts into device memory, with margins that no call may write.

#include <tmap/moe_layer.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "lib/moe/layer_access.hpp"
#include "moe/layer_case.hpp"
#include "moe/on_device.hpp"

namespace tmap::moe::testing {

/// Bytes of a matrix in device memory, margins included.
class device_matrix {
 public:
  explicit device_matrix(const host_matrix& from) : host_(from), memory_(from.bytes()) {}

  gemm::matrix place() const { return {memory_.address() + host_.place_of(0, 0), host_.pitch_bytes()}; }
  std::uint64_t line(std::uint64_t row) const { return memory_.address() + host_.place_of(row, 0); }
  const void* data() const { return reinterpret_cast<const void*>(line(0)); }
  void set(const host_matrix& from) const { memory_.upload(from.bytes()); }
  void poison() const { memory_.fill_poison(); }
  /// Returns the matrix, and expects that nothing around its rows was written.
  host_matrix download(const std::string& what) const {
    host_matrix made(host_.type(), host_.rows(), host_.columns(), 0, 0);
    const std::vector<unsigned char> got = memory_.download();
    std::vector<bool> is_inside(got.size());
    const std::uint64_t row_bytes = host_.columns() * gemm::testing::number_bytes(host_.type());
    for (std::uint64_t row = 0; row < host_.rows(); ++row) {
      const std::uint64_t first = host_.place_of(row, 0);
      std::memcpy(&made.bytes()[made.place_of(row, 0)], &got[first], row_bytes);
      std::fill_n(is_inside.begin() + static_cast<std::ptrdiff_t>(first), row_bytes, true);
    }
    std::uint64_t changed = 0;
    for (std::size_t i = 0; i < got.size(); ++i) changed += !is_inside[i] && got[i] != device_array<char>::poison;
    EXPECT_EQ(changed, 0u) << what << ": bytes around the matrix";
    return made;
  }

 private:
  host_matrix host_;
  device_array<unsigned char> memory_;
};

inline host_matrix empty_matrix(const layer_case& of, std::uint64_t rows, std::uint64_t columns, std::uint64_t gap) {
  return {of.type, rows, columns, gap, gemm::testing::poison_byte};
}

/// All arrays of a layer in device memory.
class layer_on_device {
 public:
  layer_on_device(const layer_case& of, const layer_inputs& from)
      : case_(of),
        x_(from.x),
        gate_up_(from.gate_up),
        down_(from.down),
        gate_up_bias_(from.gate_up_bias),
        down_bias_(from.down_bias),
        base_(from.base),
        ids_(from.ids),
        weights_(from.weights),
        gate_up_addresses_(addresses(gate_up_, 2 * of.inner)),
        down_addresses_(addresses(down_, of.width)),
        out_(empty_matrix(of, of.sizes.tokens, of.width, of.gap)),
        rows_(empty_matrix(of, of.rows(), of.width, 16)),
        kept_(empty_matrix(of, of.rows(), 2 * of.inner, 8)),
        activated_(empty_matrix(of, of.rows(), of.inner, 8)),
        outputs_(empty_matrix(of, of.rows(), of.width, 8)),
        gate_up_statuses_(of.sizes.experts),
        down_statuses_(of.sizes.experts),
        routed_(of.sizes),
        scratch_(workspace_bytes(problem(), row_access::sorted).value()) {
    reset();
  }

  layer_problem problem(bool keeps = false) const {
    layer_problem made;
    made.type = case_.type;
    made.routing = problem_of(case_.sizes);
    made.routing.choices = given_choices{ids_.data(), 4, case_.has_weights ? weights_.data() : nullptr};
    made.width = case_.width;
    made.inner = case_.inner;
    made.x = x_.place();
    made.gate_up = weights(gate_up_, 2 * case_.inner, gate_up_addresses_, gate_up_bias_);
    made.gate = case_.gate;
    if (keeps) made.gate.kept = kept_.place();
    made.down = weights(down_, case_.width, down_addresses_, down_bias_);
    if (case_.has_base) made.base = base_.place();
    made.out = out_.place();
    return made;
  }
  layer_results results() const {
    return {.routed = routed_.places(true),
            .rows = rows_.place(),
            .activated = activated_.place(),
            .outputs = outputs_.place(),
            .gate_up_statuses = gate_up_statuses_.data(),
            .down_statuses = down_statuses_.data()};
  }
  run on(cudaStream_t stream) const { return on(stream, bytes()); }
  /// Runs with so many bytes of workspace, at most those of the larger way to access rows.
  run on(cudaStream_t stream, std::uint64_t bytes) const {
    return routed_.reports().on(stream, {scratch_.data(), bytes});
  }
  /// Poisons all that a call writes, the workspace too.
  void reset() const {
    for (const device_matrix* each : {&out_, &rows_, &kept_, &activated_, &outputs_}) each->poison();
    scratch_.fill_poison();
    routed_.reset();
    gate_up_statuses_.reset();
    down_statuses_.reset();
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  void set(const layer_inputs& from) const {
    x_.set(from.x);
    base_.set(from.base);
    ids_.upload(from.ids);
    weights_.upload(from.weights);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  const device_matrix& out() const { return out_; }
  const device_matrix& x() const { return x_; }
  const device_array<std::uint64_t>& gate_up_addresses() const { return gate_up_addresses_; }
  host_matrix rows() const { return rows_.download("rows"); }
  host_matrix kept() const { return kept_.download("kept"); }
  host_matrix activated() const { return activated_.download("activated"); }
  host_matrix outputs() const { return outputs_.download("outputs"); }
  const results_on_device& routed() const { return routed_; }
  const guarded<gemm::group_status>& gate_up_statuses() const { return gate_up_statuses_; }
  const guarded<gemm::group_status>& down_statuses() const { return down_statuses_; }

 private:
  std::uint64_t bytes() const { return workspace_bytes(problem()).value(); }
  std::vector<std::uint64_t> addresses(const device_matrix& of, std::uint64_t lines) const {
    std::vector<std::uint64_t> made;
    for (std::uint64_t expert = 0; expert < case_.sizes.experts; ++expert) made.push_back(of.line(expert * lines));
    return made;
  }
  expert_weights weights(const device_matrix& of, std::uint64_t lines, const device_array<std::uint64_t>& list,
                         const device_matrix& bias) const {
    expert_weights made{.values = of.place(), .group_pitch_bytes = lines * of.place().pitch_bytes};
    if (case_.has_addresses) made = {.values = {0, of.place().pitch_bytes}, .addresses = list.data()};
    if (case_.has_bias) made.bias = bias.data();
    return made;
  }

  layer_case case_;
  device_matrix x_, gate_up_, down_, gate_up_bias_, down_bias_, base_;
  device_array<std::int32_t> ids_;
  device_array<float> weights_;
  device_array<std::uint64_t> gate_up_addresses_, down_addresses_;
  device_matrix out_, rows_, kept_, activated_, outputs_;
  guarded<gemm::group_status> gate_up_statuses_, down_statuses_;
  results_on_device routed_;
  device_array<unsigned char> scratch_;
};

}  // namespace tmap::moe::testing
