// SPDX-License-Identifier: Apache-2.0
#include "apps/samples/expert_parallel/ranks.hpp"

#include <tmap/moe.hpp>

#include <utility>

namespace experts {
namespace {

namespace parallel = tmap::expert_parallel;
using tmap::apps::require;
using tmap::apps::value_of;

constexpr std::uint64_t alignment = 256;
constexpr std::size_t parts = 4;

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

parallel::shape shape_of(const layer_sizes& sizes) {
  return {.tokens = sizes.tokens,
          .k = sizes.k,
          .experts = sizes.experts,
          .arrivals = sizes.all_tokens(),
          .row_bytes = static_cast<std::uint32_t>(sizes.row_bytes()),
          .scales = static_cast<std::uint32_t>(sizes.scales(sizes.width)),
          .columns = sizes.width,
          .result_type = tmap::moe::float_type::bf16,
          .returned = sizes.returns_rows ? parallel::return_kind::rows : parallel::return_kind::sums};
}

tmap::moe::route_problem routing(const layer_sizes& sizes, const float* logits) {
  tmap::moe::logits from{.values = {logits, sizes.experts * sizeof(float)}};
  from.scoring = tmap::moe::scoring::top_k_then_softmax;
  return {.tokens = sizes.tokens, .experts = sizes.experts, .k = sizes.k, .choices = from};
}

/// Returns the part of a list that belongs to a rank.
template <class T>
std::vector<T> part_of(const std::vector<T>& all, std::uint32_t rank, std::uint32_t ranks) {
  const auto count = static_cast<std::ptrdiff_t>(all.size() / ranks);
  return {all.begin() + rank * count, all.begin() + (rank + 1) * count};
}

template <class T>
void upload(void* to, const std::vector<T>& values) {
  require(tmap::apps::copy_bytes(to, values.data(), values.size() * sizeof(T)));
  require(cudaDeviceSynchronize());
}

}  // namespace

window_places::window_places(const layer_sizes& sizes)
    : rows(aligned(sizes.tokens * sizes.row_bytes())),
      outputs(rows + aligned(parallel::row_count(shape_of(sizes), sizes.ranks) * sizes.row_bytes())),
      scratch(outputs + aligned(parallel::row_count(shape_of(sizes), sizes.ranks) * sizes.result_bytes())),
      scratch_bytes(value_of(parallel::workspace_bytes(shape_of(sizes), sizes.ranks))) {}

std::uint64_t rank_layer::window_bytes(const layer_sizes& sizes) {
  const window_places at{sizes};
  return at.scratch + aligned(at.scratch_bytes);
}

rank_layer::rank_layer(const layer_sizes& sizes, std::uint32_t rank, int gpu, tmap::peer_memory window,
                       const layer_weights& weights)
    : sizes_(sizes),
      rank_(rank),
      gpu_(gpu),
      window_(std::move(window)),
      at_(sizes),
      shape_(shape_of(sizes)),
      gate_up_{device_array(part_of(weights.gate_up.values, rank, sizes.ranks)),
               device_array(part_of(weights.gate_up.scales, rank, sizes.ranks))},
      down_{device_array(part_of(weights.down.values, rank, sizes.ranks)),
            device_array(part_of(weights.down.scales, rank, sizes.ranks))},
      tokens_(std::uint64_t{sizes.tokens} * sizes.width),
      token_count_(std::vector<std::int64_t>{sizes.tokens}),
      x_scales_(sizes.tokens * sizes.scales(sizes.width)),
      row_scales_(rows() * sizes.scales(sizes.width)),
      activated_scales_(rows() * sizes.scales(sizes.hidden)),
      logits_(std::uint64_t{sizes.tokens} * sizes.experts),
      ids_(std::uint64_t{sizes.tokens} * sizes.k),
      weights_(std::uint64_t{sizes.tokens} * sizes.k),
      begins_(sizes.local_experts() + 1),
      activated_(rows() * sizes.hidden * sizes.item_bytes()),
      out_(std::uint64_t{sizes.tokens} * sizes.width),
      route_scratch_(value_of(tmap::moe::workspace_bytes(routing(sizes, nullptr))) + alignment),
      product_scratch_(value_of(tmap::gemm::workspace_bytes(sizes.local_experts())) + alignment),
      quantize_scratch_(value_of(tmap::ragged::workspace_bytes(1, 2)) + alignment) {
  require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  if (sizes.is_timed) events_.resize(parts + 1);
  for (cudaEvent_t& each : events_) require(cudaEventCreate(&each));
}

rank_layer::~rank_layer() {
  cudaSetDevice(gpu_);
  if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  for (const cudaEvent_t each : events_) cudaEventDestroy(each);
  cudaStreamDestroy(stream_);
}

tmap::gemm::matrix rank_layer::rows_in_window(std::uint64_t offset, std::uint64_t pitch) const {
  return {window_.ref().address(rank_, offset), pitch};
}

void rank_layer::set_inputs(const layer_inputs& inputs) const {
  require(cudaSetDevice(gpu_));
  void* const to = sizes_.has_8_bits ? static_cast<void*>(tokens_.get()) : window_.data();
  upload(to, part_of(inputs.tokens, rank_, sizes_.ranks));
  upload(logits_.get(), part_of(inputs.logits, rank_, sizes_.ranks));
  out_.fill(0xff);
}

void rank_layer::mark(std::size_t event) const {
  if (sizes_.is_timed) require(cudaEventRecordWithFlags(events_[event], stream_, cudaEventRecordExternal));
}

std::vector<float> rank_layer::times() const {
  std::vector<float> made;
  for (std::size_t part = 0; part + 1 < events_.size(); ++part) {
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, events_[part], events_[part + 1]));
    made.push_back(milliseconds * 1000);
  }
  return made;
}

