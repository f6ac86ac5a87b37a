// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>

#include "support/failing_new.hpp"
#include "support/fake_streams.hpp"

// Implements the calls of `pool_calls` on the fake streams.

namespace tmap::testing {
namespace {

constexpr std::size_t alignment = 256;

}  // namespace

struct fake_pool_calls {
  static bool is_legacy(cudaStream_t stream) { return stream == nullptr || stream == cudaStreamLegacy; }
  static cudaError_t refuse_legacy(fake_streams& cuda, cudaStream_t stream, const char* what) {
    return is_legacy(stream) ? cuda.refuse_on_legacy_stream(what) : cudaSuccess;
  }

  /// Runs `body(cuda)` under the lock unless the call is planned to fail.
  template <class Body>
  static cudaError_t call(pool_call which, const Body& body) {
    const uncounted_allocations exempt;
    fake_streams& cuda = *fake_streams::current;
    const bool in_drop = fake_streams::inside_drop;
    const std::unique_lock lock =
        in_drop ? std::unique_lock{cuda.mutex_, std::defer_lock} : std::unique_lock{cuda.mutex_};
    if (in_drop) return cuda.violate("a call inside a drop", cudaErrorNotPermitted);
    if (const cudaError_t code = cuda.enter(which); code != cudaSuccess) return code;
    return body(cuda);
  }

  static cudaError_t allocate(void** data, std::size_t bytes) {
    return call(pool_call::allocate, [&](fake_streams& cuda) {
      if (const cudaError_t code = cuda.refuse_if_captured("allocate"); code != cudaSuccess) return code;
      const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
      *data = std::aligned_alloc(alignment, whole);
      std::memset(*data, 0, whole);
      cuda.allocations_.insert(*data);
      return cudaSuccess;
    });
  }

  static cudaError_t free(void* data) {
    const uncounted_allocations exempt;
    if (!fake_streams::inside_drop) fake_streams::current->run_all();
    return call(pool_call::free, [&](fake_streams& cuda) {
      if (const cudaError_t code = cuda.refuse_if_captured("free"); code != cudaSuccess) return code;
      if (cuda.allocations_.erase(data) == 0) return cuda.violate("a dead allocation was freed", cudaErrorInvalidValue);
      std::free(data);
      return cudaSuccess;
    });
  }

  static cudaError_t create_event(cudaEvent_t* event) {
    return call(pool_call::create_event, [&](fake_streams& cuda) {
      if (const cudaError_t code = cuda.refuse_if_captured("create_event"); code != cudaSuccess) return code;
      auto made = std::make_unique<fake_event>();
      *event = reinterpret_cast<cudaEvent_t>(made.get());
      cuda.events_[*event] = std::move(made);
      return cudaSuccess;
    });
  }

  static cudaError_t destroy_event(cudaEvent_t event) {
    return call(pool_call::destroy_event, [&](fake_streams& cuda) {
      if (cuda.events_.erase(event) != 0) return cudaSuccess;
      return cuda.violate("a dead event was destroyed", cudaErrorInvalidResourceHandle);
    });
  }

  static cudaError_t record_event(cudaEvent_t event, cudaStream_t stream) {
    return call(pool_call::record_event, [&](fake_streams& cuda) {
      const auto known = cuda.events_.find(event);
      fake_streams::stream_state* const state = cuda.find(stream);
      if (known == cuda.events_.end() || state == nullptr) {
        return cuda.violate("a dead handle was recorded", cudaErrorInvalidResourceHandle);
      }
      if (const cudaError_t code = refuse_legacy(cuda, stream, "record_event"); code != cudaSuccess) return code;
      const unsigned long long capture = state->capture == nullptr ? 0 : state->capture->id;
      if (capture != known->second->capture && cuda.is_open(known->second->capture)) {
        return cuda.violate("an event of an open capture was recorded elsewhere", cudaErrorCapturedEvent);
      }
      known->second->reached = std::make_shared<bool>(false);
      known->second->capture = capture;
      cuda.enqueue(stream, {.what = fake_operation::kind::record, .reached = known->second->reached});
      return cudaSuccess;
    });
  }

