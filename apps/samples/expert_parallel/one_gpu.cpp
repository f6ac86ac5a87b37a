// SPDX-License-Identifier: Apache-2.0
#include "apps/samples/expert_parallel/one_gpu.hpp"

#include <tmap/moe_layer.hpp>

#include "apps/support/device_array.hpp"

namespace experts {

using tmap::apps::device_array;
using tmap::apps::require;
using tmap::apps::value_of;

namespace {

tmap::moe::expert_weights weights_of(const layer_sizes& sizes, const device_array<unsigned char>& values,
                                     const device_array<float>& scales, std::uint64_t lines, std::uint64_t columns) {
  const std::uint64_t line_bytes = columns * sizes.item_bytes();
  tmap::moe::expert_weights made{.values = {values.get(), line_bytes}, .group_pitch_bytes = lines * line_bytes};
  if (!sizes.has_8_bits) return made;
  made.scales = {.values = scales.get(),
                 .line_stride = sizes.scales(columns),
                 .k_stride = 1,
                 .group_stride = sizes.scales(lines) * sizes.scales(columns),
                 .lines = tmap::gemm::scaled_columns};
  return made;
}

}  // namespace

layer_results run_on_one_gpu(const layer_sizes& sizes, const layer_weights& weights, const layer_inputs& inputs) {
  constexpr std::uint64_t item = sizeof(std::uint16_t);
  require(cudaSetDevice(0));
  const device_array x(inputs.tokens);
  const device_array gate_up(weights.gate_up.values), down(weights.down.values);
  const device_array gate_up_scales(weights.gate_up.scales), down_scales(weights.down.scales);
  const device_array logits(inputs.logits);
  const std::uint64_t choices = sizes.all_tokens() * sizes.k;
  const device_array<std::int32_t> ids(choices), row_of_choice(choices), begins(sizes.experts + 1);
  const device_array<float> shares(choices);
  const device_array<std::uint16_t> outputs(choices * sizes.width), out(inputs.tokens.size());

  tmap::moe::logits from{.values = {logits.get(), sizes.experts * sizeof(float)}};
  from.scoring = tmap::moe::scoring::top_k_then_softmax;
  tmap::moe::layer_problem problem;
  problem.type = sizes.has_8_bits ? tmap::gemm::operand_type::f8_e4m3 : tmap::gemm::operand_type::bf16;
  problem.routing = {.tokens = sizes.all_tokens(), .experts = sizes.experts, .k = sizes.k, .choices = from};
  problem.width = sizes.width;
  problem.inner = sizes.hidden;
  problem.x = {x.get(), sizes.width * item};
  problem.gate_up = weights_of(sizes, gate_up, gate_up_scales, std::uint64_t{2} * sizes.hidden, sizes.width);
  problem.down = weights_of(sizes, down, down_scales, sizes.width, sizes.hidden);
  problem.out = {out.get(), sizes.width * item};
  const tmap::moe::layer_results results{.routed = {.ids = ids.get(),
                                                    .weights = shares.get(),
                                                    .begins = begins.get(),
                                                    .row_of_choice = row_of_choice.get()},
                                         .outputs = {outputs.get(), sizes.width * item}};
  const device_array<unsigned char> scratch(value_of(tmap::moe::workspace_bytes(problem)) + 1);
  cudaStream_t stream{};
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  require(tmap::moe::layer(problem, results, {.where = {cuda::stream_ref{stream}, {scratch.get(), scratch.bytes()}}}));
  require(cudaStreamSynchronize(stream));
  require(cudaStreamDestroy(stream));
  return {ids.read(), shares.read(), row_of_choice.read(), begins.read(), outputs.read(), out.read()};
}

}  // namespace experts
