// SPDX-License-Identifier: Apache-2.0
#include <tmap/device/patch_source.cuh>

#include <iterator>
#include <string>
#include <vector>

#include "apps/bench/common/table.hpp"
#include "apps/bench/encode/batches.hpp"
#include "apps/bench/encode/floors.cuh"
#include "apps/bench/encode/tables.hpp"
#include "apps/support/progress.hpp"

namespace tmap::apps::bench {
namespace {

struct goal_figures {
  patch_case shape;
  std::uint64_t count;
  ways judged;
  ways trusted;
  ways copied;  // published by copies
  ways empty;
  ways plain_empty;
  ways floor;
  double call;        // on the host
  double empty_call;  // an empty kernel in the same launch configuration
};

template <patch_fields Fields>
goal_figures measure_goal(const timer& clock, const patch_case& shape, const std::vector<map_patch>& patches) {
  using reader = device::patch_array_reader;
  const batch b(shape, patches);
  const reader source(b.source(), Fields);
  const auto judged = [&](cudaStream_t stream) { b.encode(stream); };
  const auto trusted = [&](cudaStream_t stream) { b.encode({.where = {stream}, .choices = {.trusted = true}}); };
  const auto copied = [&](cudaStream_t stream) {
    b.encode({.where = {stream}, .choices = {.published_by = publish::copy_fence}});
  };
  require_good([&](const encode_run& run) { b.encode(run); });
  const twin beside(clock, b.count(), judged);
  const auto empty_with = [&](overlap_with_last overlap) {
    return [&, overlap](cudaStream_t stream) {
      beside.launch(stream, overlap, beside.shared_bytes(), empty_kernel<reader>, b.base(), source, encoder_terms{},
                    b.slots(), b.count(), beside.maps_per_warp());
    };
  };
  const auto empty = empty_with(overlap_with_last::allowed);
  const auto floor = [&](cudaStream_t stream) {
    beside.launch(stream, overlap_with_last::allowed, 0, floor_kernel<bits_of(Fields), reader>, source, b.slots(),
                  b.count(), beside.maps_per_warp());
  };
  return {.shape = shape,
          .count = b.count(),
          .judged = clock.both(judged),
          .trusted = clock.both(trusted),
          .copied = clock.both(copied),
          .empty = clock.both(empty),
          .plain_empty = clock.both(empty_with(overlap_with_last::none)),
          .floor = clock.both(floor),
          .call = median(clock.host_times(judged)),
          .empty_call = median(clock.host_times(empty))};
}

std::vector<goal_figures> measure_goals(const timer& clock) {
  progress bar{"goals", 3 * std::size(sizes)};
  std::vector<goal_figures> all;
  const auto add = [&](const goal_figures& f) {
    all.push_back(f);
    bar.advance(1);
  };
  for (const std::uint64_t count : sizes) {
    const std::vector<map_patch> patches = make_patches(count);
    add(measure_goal<few.fields>(clock, few, patches));
    add(measure_goal<extents.fields>(clock, extents, patches));
    add(measure_goal<everything.fields>(clock, everything, patches));
  }
  return all;
}

void print_times(const char* title, const std::vector<goal_figures>& all, double ways::*way) {
  table t(title, {"patches", "maps", "**tmap**", "tmap, trusted", "tmap, copy_fence", "empty kernel, same launch",
                  "empty kernel, no overlap", "floor", "tmap / empty", "tmap / floor"});
  for (const goal_figures& f : all) {
    t.add({f.shape.name, count_text(f.count), text(f.judged.*way), text(f.trusted.*way), text(f.copied.*way),
           text(f.empty.*way), text(f.plain_empty.*way), text(f.floor.*way), text(f.judged.*way / f.empty.*way),
           text(f.judged.*way / f.floor.*way)});
  }
  t.print();
}

void print_calls(const std::vector<goal_figures>& all) {
  table t("Microseconds of the call on the host, which enqueues.",
          {"patches", "maps", "encode_batch", "launch of the empty kernel"});
  for (const goal_figures& f : all) t.add({f.shape.name, count_text(f.count), text(f.call), text(f.empty_call)});
  t.print();
}

enum class peer { empty, floor };

/// States the highest cost that is allowed for a batch.
struct goal {
  patch_case shape;
  std::uint64_t count;
  peer beside;
  double most;
};

const goal goals[] = {
    {few, 1, peer::empty, 1.10},
    {few, 32, peer::empty, 1.10},
    {few, 256, peer::empty, 1.10},
    {few, 4096, peer::empty, 1.25},
    {few, 65536, peer::floor, 1.25},
    {few, 1048576, peer::floor, 1.10},
    {everything, 1048576, peer::floor, 1.50},
};

const goal_figures& figures_of(const goal& g, const std::vector<goal_figures>& all) {
  for (const goal_figures& f : all) {
    if (f.shape.fields == g.shape.fields && f.count == g.count) return f;
  }
  require(false);
  return all.front();
}

void print_verdicts(const std::vector<goal_figures>& all) {
  table t("Goals.", {"patches", "maps", "goal", "stream", "graph"});
  for (const goal& g : goals) {
    const goal_figures& f = figures_of(g, all);
    const ways& beside = g.beside == peer::empty ? f.empty : f.floor;
    const auto verdict = [&](double ways::*way) {
      const double ratio = f.judged.*way / beside.*way;
      return text(ratio) + (ratio <= g.most ? ", met" : ", **not met**");
    };
    const std::string unit = g.beside == peer::empty ? " x empty" : " x floor";
    t.add({f.shape.name, count_text(f.count), "at most " + text(g.most) + unit, verdict(&ways::stream),
           verdict(&ways::graph)});
  }
  t.print();
}

}  // namespace

void print_goals(const timer& clock) {
  const std::vector<goal_figures> all = measure_goals(clock);
  print_times("Microseconds for one batch, on an idle stream.", all, &ways::stream);
  print_times("Microseconds for one batch, as one of a hundred nodes of a graph.", all, &ways::graph);
  print_calls(all);
  print_verdicts(all);
}

}  // namespace tmap::apps::bench
