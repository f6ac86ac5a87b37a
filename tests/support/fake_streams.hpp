// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/pool/pool_calls.hpp"

// CUDA's streams, events and graphs on the CPU, in place of the real `pool_calls`. Each stream is a
// queue of operations. A test decides when and how far it runs, so that it can play every order of
// completion. The device writes and reads slots. A read that finds another id than the one that its
// batch wrote counts as foreign. The process has one, like the real ones; make a `fake_streams` at
// the start of each test. Thread-safe. A test that uses it is built with fake_streams.cpp,
// fake_pool_calls.cpp and failing_new.cpp.

namespace tmap::testing {

enum class pool_call : std::uint32_t {
  allocate,
  free,
  create_event,
  destroy_event,
  record_event,
  query_event,
  wait_event,
  stream_id,
  captured_graph,
  retain_in_graph,
  exchange_capture_mode,
  capture_id,
  graph_nodes,
  release_from_graph
};

using fake_stream_id = unsigned long long;
/// Holds the objects that a graph retained. They drop with the last of graph, executables and
/// replays.
struct fake_objects {
  std::vector<std::pair<void*, void (*)(void*)>> objects;
  ~fake_objects();
};

struct fake_operation {
  enum class kind { write, read, record, wait, keep, work };
  kind what;
  unsigned char* slots{};
  std::uint64_t count{};
  std::uint64_t id{};
  std::shared_ptr<bool> reached{};           ///< a record sets it; a wait waits for it
  std::shared_ptr<fake_objects> kept_for{};  ///< keep: the graph whose replay ends here
};

struct fake_event {
  std::shared_ptr<bool> reached = std::make_shared<bool>(true);  ///< set when its last record completes
  unsigned long long capture{};  ///< the capture of the last record; 0 if it was outside of any
};

struct fake_graph {
  std::vector<fake_operation> operations;
  std::shared_ptr<fake_objects> objects = std::make_shared<fake_objects>();
};

struct fake_capture {
  unsigned long long id;
  cudaGraph_t handle;
  std::shared_ptr<fake_graph> graph;
  bool valid{true};
};

class fake_streams {
 public:
  fake_streams();
  ~fake_streams();
  fake_streams(const fake_streams&) = delete;
  fake_streams& operator=(const fake_streams&) = delete;

  static const pool::pool_calls& calls();

  // Null is the legacy stream, which no stream waits for here. cudaStreamPerThread is a different
  // stream in each thread.

  /// Uses the handle of a closed stream again, with another id. Work that was enqueued on a closed
  /// stream still runs.
  cudaStream_t open_stream();
  void close_stream(cudaStream_t stream);

  // Stand for kernels that write or read `count` slots of 128 bytes; each slot holds one id.
  void write(cudaStream_t stream, void* slots, std::uint64_t count, std::uint64_t id);
  void read(cudaStream_t stream, const void* slots, std::uint64_t count, std::uint64_t id);
  /// Notes work that is already done: a node of the graph if the stream is captured, otherwise
  /// nothing.
  void note_work(cudaStream_t stream);

  /// Returns the streams whose next operation can run now, and that operation.
  std::vector<fake_stream_id> ready() const;
  void step(fake_stream_id stream);
  void run_all();
  fake_stream_id id_of(cudaStream_t stream);

  // Graphs. A replay runs the captured operations in the order of their capture. The handle of a
  // destroyed graph is used again. Objects drop once graph, executables and replays are gone.
  void begin_capture(cudaStream_t stream);
  void invalidate_captures();
  cudaGraph_t end_capture(cudaStream_t stream);  ///< null when the capture was invalidated
  cudaGraphExec_t instantiate(cudaGraph_t graph);
  void launch(cudaGraphExec_t exec, cudaStream_t stream);
  void destroy_graph(cudaGraph_t graph);
  void destroy_exec(cudaGraphExec_t exec);

  /// From now on, the n-th call (1 is the next, 0 is none) returns `code` and does nothing.
  void fail_call(std::uint64_t n, cudaError_t code);
  void fail_call(pool_call call, std::uint64_t n, cudaError_t code);
  /// Makes every call return `code` from now on.
  void break_context(cudaError_t code);

  /// Returns the last call that failed by plan.
  std::optional<pool_call> failed_call() const;

  std::uint64_t calls_made() const;
  std::uint64_t calls_made(pool_call call) const;
  std::uint64_t live_allocations() const;
  std::uint64_t live_events() const;
  std::uint64_t foreign_ids() const;
  /// Returns the calls that CUDA would have refused or left undefined: calls inside a drop, of dead
  /// handles, unsafe ones while a stream is captured, and dependencies that cross the edge of a
  /// capture.
  std::vector<std::string> violations() const;
  std::vector<std::string> take_violations();  ///< also clears them, for a test that has provoked them

  // For calls of other tables. If captures exist, each call breaks them all and is a violation.
  cudaError_t call_unless_captured(const char* what);  ///< on a thread that is not relaxed
  cudaError_t call_on_legacy_stream(const char* what);

 private:
  friend struct fake_pool_calls;
  friend struct fake_objects;
  struct stream_state {
    std::deque<fake_operation> queue;
    std::shared_ptr<fake_capture> capture;
    bool open{true};
  };
  struct failure_plan {
    std::uint64_t countdown{};
    cudaError_t code{};
  };
  static constexpr std::size_t call_count = 14;

  cudaError_t enter(pool_call call);
  cudaError_t violate(const char* what, cudaError_t code);
  cudaError_t refuse_if_captured(const char* what);
  cudaError_t refuse_on_legacy_stream(const char* what);
  bool is_open(unsigned long long capture) const;
  cudaError_t join_capture(stream_state& stream, const fake_event& event);
  stream_state* find(cudaStream_t stream);
  fake_stream_id id_now(cudaStream_t stream);
  void enqueue(cudaStream_t stream, fake_operation operation);
  bool is_ready(const stream_state& stream) const;
  void run(stream_state& stream);

  static fake_streams* current;
  static thread_local bool inside_drop;
  static thread_local cudaStreamCaptureMode thread_mode;

  mutable std::mutex mutex_;
  std::map<fake_stream_id, stream_state> streams_;
  std::map<cudaStream_t, fake_stream_id> handles_;
  std::vector<cudaStream_t> closed_handles_;
  std::map<std::thread::id, fake_stream_id> per_thread_;
  fake_stream_id last_id_{};
  std::map<cudaEvent_t, std::unique_ptr<fake_event>> events_;
  std::map<cudaGraph_t, std::shared_ptr<fake_graph>> graphs_;
  std::map<cudaGraphExec_t, std::shared_ptr<fake_graph>> execs_;
  std::set<std::shared_ptr<fake_capture>> captures_;
  std::set<void*> allocations_;
  std::array<std::uint64_t, call_count> made_{};
  std::array<failure_plan, call_count + 1> plans_{};  ///< one per call, and one for all calls
  std::optional<pool_call> failed_call_;
  cudaError_t broken_{cudaSuccess};
  std::uint64_t foreign_ids_{};
  std::uint64_t last_handle_{};
  std::vector<std::string> violations_;
};

}  // namespace tmap::testing
