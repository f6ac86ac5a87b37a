// SPDX-License-Identifier: Apache-2.0
#include "support/fake_streams.hpp"

#include <cstdlib>
#include <cstring>
#include <utility>

namespace tmap::testing {
namespace {

constexpr std::uint64_t slot_bytes = 128;

template <class Handle>
Handle handle_of(std::uint64_t number) {
  return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(number) * 4096);
}

}  // namespace

fake_streams* fake_streams::current{};
thread_local bool fake_streams::inside_drop = false;
thread_local cudaStreamCaptureMode fake_streams::thread_mode = cudaStreamCaptureModeGlobal;

fake_objects::~fake_objects() {
  fake_streams::inside_drop = true;
  for (const auto& [object, drop] : objects) drop(object);
  fake_streams::inside_drop = false;
}

fake_streams::fake_streams() {
  current = this;
  thread_mode = cudaStreamCaptureModeGlobal;
  handles_[nullptr] = ++last_id_;
  handles_[cudaStreamLegacy] = last_id_;
  streams_[last_id_];
}

fake_streams::~fake_streams() {
  for (void* const data : allocations_) std::free(data);
  current = nullptr;
}

cudaStream_t fake_streams::open_stream() {
  const std::lock_guard lock{mutex_};
  cudaStream_t handle = handle_of<cudaStream_t>(handles_.size());
  if (!closed_handles_.empty()) {
    handle = closed_handles_.back();
    closed_handles_.pop_back();
  }
  handles_[handle] = ++last_id_;
  streams_[last_id_];
  return handle;
}

void fake_streams::close_stream(cudaStream_t stream) {
  const std::lock_guard lock{mutex_};
  const fake_stream_id id = std::exchange(handles_.at(stream), 0);
  closed_handles_.push_back(stream);
  stream_state& state = streams_.at(id);
  state.open = false;
  if (state.queue.empty()) streams_.erase(id);
}

fake_stream_id fake_streams::id_now(cudaStream_t stream) {
  if (stream == cudaStreamPerThread) {
    fake_stream_id& own = per_thread_[std::this_thread::get_id()];
    if (own == 0) streams_[own = ++last_id_];
    return own;
  }
  const auto known = handles_.find(stream);
  return known == handles_.end() ? 0 : known->second;
}

fake_stream_id fake_streams::id_of(cudaStream_t stream) {
  const std::lock_guard lock{mutex_};
  return id_now(stream);
}

/// Returns null for a dead handle.
fake_streams::stream_state* fake_streams::find(cudaStream_t stream) {
  const fake_stream_id id = id_now(stream);
  if (id != 0) return &streams_.at(id);
  violations_.push_back("a dead stream was used");
  return nullptr;
}

void fake_streams::enqueue(cudaStream_t stream, fake_operation operation) {
  stream_state* const state = find(stream);
  if (state == nullptr) return;
  if (state->capture != nullptr) {
    state->capture->graph->operations.push_back(std::move(operation));
  } else {
    state->queue.push_back(std::move(operation));
  }
}

void fake_streams::write(cudaStream_t stream, void* slots, std::uint64_t count, std::uint64_t id) {
  const std::lock_guard lock{mutex_};
  enqueue(stream, {fake_operation::kind::write, static_cast<unsigned char*>(slots), count, id});
}

void fake_streams::read(cudaStream_t stream, const void* slots, std::uint64_t count, std::uint64_t id) {
  const std::lock_guard lock{mutex_};
  auto* const bytes = static_cast<unsigned char*>(const_cast<void*>(slots));
  enqueue(stream, {fake_operation::kind::read, bytes, count, id});
}

void fake_streams::note_work(cudaStream_t stream) {
  const std::lock_guard lock{mutex_};
  const stream_state* const state = find(stream);
  if (state != nullptr && state->capture != nullptr) enqueue(stream, {.what = fake_operation::kind::work});
}

bool fake_streams::is_ready(const stream_state& stream) const {
  if (stream.queue.empty()) return false;
  const fake_operation& next = stream.queue.front();
  return next.what != fake_operation::kind::wait || *next.reached;
}

