// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench/common/table.hpp"
#include "apps/bench/encode/batches.hpp"
#include "apps/bench/encode/tables.hpp"
#include "apps/support/progress.hpp"

namespace tmap::apps::bench {
namespace {

constexpr std::uint64_t judged_sizes[] = {1, 256, 4096, 65536, 1048576};
constexpr std::uint64_t flawed_every = 100;  // one in this many maps is bad, and one is empty
constexpr std::uint32_t window_count = 8;

std::vector<map_patch> with_flaws(std::vector<map_patch> patches) {
  for (std::uint64_t i = 0; i < patches.size(); ++i) {
    if (i % flawed_every == 0) patches[i].global_address += 1;
    if (i % flawed_every == flawed_every / 2) patches[i].global_dim[0] = 0;
  }
  return patches;
}

std::vector<map_patch> without_elements(std::vector<map_patch> patches) {
  for (map_patch& patch : patches) patch.global_dim[0] = 0;
  return patches;
}

/// Returns windows of which only the last contains the tensors.
std::vector<address_window> make_windows() {
  std::vector<address_window> windows;
  for (std::uint64_t i = 0; i + 1 < window_count; ++i) windows.push_back({(i + 1) << 50, ((i + 1) << 50) + 4096});
  windows.push_back({first_address, first_address << 20});
  return windows;
}

/// Holds one size of one case with every variant of its encoding.
struct setup {
  setup(const patch_case& shape, const std::vector<map_patch>& patches)
      : good{shape, patches},
        flawed{shape, with_flaws(patches)},
        empty{shape, without_elements(patches)},
        statuses{patches.size()},
        header{1},
        windows{make_windows()} {}

  encode_run with_windows(std::uint32_t count, cudaStream_t stream) const {
    return {.where = {stream}, .windows = {windows.get() + window_count - count, count}};
  }

  batch good;
  batch flawed;
  batch empty;
  device_array<map_status> statuses;
  device_array<batch_header> header;
  device_array<address_window> windows;
};

using variant = std::pair<std::string, std::function<void(const setup&, cudaStream_t)>>;

const std::vector<variant> variants = {
    {"judged", [](const setup& s, cudaStream_t stream) { s.good.encode(stream); }},
    {"trusted",
     [](const setup& s, cudaStream_t stream) { s.good.encode({.where = {stream}, .choices = {.trusted = true}}); }},
    {"with statuses",
     [](const setup& s, cudaStream_t stream) { s.good.encode({.where = {stream}, .statuses = s.statuses.get()}); }},
    {"with statuses and header",
     [](const setup& s, cudaStream_t stream) {
       s.good.encode({.where = {stream}, .statuses = s.statuses.get(), .header = s.header.get()});
     }},
    {"1 window", [](const setup& s, cudaStream_t stream) { s.good.encode(s.with_windows(1, stream)); }},
    {"8 windows", [](const setup& s, cudaStream_t stream) { s.good.encode(s.with_windows(window_count, stream)); }},
    {"1 % bad, 1 % empty", [](const setup& s, cudaStream_t stream) { s.flawed.encode(stream); }},
    {"all empty", [](const setup& s, cudaStream_t stream) { s.empty.encode(stream); }},
};

/// Checks that the batches have the flaws that the table states.
void check_flaws(const setup& s) {
  const auto found_in = [](const batch& b, encode_run asked) {
    return header_of([&](const encode_run& run) {
      asked.header = run.header;
      b.encode(asked);
    });
  };
  const encode_run bare{cudaStream_t{}};
  const std::uint64_t count = s.good.count();
  const batch_header windowed = found_in(s.good, s.with_windows(window_count, cudaStream_t{}));
  require(windowed.bad_count == 0 && windowed.empty_count == 0);
  const batch_header flawed = found_in(s.flawed, bare);
  require(flawed.bad_count == (count + flawed_every - 1) / flawed_every);
  require(flawed.empty_count == (count + flawed_every / 2 - 1) / flawed_every);
  require(found_in(s.empty, bare).empty_count == count);
}

struct figures {
  patch_case shape;
  std::uint64_t count;
  std::vector<ways> times;  // per variant
};

figures measure(const timer& clock, const patch_case& shape, const std::vector<map_patch>& patches) {
  const setup s(shape, patches);
  check_flaws(s);
  figures f{shape, patches.size(), {}};
  for (const variant& v : variants) f.times.push_back(clock.both([&](cudaStream_t stream) { v.second(s, stream); }));
  return f;
}

std::vector<figures> measure_all(const timer& clock) {
  progress bar{"judging", 2 * std::size(judged_sizes)};
  std::vector<figures> all;
  for (const std::uint64_t count : judged_sizes) {
    const std::vector<map_patch> patches = make_patches(count);
    for (const patch_case& shape : {few, everything}) {
      all.push_back(measure(clock, shape, patches));
      bar.advance(1);
    }
  }
  return all;
}

void print_way(const char* title, const std::vector<figures>& all, double ways::*way) {
  std::vector<std::string> columns{"patches", "maps"};
  for (const variant& v : variants) columns.push_back(v.first);
  table t(title, columns);
  for (const figures& f : all) {
    std::vector<std::string> cells{f.shape.name, count_text(f.count)};
    for (const ways& time : f.times) cells.push_back(text(time.*way));
    t.add(cells);
  }
  t.print();
}

}  // namespace

void print_judging(const timer& clock) {
  const std::vector<figures> all = measure_all(clock);
  print_way(
      "What judging costs: microseconds on an idle stream. With a header there is a second launch, which resets it. "
      "The only map of a batch of one is a bad one where 1 % are.",
      all, &ways::stream);
  print_way("The same as one of a hundred in a graph.", all, &ways::graph);
}

}  // namespace tmap::apps::bench