  static cudaError_t query_event(cudaEvent_t event) {
    return call(pool_call::query_event, [&](fake_streams& cuda) {
      if (const cudaError_t code = cuda.refuse_if_captured("query_event"); code != cudaSuccess) return code;
      const auto known = cuda.events_.find(event);
      if (known == cuda.events_.end()) {
        return cuda.violate("a dead event was queried", cudaErrorInvalidResourceHandle);
      }
      if (cuda.is_open(known->second->capture)) {
        return cuda.violate("an event of an open capture was queried", cudaErrorCapturedEvent);
      }
      if (known->second->capture != 0) return cudaErrorInvalidValue;  // from a capture that has ended
      return *known->second->reached ? cudaSuccess : cudaErrorNotReady;
    });
  }

  static cudaError_t wait_event(cudaStream_t stream, cudaEvent_t event) {
    return call(pool_call::wait_event, [&](fake_streams& cuda) {
      const auto known = cuda.events_.find(event);
      fake_streams::stream_state* const state = cuda.find(stream);
      if (known == cuda.events_.end() || state == nullptr) {
        return cuda.violate("a dead handle was waited for", cudaErrorInvalidResourceHandle);
      }
      if (const cudaError_t code = refuse_legacy(cuda, stream, "wait_event"); code != cudaSuccess) return code;
      if (const cudaError_t code = cuda.join_capture(*state, *known->second); code != cudaSuccess) return code;
      cuda.enqueue(stream, {.what = fake_operation::kind::wait, .reached = known->second->reached});
      return cudaSuccess;
    });
  }

  static cudaError_t stream_id(cudaStream_t stream, unsigned long long* id) {
    return call(pool_call::stream_id, [&](fake_streams& cuda) {
      fake_streams::stream_state* const state = cuda.find(stream);
      if (state == nullptr) return cudaErrorInvalidResourceHandle;
      if (state->capture != nullptr) {
        state->capture->valid = false;
        return cudaErrorStreamCaptureUnsupported;
      }
      if (const cudaError_t code = refuse_legacy(cuda, stream, "stream_id"); code != cudaSuccess) return code;
      *id = cuda.id_now(stream);
      return cudaSuccess;
    });
  }

  static cudaError_t captured_graph(cudaStream_t stream, cudaGraph_t* graph) {
    return call(pool_call::captured_graph, [&](fake_streams& cuda) {
      const fake_streams::stream_state* const state = cuda.find(stream);
      if (state == nullptr) return cudaErrorInvalidResourceHandle;
      *graph = state->capture == nullptr || !state->capture->valid ? nullptr : state->capture->handle;
      return cudaSuccess;
    });
  }

  static cudaError_t capture_id(cudaStream_t stream, unsigned long long* id) {
    return call(pool_call::capture_id, [&](fake_streams& cuda) {
      const fake_streams::stream_state* const state = cuda.find(stream);
      if (state == nullptr) return cudaErrorInvalidResourceHandle;
      if (is_legacy(stream) && !cuda.captures_.empty()) return cudaErrorStreamCaptureImplicit;
      if (state->capture != nullptr && !state->capture->valid) return cudaErrorStreamCaptureInvalidated;
      *id = state->capture == nullptr ? 0 : state->capture->id;
      return cudaSuccess;
    });
  }

  static cudaError_t retain_in_graph(cudaGraph_t graph, void* object, void (*drop)(void*), cudaUserObject_t* held) {
    return call(pool_call::retain_in_graph, [&](fake_streams& cuda) {
      const auto known = cuda.graphs_.find(graph);
      if (known == cuda.graphs_.end()) return cuda.violate("a dead graph retained", cudaErrorInvalidValue);
      known->second->objects->objects.emplace_back(object, drop);
      *held = static_cast<cudaUserObject_t>(object);
      return cudaSuccess;
    });
  }

  static cudaError_t release_from_graph(cudaGraph_t graph, cudaUserObject_t held) {
    return call(pool_call::release_from_graph, [&](fake_streams& cuda) {
      const auto known = cuda.graphs_.find(graph);
      if (known == cuda.graphs_.end()) return cuda.violate("a dead graph released", cudaErrorInvalidValue);
      auto& objects = known->second->objects->objects;
      const auto place = std::find_if(objects.begin(), objects.end(), [&](const auto& o) { return o.first == held; });
      if (place == objects.end()) return cuda.violate("a graph released what it has not", cudaErrorInvalidValue);
      fake_objects ends;
      ends.objects.push_back(*place);
      objects.erase(place);
      return cudaSuccess;
    });
  }

