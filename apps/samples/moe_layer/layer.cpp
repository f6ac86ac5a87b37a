// SPDX-License-Identifier: Apache-2.0
#include "apps/samples/moe_layer/layer.hpp"

#include <tmap/moe_layer.hpp>

#include <cuda/stream_ref>

#include <utility>

namespace moe {
namespace {

using tmap::failure;
using tmap::result;
using tmap::apps::as_result;
using tmap::apps::copy_bytes;
using tmap::apps::device_memory;

constexpr std::uint32_t most_tokens = 1u << 24;
constexpr std::uint32_t products = 2;
constexpr std::uint64_t item = sizeof(__nv_bfloat16);

/// States what a number must satisfy; `reason` is as in `tmap::error`.
struct demand {
  const char* name;
  const char* reason;
  std::uint64_t allowed;
};
constexpr const char* at_least = "is {found}; it must be at least {allowed}";
constexpr const char* at_most = "is {found}; it must be at most {allowed}";
constexpr const char* multiple = "is {found}; it must be a multiple of {allowed}, and not 0";

result<void> check(bool holds, std::uint64_t found, const demand& must) {
  if (holds) return {};
  tmap::error made;
  made.found = found;
  made.allowed = must.allowed;
  made.argument = must.name;
  made.reason = must.reason;
  return failure(made);
}

result<void> check_sizes(const layer_sizes& sizes) {
  constexpr std::uint64_t most_experts = tmap::moe::max_experts;
  const auto is_multiple = [](std::uint64_t value, std::uint64_t of) { return value > 0 && value % of == 0; };
  result<void> checked = check(sizes.tokens > 0, sizes.tokens, {"sizes.tokens", at_least, 1});
  if (checked) checked = check(sizes.tokens <= most_tokens, sizes.tokens, {"sizes.tokens", at_most, most_tokens});
  if (checked) checked = check(sizes.experts >= choices, sizes.experts, {"sizes.experts", at_least, choices});
  if (checked) checked = check(sizes.experts <= most_experts, sizes.experts, {"sizes.experts", at_most, most_experts});
  const std::uint64_t of_width = sizes.has_8_bits ? 16 : 8;
  const std::uint64_t of_hidden = sizes.has_8_bits ? scaled : 16;
  if (checked) checked = check(is_multiple(sizes.width, of_width), sizes.width, {"sizes.width", multiple, of_width});
  if (checked) {
    checked = check(is_multiple(sizes.hidden, of_hidden), sizes.hidden, {"sizes.hidden", multiple, of_hidden});
  }
  return checked;
}

result<void> check_count(const char* name, const std::vector<float>& values, std::uint64_t count) {
  return check(values.size() == count, values.size(),
               {name, "has {found} values; the layer's sizes ask for {allowed}", count});
}

template <class T>
result<void> copy(const std::vector<T>& values, void* to) {
  const auto copied = copy_bytes(to, values.data(), values.size() * sizeof(T));
  return copied ? as_result(cudaDeviceSynchronize()) : copied;  // later streams may not wait for the default one
}

result<void> upload(const char* name, const std::vector<float>& values, std::uint64_t count, void* to) {
  const auto checked = check_count(name, values, count);
  return checked ? copy(as_bf16(values), to) : checked;
}

template <class T>
result<void> download(const T* from, std::uint64_t count, std::vector<T>& to) {
  to.resize(count);
  return copy_bytes(to.data(), from, count * sizeof(T));
}

tmap::gemm::matrix matrix_of(const __nv_bfloat16* memory, std::uint64_t columns) {
  return {memory, columns * item};
}

/// The matrices of all experts.
struct matrix_shape {
  std::uint64_t lines;
  std::uint64_t columns;
  std::uint64_t count(const layer_sizes& sizes) const { return sizes.experts * lines * columns; }
  std::uint64_t across() const { return (columns + scaled - 1) / scaled; }
  /// Returns the scales of one expert.
  std::uint64_t scales() const { return (lines + scaled - 1) / scaled * across(); }
};
matrix_shape shape_of_gate_up(const layer_sizes& sizes) {
  return {2 * std::uint64_t{sizes.hidden}, sizes.width};
}
matrix_shape shape_of_down(const layer_sizes& sizes) {
  return {sizes.width, sizes.hidden};
}
std::uint64_t weight_bytes(const layer_sizes& sizes) {
  return sizes.has_8_bits ? 1 : item;
}

tmap::moe::expert_weights weights_of(const layer_sizes& sizes, const unsigned char* memory, const float* scales,
                                     const matrix_shape& shape) {
  const std::uint64_t line = shape.columns * weight_bytes(sizes);
  tmap::moe::expert_weights made{.values = {memory, line}, .group_pitch_bytes = shape.lines * line};
  if (!sizes.has_8_bits) return made;
  made.scales = {
      .values = scales, .line_stride = shape.across(), .k_stride = 1, .group_stride = shape.scales(), .lines = scaled};
  return made;
}

/// Uploads weights in the type of the layer.
result<void> upload_weights(const char* name, const layer_sizes& sizes, const std::vector<float>& values,
                            const matrix_shape& shape, unsigned char* to, float* scales) {
  if (!sizes.has_8_bits) return upload(name, values, shape.count(sizes), to);
  const auto checked = check_count(name, values, shape.count(sizes));
  if (!checked) return checked;
  const scaled_matrices rounded = as_e4m3(values, shape.lines, shape.columns);
  const auto copied = copy(rounded.values, to);
  return copied ? copy(rounded.scales, scales) : copied;
}

}  // namespace

result<layer> layer::make(const layer_sizes& sizes) {
  if (const auto checked = check_sizes(sizes); !checked) return failure(checked.error());
  layer made(sizes);
  if (const auto allocated = made.allocate(); !allocated) return failure(allocated.error());
  return made;
}

template <class T>
result<void> layer::add(std::vector<device_memory>& memory, T*& to, std::uint64_t count) {
  auto got = device_memory::allocate(count * sizeof(T));
  if (!got) return failure(got.error());
  to = got->as<T>();
  memory.push_back(std::move(*got));
  return {};
}

result<void> layer::allocate() {
  const std::uint64_t tokens = std::uint64_t{sizes_.tokens} * sizes_.width;
  const std::uint64_t weights = std::uint64_t{sizes_.experts} * sizes_.width;
  const std::uint64_t rows = sizes_.rows();
  const auto bytes = tmap::moe::workspace_bytes(problem());
  if (!bytes) return failure(bytes.error());
  scratch_bytes_ = *bytes;
  result<void> got = add(inputs_, arrays_.tokens, tokens);
  if (got) got = add(inputs_, arrays_.router, weights);
  const matrix_shape gate_up = shape_of_gate_up(sizes_);
  const matrix_shape down = shape_of_down(sizes_);
  if (got) got = add(inputs_, arrays_.gate_up, gate_up.count(sizes_) * weight_bytes(sizes_));
  if (got) got = add(inputs_, arrays_.down, down.count(sizes_) * weight_bytes(sizes_));
  if (got) got = add(inputs_, arrays_.gate_up_scales, sizes_.experts * gate_up.scales());
  if (got) got = add(inputs_, arrays_.down_scales, sizes_.experts * down.scales());
  if (got) got = add(written_, arrays_.logits, std::uint64_t{sizes_.tokens} * sizes_.experts);
  if (got) got = add(written_, arrays_.experts, rows);
  if (got) got = add(written_, arrays_.shares, rows);
  if (got) got = add(written_, arrays_.sizes, sizes_.experts);
  if (got) got = add(written_, arrays_.row_of, rows);
  if (got) got = add(written_, arrays_.output, tokens);
  if (got) got = add(written_, header_, 1);
  if (got) got = add(written_, statuses_, products * sizes_.experts);
  if (got) got = add(written_, scratch_, scratch_bytes_);
  return got;
}

result<void> layer::set_weights(const layer_weights& weights) const {
  const std::uint64_t matrix = std::uint64_t{sizes_.experts} * sizes_.width;
  result<void> done = upload("weights.router", weights.router, matrix, arrays_.router);
  if (done) {
    done = upload_weights("weights.gate_up", sizes_, weights.gate_up, shape_of_gate_up(sizes_), arrays_.gate_up,
                          arrays_.gate_up_scales);
  }
  if (done) {
    done =
        upload_weights("weights.down", sizes_, weights.down, shape_of_down(sizes_), arrays_.down, arrays_.down_scales);
  }
  return done;
}

result<void> layer::set_tokens(const std::vector<float>& tokens) const {
  return upload("tokens", tokens, std::uint64_t{sizes_.tokens} * sizes_.width, arrays_.tokens);
}

tmap::moe::layer_problem layer::problem() const {
  const std::uint64_t width = sizes_.width;
  const std::uint64_t hidden = sizes_.hidden;
  tmap::moe::logits from{.values = {arrays_.logits, sizes_.experts * sizeof(float)}};
  from.scoring = tmap::moe::scoring::top_k_then_softmax;
  tmap::moe::layer_problem made;
  made.type = sizes_.has_8_bits ? tmap::gemm::operand_type::f8_e4m3 : tmap::gemm::operand_type::bf16;
  made.routing = {.tokens = sizes_.tokens, .experts = sizes_.experts, .k = choices, .choices = from};
  made.width = width;
  made.inner = hidden;
  made.x = matrix_of(arrays_.tokens, width);
  made.gate_up = weights_of(sizes_, arrays_.gate_up, arrays_.gate_up_scales, shape_of_gate_up(sizes_));
  made.gate.function = tmap::gemm::gate_function::silu;
  made.down = weights_of(sizes_, arrays_.down, arrays_.down_scales, shape_of_down(sizes_));
  made.out = matrix_of(arrays_.output, width);
  return made;
}

// Neither waits nor allocates nor asks the GPU for a size.
result<void> layer::enqueue(cudaStream_t stream) const {
  const auto scored = as_result(launch_scores(sizes_, arrays_, stream));
  if (!scored) return scored;
  const tmap::moe::layer_results results{.routed = {.ids = arrays_.experts,
                                                    .weights = arrays_.shares,
                                                    .counts = arrays_.sizes,
                                                    .row_of_choice = arrays_.row_of},
                                         .gate_up_statuses = statuses_,
                                         .down_statuses = statuses_ + sizes_.experts};
  return tmap::moe::layer(problem(), results,
                          {.where = {cuda::stream_ref{stream}, {scratch_, scratch_bytes_}}, .header = header_});
}

result<void> layer::poison() const {
  constexpr int byte = 0xff;  // makes NaNs in bf16 and f32, and numbers of experts and rows that do not exist
  for (const device_memory& memory : written_) {
    if (const auto done = memory.fill(byte); !done) return done;
  }
  return as_result(cudaDeviceSynchronize());
}

result<layer_results> layer::results() const {
  layer_results got;
  std::vector<__nv_bfloat16> output;
  result<void> done = as_result(cudaDeviceSynchronize());
  if (done) done = download(arrays_.experts, sizes_.rows(), got.experts);
  if (done) done = download(arrays_.shares, sizes_.rows(), got.shares);
  if (done) done = download(arrays_.sizes, sizes_.experts, got.sizes);
  if (done) done = download(arrays_.row_of, sizes_.rows(), got.row_of);
  if (done) done = download(arrays_.output, std::uint64_t{sizes_.tokens} * sizes_.width, output);
  if (!done) return failure(done.error());
  got.output = as_float(output);
  return got;
}

result<tmap::batch_header> layer::header() const {
  std::vector<tmap::batch_header> got;
  if (const auto done = download(header_, 1, got); !done) return failure(done.error());
  return got[0];
}

result<std::vector<tmap::gemm::group_status>> layer::statuses() const {
  std::vector<tmap::gemm::group_status> got;
  if (const auto done = download(statuses_, products * sizes_.experts, got); !done) return failure(done.error());
  return got;
}

result<layer_graph> layer_graph::capture(const layer& of) {
  layer_graph made;
  cudaGraph_t graph = nullptr;
  result<void> done = as_result(cudaStreamCreateWithFlags(&made.stream_, cudaStreamNonBlocking));
  if (done) done = as_result(cudaStreamBeginCapture(made.stream_, cudaStreamCaptureModeThreadLocal));
  if (!done) return failure(done.error());
  done = of.enqueue(made.stream_);
  const auto ended = as_result(cudaStreamEndCapture(made.stream_, &graph));
  if (done) done = ended;
  if (done) done = as_result(cudaGraphInstantiate(&made.executable_, graph, 0));
  if (graph != nullptr) cudaGraphDestroy(graph);
  if (!done) return failure(done.error());
  return made;
}

layer_graph::layer_graph(layer_graph&& other) noexcept
    : stream_(std::exchange(other.stream_, nullptr)), executable_(std::exchange(other.executable_, nullptr)) {}

layer_graph::~layer_graph() {
  if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

result<void> layer_graph::replay() const {
  result<void> done = as_result(cudaGraphLaunch(executable_, stream_));
  if (done) done = as_result(cudaStreamSynchronize(stream_));
  return done;
}

}  // namespace moe
