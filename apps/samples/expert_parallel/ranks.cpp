// SPDX-License-Identifier: Apache-2.0
#include "apps/samples/expert_parallel/ranks.hpp"

#include <tmap/grouped_gemm.hpp>
#include <tmap/moe.hpp>

#include <numeric>
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
          .columns = sizes.width,
          .result_type = tmap::moe::float_type::bf16,
          .returned = sizes.returns_rows ? parallel::return_kind::rows : parallel::return_kind::sums};
}

/// Places the parts of a window: tokens, then rows by expert and their results, then the workspace.
struct window_places {
  explicit window_places(const layer_sizes& sizes)
      : rows(aligned(sizes.tokens * sizes.row_bytes())),
        outputs(rows + aligned(parallel::row_count(shape_of(sizes), sizes.ranks) * sizes.row_bytes())),
        scratch(2 * outputs - rows),
        scratch_bytes(value_of(parallel::workspace_bytes(shape_of(sizes), sizes.ranks))) {}
  std::uint64_t rows, outputs, scratch, scratch_bytes;
};

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
      shape_(shape_of(sizes)),
      gate_up_(part_of(weights.gate_up, rank, sizes.ranks)),
      down_(part_of(weights.down, rank, sizes.ranks)),
      logits_(std::uint64_t{sizes.tokens} * sizes.experts),
      ids_(std::uint64_t{sizes.tokens} * sizes.k),
      weights_(std::uint64_t{sizes.tokens} * sizes.k),
      begins_(sizes.local_experts() + 1),
      activated_(rows() * sizes.hidden),
      out_(std::uint64_t{sizes.tokens} * sizes.width),
      route_scratch_(value_of(tmap::moe::workspace_bytes(routing(sizes, nullptr))) + alignment),
      product_scratch_(value_of(tmap::gemm::workspace_bytes(sizes.local_experts())) + alignment) {
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

tmap::gemm::matrix rank_layer::rows_in_window(std::uint64_t offset) const {
  return {window_.ref().address(rank_, offset), sizes_.row_bytes()};
}

void rank_layer::set_inputs(const layer_inputs& inputs) const {
  require(cudaSetDevice(gpu_));
  upload(window_.data(), part_of(inputs.tokens, rank_, sizes_.ranks));
  upload(logits_.get(), part_of(inputs.logits, rank_, sizes_.ranks));
  out_.fill(0xff);
}

/// Returns a product of the rows of this rank's experts. The host does not know how many there are.
tmap::gemm::row_problem rank_layer::product(std::uint64_t n, std::uint64_t k,
                                            const device_array<std::uint16_t>& weights) const {
  tmap::gemm::row_problem made;
  made.type = tmap::gemm::operand_type::bf16;
  made.groups = sizes_.local_experts();
  made.rows = rows();
  made.n = n;
  made.k = k;
  made.offsets = {begins_.get(), tmap::offset_format::prefix, sizeof(std::int32_t)};
  made.b = {weights.get(), k * sizeof(std::uint16_t)};
  made.b_group_pitch_bytes = n * k * sizeof(std::uint16_t);
  return made;
}

void rank_layer::multiply() const {
  const tmap::gemm::run with{.where = {cuda::stream_ref{stream_}, {product_scratch_.get(), product_scratch_.bytes()}}};
  tmap::gemm::row_problem gate_up = product(std::uint64_t{2} * sizes_.hidden, sizes_.width, gate_up_);
  gate_up.a = rows_in_window(window_places{sizes_}.rows);
  gate_up.c = {activated_.get(), sizes_.hidden * sizeof(std::uint16_t)};
  gate_up.epilogue.gate.function = tmap::gemm::gate_function::silu;
  require(tmap::gemm::multiply(gate_up, with));
  tmap::gemm::row_problem down = product(sizes_.width, sizes_.hidden, down_);
  down.a = gate_up.c;
  down.c = rows_in_window(window_places{sizes_}.outputs);
  require(tmap::gemm::multiply(down, with));
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
  const window_places at{sizes_};
  const cuda::stream_ref stream{stream_};
  mark(0);
  require(tmap::moe::route(routing(sizes_, logits_.get()), {.ids = ids_.get(), .weights = weights_.get()},
                           {.where = {stream, {route_scratch_.get(), route_scratch_.bytes()}}}));
  mark(1);
  const parallel::run with{
      .stream = stream,
      .scratch = {reinterpret_cast<void*>(window_.ref().address(rank_, at.scratch)), at.scratch_bytes},
      .blocks = sizes_.blocks};
  parallel::dispatch_problem there;
  there.sizes = shape_;
  there.x = rows_in_window(0);
  there.ids = ids_.get();
  there.weights = weights_.get();
  there.out = rows_in_window(at.rows);
  there.begins = begins_.get();
  require(parallel::dispatch_async(window_, there, with));
  mark(2);
  multiply();
  mark(3);
  parallel::combine_problem back;
  back.sizes = shape_;
  back.values = rows_in_window(at.outputs);
  back.weights = weights_.get();
  back.out = {out_.get(), sizes_.row_bytes()};
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
  const auto* const in_window =
      reinterpret_cast<const void*>(window_.ref().address(rank_, window_places{sizes_}.outputs));
  require(tmap::apps::copy_bytes(outputs.data(), in_window, outputs.size() * sizeof(std::uint16_t)));
  return {begins_.read(), outputs, out_.read()};
}

namespace {

std::vector<tmap::peer_memory> real_windows(const layer_sizes& sizes) {
  std::vector<int> gpus(sizes.ranks);
  std::iota(gpus.begin(), gpus.end(), 0);
  std::vector<tmap::peer_group> groups = value_of(tmap::peer_group::of_process(gpus));
  std::vector<tmap::peer_memory> windows;
  for (tmap::peer_group& each : groups) windows.push_back(value_of(each.allocate(rank_layer::window_bytes(sizes))));
  return windows;
}

std::vector<tmap::peer_memory> virtual_windows(const layer_sizes& sizes,
                                               std::vector<device_array<unsigned char>>& memory) {
  const std::uint64_t bytes = rank_layer::window_bytes(sizes);
  std::vector<tmap::device_address> addresses;
  for (std::uint32_t rank = 0; rank < sizes.ranks; ++rank) {
    memory.emplace_back(tmap::peer_header_bytes + bytes);
    memory.back().fill(0);
    addresses.push_back(memory.back().address());
  }
  std::vector<tmap::peer_memory> windows;
  for (std::uint32_t rank = 0; rank < sizes.ranks; ++rank) {
    tmap::peer_group group =
        value_of(tmap::peer_group::from_addresses(rank, addresses, tmap::peer_header_bytes + bytes));
    windows.push_back(value_of(group.allocate(bytes)));
  }
  return windows;
}

}  // namespace

std::vector<std::unique_ptr<rank_layer>> make_ranks(const layer_sizes& sizes, const layer_weights& weights,
                                                    std::vector<device_array<unsigned char>>& memory) {
  std::vector<tmap::peer_memory> windows = sizes.are_virtual ? virtual_windows(sizes, memory) : real_windows(sizes);
  std::vector<std::unique_ptr<rank_layer>> made;
  for (std::uint32_t rank = 0; rank < sizes.ranks; ++rank) {
    const int gpu = sizes.are_virtual ? 0 : static_cast<int>(rank);
    require(cudaSetDevice(gpu));
    made.push_back(std::make_unique<rank_layer>(sizes, rank, gpu, std::move(windows[rank]), weights));
  }
  for (auto& each : made) each->capture();
  return made;
}

}  // namespace experts
