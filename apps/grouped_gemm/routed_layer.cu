// SPDX-License-Identifier: Apache-2.0
#include "apps/grouped_gemm/routed_layer.hpp"

#include <cuda/stream_ref>

#include <algorithm>
#include <cstring>
#include <random>

#include "apps/bench/device.hpp"
#include "apps/bench/require.hpp"
#include "apps/grouped_gemm/routing_step.cuh"
#include "apps/grouped_gemm/values.hpp"
#include "kernels/launch_behind.hpp"

namespace tmap::bench {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;
constexpr std::size_t a_bytes = 256 * mebibyte;
constexpr std::size_t b_bytes = 256 * 56 * mebibyte;  // 256 matrices of 4096 x 7168
constexpr std::size_t c_bytes = 256 * mebibyte;       // of each product
constexpr std::size_t scratch_bytes = mebibyte;       // of each product
constexpr std::size_t most_choices = 65536;
constexpr std::size_t most_places = 8;
constexpr std::uint32_t choices_a_thread = 4;
constexpr int poison_byte = 0xff;

map_template template_of(const kernels::gemm_map_spec& from) {
  return value_of(make_template(from.spec, from.fields));
}

kernels::gemm_maps maps_of(const gemm::row_problem& problem, const kernels::gemm_plan& plan) {
  const kernels::gemm_map_specs specs = kernels::gemm_specs(problem, plan);
  return {template_of(specs.a), template_of(specs.b), template_of(specs.c)};
}

std::uint64_t address_of(const device_array<unsigned char>& memory, std::size_t at) {
  return reinterpret_cast<std::uint64_t>(memory.get()) + at;
}

unsigned char* at(std::uint64_t address) {
  return reinterpret_cast<unsigned char*>(address);
}

template <class T>
std::vector<T> read_first(const T* from, std::size_t count) {
  std::vector<T> values(count);
  require(cudaMemcpy(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

/// Choices of experts that come in any order.
std::vector<std::int32_t> shuffled_choices(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int32_t> choices;
  for (std::size_t g = 0; g < sizes.size(); ++g) {
    choices.insert(choices.end(), static_cast<std::size_t>(sizes[g]), static_cast<std::int32_t>(g));
  }
  std::mt19937_64 random(sizes.size());
  std::shuffle(choices.begin(), choices.end(), random);
  return choices;
}

kernels::launch_size routing_size(const routing_step& step) {
  constexpr std::uint32_t choices_a_block = choices_a_thread * routing_threads;
  return {(step.choices + choices_a_block - 1) / choices_a_block, routing_threads};
}

}  // namespace

std::string layer_shape::name() const {
  return std::to_string(groups) + ", " + std::to_string(rows) + ", " + std::to_string(width) + ", " +
         std::to_string(hidden);
}

layer_memory::layer_memory()
    : a_(a_bytes),
      b_(b_bytes),
      c_(layer_products * c_bytes),
      scratch_(layer_products * scratch_bytes),
      experts_(most_choices),
      counts_(most_routed_groups),
      ends_(most_routed_groups),
      done_(1) {
  counts_.fill(0);
  done_.fill(0);
  fill_normal(gemm::operand_type::bf16, a_.get(), a_.size() / sizeof(std::uint16_t), 1);
  fill_normal(gemm::operand_type::bf16, b_.get(), b_.size() / sizeof(std::uint16_t), 2);
}

routed_layer::routed_layer(const layer_shape& shape, const layer_memory& memory)
    : shape_(shape),
      memory_(memory),
      sizes_(drawn_sizes(shape.groups, shape.rows, shape.weights, 1000 + shape.groups)),
      multiprocessors_(multiprocessors()) {
  require(shape.groups <= most_routed_groups && shape.rows <= most_choices);
  const std::vector<std::int32_t> choices = shuffled_choices(sizes_);
  require(
      cudaMemcpy(memory.experts_.get(), choices.data(), choices.size() * sizeof(choices[0]), cudaMemcpyHostToDevice));
  products_.push_back(make_product(0, 2 * shape.hidden, shape.width, gemm::epilogue_kind::swiglu));
  products_.push_back(make_product(1, shape.width, shape.hidden, gemm::epilogue_kind::none));
}

/// Each product's B lies in its half of the memory, as often as it fits, or in all of it behind the half's beginning.
routed_layer::product routed_layer::make_product(std::uint32_t index, std::uint64_t n, std::uint64_t k,
                                                 gemm::epilogue_kind kind) const {
  constexpr std::size_t b_part = b_bytes / layer_products;
  constexpr std::uint64_t element = sizeof(std::uint16_t);
  product made{};
  gemm::row_problem& problem = made.problem;
  problem.type = gemm::operand_type::bf16;
  problem.groups = shape_.groups;
  problem.rows = shape_.rows;
  problem.n = n;
  problem.k = k;
  problem.offsets = {memory_.ends_.get(), offset_format::ends, sizeof(std::int32_t)};
  problem.with.kind = kind;
  problem.b_group_pitch_bytes = n * k * element;
  problem.a = {address_of(memory_.a_, 0), k * element};
  problem.b = {address_of(memory_.b_, index * b_part), k * element};
  problem.c = {address_of(memory_.c_, index * c_bytes), (kind == gemm::epilogue_kind::swiglu ? n / 2 : n) * element};
  made.b_bytes = shape_.groups * problem.b_group_pitch_bytes;
  made.result_bytes = shape_.rows * problem.c.pitch_bytes;
  made.scratch = {memory_.scratch_.get() + index * scratch_bytes, scratch_bytes};
  made.plan = &kernels::gemm_plans[kernels::choose_gemm_plan(problem)];
  const std::size_t places = std::clamp<std::size_t>(b_part / made.b_bytes, 1, most_places);
  require(index * b_part + places * made.b_bytes <= b_bytes);
  require(shape_.rows * problem.a.pitch_bytes <= a_bytes && made.result_bytes <= c_bytes);
  for (std::size_t place = 0; place < places; ++place) {
    gemm::row_problem there = problem;
    there.b.address += place * made.b_bytes;
    made.maps.push_back(maps_of(there, *made.plan));
  }
  return made;
}

kernels::gemm_call routed_layer::call_of(const product& of, cudaStream_t stream) const {
  const kernels::gemm_maps& maps = of.maps[turn_ % of.maps.size()];
  return {*of.plan, maps, of.scratch.memory, nullptr, nullptr, multiprocessors_, stream};
}

routing_step routed_layer::step() const {
  return {memory_.experts_.get(), static_cast<std::uint32_t>(shape_.rows),
          shape_.groups,          memory_.counts_.get(),
          memory_.ends_.get(),    memory_.done_.get()};
}

void routed_layer::route(cudaStream_t stream) const {
  require(kernels::launch_behind(routing_kernel, routing_size(step()), stream, step()));
}

void routed_layer::route_and_set_up(cudaStream_t stream, std::uint32_t products) const {
  set_up_calls calls{products, {}};
  for (std::uint32_t i = 0; i < products; ++i) {
    const kernels::gemm_call call = call_of(products_[i], stream);
    calls.of[i] = {kernels::set_up_of(products_[i].problem, call), call.maps};
  }
  require(kernels::launch_behind(routing_and_set_up_kernel, routing_size(step()), stream, step(), calls));
}

void routed_layer::set_up(cudaStream_t stream, std::uint32_t product) const {
  const kernels::gemm_call call = call_of(products_[product], stream);
  require(kernels::launch_set_up(kernels::set_up_of(products_[product].problem, call), call.maps, stream));
}

void routed_layer::multiply(cudaStream_t stream, std::uint32_t product) const {
  require(kernels::launch_products(products_[product].problem, call_of(products_[product], stream)));
}

void routed_layer::call_library(cudaStream_t stream, std::uint32_t product) const {
  const auto& of = products_[product];
  gemm::row_problem problem = of.problem;
  problem.b.address += turn_ % of.maps.size() * of.b_bytes;
  require(gemm::multiply_async(problem, of.scratch, cuda::stream_ref{stream}));
}

void routed_layer::poison() const {
  memory_.scratch_.fill(poison_byte);
  memory_.ends_.fill(poison_byte);
  for (const product& of : products_) require(cudaMemset(at(of.problem.c.address), poison_byte, of.result_bytes));
  require(cudaDeviceSynchronize());
}

layer_traces routed_layer::traces() const {
  require(cudaDeviceSynchronize());
  layer_traces left;
  left.ends = read_first(memory_.ends_.get(), shape_.groups);
  for (std::uint32_t i = 0; i < layer_products; ++i) {
    const product& of = products_[i];
    left.workspaces[i] =
        read_first(static_cast<const unsigned char*>(of.scratch.memory), kernels::gemm_scratch_bytes(shape_.groups));
    hide_safe_addresses(left.workspaces[i]);
    left.results[i] = read_first(at(of.problem.c.address), of.result_bytes);
  }
  return left;
}

void routed_layer::hide_safe_addresses(std::vector<unsigned char>& workspace) const {
  const kernels::gemm_scratch scratch = kernels::cut_scratch(workspace.data(), shape_.groups);
  for (std::uint32_t g = 0; g < shape_.groups; ++g) {
    if (sizes_[g] != 0) continue;
    for (tensor_map* const map : {scratch.a + g, scratch.c + g}) std::memset(map, 0, sizeof(std::uint64_t));
  }
}

}  // namespace tmap::bench
