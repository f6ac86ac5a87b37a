// SPDX-License-Identifier: Apache-2.0
#include "apps/samples/expert_parallel/one_gpu.hpp"

#include <tmap/moe_layer.hpp>

#include "apps/support/device_array.hpp"

namespace experts {

using tmap::apps::device_array;
using tmap::apps::require;
using tmap::apps::value_of;

layer_results run_on_one_gpu(const layer_sizes& sizes, const layer_weights& weights, const layer_inputs& inputs) {
  constexpr std::uint64_t item = sizeof(std::uint16_t);
  require(cudaSetDevice(0));
  const device_array x(inputs.tokens), gate_up(weights.gate_up), down(weights.down);
  const device_array logits(inputs.logits);
  const std::uint64_t choices = sizes.all_tokens() * sizes.k;
  const device_array<std::int32_t> ids(choices), row_of_choice(choices), begins(sizes.experts + 1);
  const device_array<float> shares(choices);
  const device_array<std::uint16_t> outputs(choices * sizes.width), out(inputs.tokens.size());

  tmap::moe::logits from{.values = {logits.get(), sizes.experts * sizeof(float)}};
  from.scoring = tmap::moe::scoring::top_k_then_softmax;
  tmap::moe::layer_problem problem;
  problem.type = tmap::gemm::operand_type::bf16;
  problem.routing = {.tokens = sizes.all_tokens(), .experts = sizes.experts, .k = sizes.k, .choices = from};
  problem.width = sizes.width;
  problem.inner = sizes.hidden;
  problem.x = {x.get(), sizes.width * item};
  problem.gate_up = {.values = {gate_up.get(), sizes.width * item}, .group_pitch_bytes = sizes.gate_up_values() * item};
  problem.down = {.values = {down.get(), sizes.hidden * item}, .group_pitch_bytes = sizes.down_values() * item};
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