void fake_streams::run(stream_state& stream) {
  const fake_operation next = std::move(stream.queue.front());
  stream.queue.pop_front();
  for (std::uint64_t slot = 0; slot < next.count; ++slot) {
    unsigned char* const place = next.slots + slot * slot_bytes;
    if (next.what == fake_operation::kind::write) std::memcpy(place, &next.id, sizeof next.id);
    if (next.what == fake_operation::kind::read) foreign_ids_ += std::memcmp(place, &next.id, sizeof next.id) != 0;
  }
  if (next.what == fake_operation::kind::record) *next.reached = true;
}

std::vector<fake_stream_id> fake_streams::ready() const {
  const std::lock_guard lock{mutex_};
  std::vector<fake_stream_id> ids;
  for (const auto& [id, stream] : streams_) {
    if (is_ready(stream)) ids.push_back(id);
  }
  return ids;
}

void fake_streams::step(fake_stream_id stream) {
  const std::lock_guard lock{mutex_};
  const auto found = streams_.find(stream);
  if (found == streams_.end() || !is_ready(found->second)) return;
  run(found->second);
  if (!found->second.open && found->second.queue.empty()) streams_.erase(found);
}

void fake_streams::run_all() {
  for (std::vector<fake_stream_id> ids = ready(); !ids.empty(); ids = ready()) {
    for (const fake_stream_id id : ids) step(id);
  }
}

void fake_streams::begin_capture(cudaStream_t stream) {
  const std::lock_guard lock{mutex_};
  std::uint64_t number = 1;
  while (graphs_.count(handle_of<cudaGraph_t>(number)) != 0) ++number;
  const auto graph = handle_of<cudaGraph_t>(number);
  graphs_[graph] = std::make_shared<fake_graph>();
  const auto capture = std::make_shared<fake_capture>(fake_capture{++last_id_, graph, graphs_[graph]});
  find(stream)->capture = capture;
  captures_.insert(capture);
}

void fake_streams::invalidate_captures() {
  const std::lock_guard lock{mutex_};
  for (const auto& capture : captures_) capture->valid = false;
}

cudaGraph_t fake_streams::end_capture(cudaStream_t stream) {
  const std::lock_guard lock{mutex_};
  const std::shared_ptr<fake_capture> capture = find(stream)->capture;
  for (auto& [id, state] : streams_) {
    if (state.capture == capture) state.capture = nullptr;
  }
  captures_.erase(capture);
  if (capture->valid) return capture->handle;
  graphs_.erase(capture->handle);
  return nullptr;
}

cudaGraphExec_t fake_streams::instantiate(cudaGraph_t graph) {
  const std::lock_guard lock{mutex_};
  const auto exec = handle_of<cudaGraphExec_t>(++last_handle_);
  execs_[exec] = std::make_shared<fake_graph>(*graphs_.at(graph));
  return exec;
}

void fake_streams::launch(cudaGraphExec_t exec, cudaStream_t stream) {
  const std::lock_guard lock{mutex_};
  const fake_graph& graph = *execs_.at(exec);
  for (const fake_operation& operation : graph.operations) enqueue(stream, operation);
  enqueue(stream, {.what = fake_operation::kind::keep, .kept_for = graph.objects});
}

void fake_streams::destroy_graph(cudaGraph_t graph) {
  const std::lock_guard lock{mutex_};
  graphs_.erase(graph);
}

void fake_streams::destroy_exec(cudaGraphExec_t exec) {
  const std::lock_guard lock{mutex_};
  execs_.erase(exec);
}

cudaError_t fake_streams::enter(pool_call call) {
  ++made_[static_cast<std::size_t>(call)];
  if (broken_ != cudaSuccess) return broken_;
  for (const std::size_t plan : {static_cast<std::size_t>(call), call_count}) {
    if (plans_[plan].countdown == 0 || --plans_[plan].countdown != 0) continue;
    failed_call_ = call;
    return plans_[plan].code;
  }
  return cudaSuccess;
}

void fake_streams::fail_call(std::uint64_t n, cudaError_t code) {
  const std::lock_guard lock{mutex_};
  plans_[call_count] = {n, code};
}

void fake_streams::fail_call(pool_call call, std::uint64_t n, cudaError_t code) {
  const std::lock_guard lock{mutex_};
  plans_[static_cast<std::size_t>(call)] = {n, code};
}

void fake_streams::break_context(cudaError_t code) {
  const std::lock_guard lock{mutex_};
  broken_ = code;
}

std::optional<pool_call> fake_streams::failed_call() const {
  const std::lock_guard lock{mutex_};
  return failed_call_;
}

}  // namespace tmap::testing
