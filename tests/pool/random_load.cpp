// SPDX-License-Identifier: Apache-2.0
#include "pool/random_load.hpp"

#include <algorithm>
#include <new>
#include <random>
#include <utility>
#include <vector>

#include "pool/pool_fixture.hpp"
#include "support/failing_new.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint64_t capacity = 64;
constexpr std::uint64_t largest_batch = 12;
constexpr std::size_t stream_count = 5;

struct live_batch {
  fake_batch batch;
  std::vector<std::size_t> streams;  ///< the first is the stream of the encode
  bool is_written{true};             ///< false for a graph's batch until the first replay
};

struct live_graph {
  cudaGraphExec_t exec;
  std::size_t stream;     ///< the stream that replays it, after the batches that it reads
  std::uint64_t written;  ///< the id of the batch that it encodes; 0 if there is none
};

class random_load {
 public:
  random_load(const pool::pool_calls& calls, std::uint64_t seed, bool memory_runs_out)
      : random_(seed), memory_runs_out_(memory_runs_out) {
    maps_ = *pool::map_pool::create({.capacity = capacity}, calls);
    for (cudaStream_t& stream : streams_) stream = cuda_.open_stream();
  }

  load_report run(std::uint64_t takes) {
    while (takes_ < takes) act();
    finish();
    report_.foreign_ids = cuda_.foreign_ids();
    report_.recycled_slots = lent_ - std::min(lent_, capacity);
    if (!cuda_.violations().empty()) note(cuda_.violations().front());
    return report_;
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }

  /// Makes a call of the pool and returns its result. At times an allocation in the call fails.
  template <class Call>
  auto answer_of(const Call& call) -> decltype(call()) {
    if (memory_runs_out_ && below(4) == 0) fail_allocation(1 + below(8), below(2) == 0);
    try {
      auto answer = call();
      fail_allocation(0);
      return answer;
    } catch (const std::bad_alloc&) {
      fail_allocation(0);
      ++report_.without_memory;
      return failure{error{.code = status::out_of_memory}};
    }
  }
  void note_unless(status expected, const error& e) {
    if (e.code != expected && e.code != status::out_of_memory) note(to_string(e));
  }

  void note(const std::string& problem) {
    if (report_.problem.empty()) report_.problem = problem;
  }

  void act() {
    switch (below(20)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5: encode(below(stream_count)); return;
      case 6:
      case 7: return spread();
      case 8:
      case 9:
      case 10:
      case 11: return release(below(batches_.size() + 1));
      case 12: return capture(below(stream_count));
      case 13: return launch();
      case 14: return destroy_graph();
      case 15: return reopen(below(stream_count));
      default: return run_device(below(12));
    }
  }

  /// Returns the id of the batch; 0 if no slots were free.
  std::uint64_t encode(std::size_t stream) {
    ++takes_;
    const std::uint64_t count = 1 + below(largest_batch);
    auto taken = answer_of([&] { return maps_->take(count, streams_[stream]); });
    if (!taken) {
      ++report_.refused_takes;
      note_unless(status::pool_exhausted, taken.error());
      return 0;
    }
    live_batch made{{std::move(*taken), next_batch_id()}, {stream}};
    lent_ += made.batch.count();
    cuda_.write(streams_[stream], made.batch.slots(), made.batch.count(), made.batch.id);
    read(made.batch, stream);
    batches_.push_back(std::move(made));
    return batches_.back().batch.id;
  }

  void read(const fake_batch& batch, std::size_t stream) {
    cuda_.read(streams_[stream], batch.slots(), batch.count(), batch.id);
  }

  bool use_on(live_batch& used, std::size_t stream) {
    const auto done =
        answer_of([&] { return maps_->use_on(used.batch.lease, streams_[stream], streams_[used.streams[0]]); });
    if (!done) note_unless(status::out_of_memory, done.error());
    if (done) used.streams.push_back(stream);
    return done.has_value();
  }

  void spread() {
    if (batches_.empty()) return;
    live_batch& used = batches_[below(batches_.size())];
    const std::size_t stream = below(stream_count);
    if (used.is_written && use_on(used, stream)) read(used.batch, stream);
  }