// Neither waits nor allocates, and knows no size that the GPUs decide.
void rank_layer::enqueue() const {
  const cuda::stream_ref stream{stream_};
  mark(0);
  require(tmap::moe::route(routing(sizes_, logits_.get()), {.ids = ids_.get(), .weights = weights_.get()},
                           {.where = {stream, {route_scratch_.get(), route_scratch_.bytes()}}}));
  if (sizes_.has_8_bits) quantize();
  mark(1);
  const parallel::run with{
      .stream = stream,
      .scratch = {reinterpret_cast<void*>(window_.ref().address(rank_, at_.scratch)), at_.scratch_bytes},
      .blocks = sizes_.blocks};
  parallel::dispatch_problem there;
  there.sizes = shape_;
  there.x = rows_in_window(0, sizes_.row_bytes());
  if (sizes_.has_8_bits) {
    there.x_scales = x_scales_.get();
    there.x_scale_pitch = sizes_.scales(sizes_.width);
    there.out_scales = row_scales_.get();
  }
  there.ids = ids_.get();
  there.weights = weights_.get();
  there.out = rows_in_window(at_.rows, sizes_.row_bytes());
  there.begins = begins_.get();
  require(parallel::dispatch_async(window_, there, with));
  mark(2);
  multiply();
  mark(3);
  parallel::combine_problem back;
  back.sizes = shape_;
  back.values = rows_in_window(at_.outputs, sizes_.result_bytes());
  back.weights = weights_.get();
  back.out = {out_.get(), sizes_.result_bytes()};
  require(parallel::combine_async(window_, back, with));
  mark(parts);
}

void rank_layer::capture() {
  require(cudaSetDevice(gpu_));
  cudaGraph_t graph{};
  require(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  enqueue();
  require(cudaStreamEndCapture(stream_, &graph));
  require(cudaGraphInstantiate(&graph_, graph, 0));
  require(cudaGraphUpload(graph_, stream_));
  require(cudaGraphDestroy(graph));
  require(cudaStreamSynchronize(stream_));
}

void rank_layer::replay() const {
  require(cudaSetDevice(gpu_));
  require(cudaGraphLaunch(graph_, stream_));
}

tmap::result<void> rank_layer::outcome() const {
  require(cudaSetDevice(gpu_));
  return tmap::last_outcome(window_, cuda::stream_ref{stream_});
}

rank_results rank_layer::results() const {
  require(cudaSetDevice(gpu_));
  bf16_values outputs(rows() * sizes_.width);
  const auto* const in_window = reinterpret_cast<const void*>(window_.ref().address(rank_, at_.outputs));
  require(tmap::apps::copy_bytes(outputs.data(), in_window, outputs.size() * sizeof(std::uint16_t)));
  return {begins_.read(), outputs, out_.read()};
}

}  // namespace experts