  static cudaError_t graph_nodes(cudaGraph_t graph, std::size_t* count) {
    return call(pool_call::graph_nodes, [&](fake_streams& cuda) {
      const auto known = cuda.graphs_.find(graph);
      if (known == cuda.graphs_.end()) return cuda.violate("a dead graph was asked", cudaErrorInvalidValue);
      *count = known->second->operations.size();
      return cudaSuccess;
    });
  }

  static cudaError_t exchange_capture_mode(cudaStreamCaptureMode* mode) {
    return call(pool_call::exchange_capture_mode, [&](fake_streams&) {
      std::swap(*mode, fake_streams::thread_mode);
      return cudaSuccess;
    });
  }
};

const pool::pool_calls& fake_streams::calls() {
  using fake = fake_pool_calls;
  static constexpr pool::pool_calls table{fake::allocate,
                                          fake::free,
                                          fake::create_event,
                                          fake::destroy_event,
                                          fake::record_event,
                                          fake::query_event,
                                          fake::wait_event,
                                          fake::stream_id,
                                          fake::captured_graph,
                                          fake::retain_in_graph,
                                          fake::exchange_capture_mode,
                                          fake::capture_id,
                                          fake::graph_nodes,
                                          fake::release_from_graph};
  return table;
}

cudaError_t fake_streams::violate(const char* what, cudaError_t code) {
  violations_.push_back(what);
  return code;
}

/// Every capture here is of the global mode. A call from a thread that is not relaxed is forbidden
/// and breaks it.
cudaError_t fake_streams::refuse_if_captured(const char* what) {
  if (captures_.empty() || thread_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  for (const auto& capture : captures_) capture->valid = false;
  return violate(what, cudaErrorStreamCaptureUnsupported);
}

/// The legacy stream waits for every captured stream here.
cudaError_t fake_streams::refuse_on_legacy_stream(const char* what) {
  if (captures_.empty()) return cudaSuccess;
  for (const auto& capture : captures_) capture->valid = false;
  return violate(what, cudaErrorStreamCaptureImplicit);
}

cudaError_t fake_streams::call_unless_captured(const char* what) {
  const std::lock_guard lock{mutex_};
  return refuse_if_captured(what);
}

cudaError_t fake_streams::call_on_legacy_stream(const char* what) {
  const std::lock_guard lock{mutex_};
  return refuse_on_legacy_stream(what);
}

/// A wait for a captured event brings the stream into that capture.
cudaError_t fake_streams::join_capture(stream_state& stream, const fake_event& event) {
  const unsigned long long own = stream.capture == nullptr ? 0 : stream.capture->id;
  if (own == event.capture) return cudaSuccess;
  if (own != 0) return violate("a wait across the edge of a capture", cudaErrorStreamCaptureIsolation);
  for (const auto& capture : captures_) {
    if (capture->id == event.capture) stream.capture = capture;
  }
  return stream.capture == nullptr ? cudaErrorInvalidValue : cudaSuccess;  // from a capture that has ended
}

bool fake_streams::is_open(unsigned long long capture) const {
  return std::any_of(captures_.begin(), captures_.end(), [&](const auto& open) { return open->id == capture; });
}

std::uint64_t fake_streams::calls_made() const {
  const std::lock_guard lock{mutex_};
  return std::accumulate(made_.begin(), made_.end(), std::uint64_t{});
}

std::uint64_t fake_streams::calls_made(pool_call call) const {
  const std::lock_guard lock{mutex_};
  return made_[static_cast<std::size_t>(call)];
}

std::uint64_t fake_streams::live_allocations() const {
  const std::lock_guard lock{mutex_};
  return allocations_.size();
}

std::uint64_t fake_streams::live_events() const {
  const std::lock_guard lock{mutex_};
  return events_.size();
}

std::uint64_t fake_streams::foreign_ids() const {
  const std::lock_guard lock{mutex_};
  return foreign_ids_;
}

std::vector<std::string> fake_streams::violations() const {
  const std::lock_guard lock{mutex_};
  return violations_;
}

std::vector<std::string> fake_streams::take_violations() {
  const std::lock_guard lock{mutex_};
  return std::exchange(violations_, {});
}

}  // namespace tmap::testing