  void release(std::size_t index) {
    if (index >= batches_.size()) return;
    std::swap(batches_[index], batches_.back());
    const auto released = answer_of([&] { return maps_->release(std::move(batches_.back().batch.lease)); });
    if (!released) note(to_string(released.error()));
    batches_.pop_back();
    const slot_counts counts = maps_->counts();
    if (sum_of(counts) != counts.capacity) note("the counts do not sum up");
  }

  /// Captures a batch of the graph's own, one from before, and releases of either.
  void capture(std::size_t stream) {
    if (graphs_.size() >= 3) return;
    cuda_.begin_capture(streams_[stream]);
    for (live_batch& used : batches_) {
      if (used.streams[0] != stream || !used.is_written || below(3) != 0 || !use_on(used, stream)) continue;
      read(used.batch, stream);
    }
    const std::uint64_t written = below(2) == 0 ? encode(stream) : 0;
    if (written != 0) batches_.back().is_written = false;
    for (std::size_t index = batches_.size(); index-- > 0;) {
      if (below(4) != 0) continue;
      ++report_.released_in_captures;
      release(index);
    }
    const cudaGraph_t graph = cuda_.end_capture(streams_[stream]);
    if (graph == nullptr) return note("a capture broke");
    graphs_.push_back({cuda_.instantiate(graph), stream, written});
    cuda_.destroy_graph(graph);
  }

  void launch() {
    if (graphs_.empty()) return;
    const live_graph& graph = graphs_[below(graphs_.size())];
    cuda_.launch(graph.exec, streams_[graph.stream]);
    for (live_batch& used : batches_) used.is_written |= used.batch.id == graph.written;
    ++report_.replays;
  }

  void destroy_graph() {
    if (graphs_.empty()) return;
    std::swap(graphs_[below(graphs_.size())], graphs_.back());
    cuda_.destroy_exec(graphs_.back().exec);
    graphs_.pop_back();
  }

  /// Closes a stream that is not in use and opens another one at the same handle.
  void reopen(std::size_t stream) {
    const bool in_use = std::any_of(batches_.begin(), batches_.end(), [&](const live_batch& used) {
      return std::find(used.streams.begin(), used.streams.end(), stream) != used.streams.end();
    });
    const bool replays =
        std::any_of(graphs_.begin(), graphs_.end(), [&](const live_graph& graph) { return graph.stream == stream; });
    if (in_use || replays) return;
    touch((stream + 1) % stream_count);
    cuda_.close_stream(streams_[stream]);
    streams_[stream] = cuda_.open_stream();
  }

  /// Lets the pool mark what it could not mark during a capture.
  void touch(std::size_t stream) {
    if (auto taken = maps_->take(1, streams_[stream])) static_cast<void>(maps_->release(std::move(*taken)));
  }

  void run_device(std::size_t steps) {
    for (std::size_t step = 0; step < steps; ++step) {
      const std::vector<fake_stream_id> ready = cuda_.ready();
      if (ready.empty()) return;
      cuda_.step(ready[below(ready.size())]);
    }
  }

  void finish() {
    while (!batches_.empty()) release(0);
    while (!graphs_.empty()) destroy_graph();
    cuda_.run_all();
    touch(0);
    cuda_.run_all();
    if (maps_->counts().free != capacity) note("slots are missing");
    maps_.reset();
    if (cuda_.live_events() + cuda_.live_allocations() != 0) note("events or memory are left");
  }

  fake_streams cuda_;
  std::mt19937_64 random_;
  const bool memory_runs_out_;
  std::shared_ptr<pool::map_pool> maps_;
  cudaStream_t streams_[stream_count]{};
  std::vector<live_batch> batches_;
  std::vector<live_graph> graphs_;
  std::uint64_t takes_{};
  std::uint64_t lent_{};
  load_report report_;
};

}  // namespace

load_report run_random_load(const pool::pool_calls& calls, std::uint64_t seed, std::uint64_t takes,
                            bool memory_runs_out) {
  return random_load{calls, seed, memory_runs_out}.run(takes);
}

}  // namespace tmap::testing
