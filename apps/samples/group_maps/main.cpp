// SPDX-License-Identifier: Apache-2.0
// Compares three ways in which blocks that walk tiles of many groups get each group's tensor map.
// Checks and times each way and prints the cost of a change of group as Markdown.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "apps/samples/group_maps/ways.hpp"
#include "apps/samples/group_maps/workload.hpp"
#include "apps/support/command_line.hpp"
#include "apps/support/device.hpp"
#include "apps/support/timing.hpp"
#include "apps/support/watchdog.hpp"

namespace {

using namespace group_maps;

/// States the columns of all groups and the number of blocks; 0 means one per multiprocessor.
struct table {
  std::uint32_t columns;
  std::uint32_t blocks;
};
/// The tiles are 128 KiB, then 16 KiB, the smallest. The third table uses so few blocks that all
/// data stays in L2.
constexpr table usual_tables[] = {{512, 0}, {64, 0}, {64, 16}};
constexpr std::uint32_t tiles_a_block = 64;
constexpr std::uint32_t group_sizes[] = {1, 2, 4, 16, 64};  // in tiles

struct settings {
  table only{};
  int seconds{60};
};

/// Names what is timed: each way, and the encoder's launch together with the walk that uses its
/// maps.
enum timed : std::size_t { one_static_map, made_ahead, made_and_walked, changed_here, timed_count };
using times = std::array<std::vector<double>, timed_count>;  // microseconds, one per round

/// Returns the nanoseconds that each of `changes` adds to a walk with the static map, as "median
/// (least to most)".
std::string cost_of_change(const times& of, timed what, std::uint32_t changes) {
  std::vector<double> costs;
  for (std::size_t round = 0; round < of[what].size(); ++round) {
    costs.push_back((of[what][round] - of[one_static_map][round]) * 1000 / changes);
  }
  const auto [least, most] = std::minmax_element(costs.begin(), costs.end());
  char text[64];
  std::snprintf(text, sizeof(text), "%.0f (%.0f to %.0f)", tmap::apps::median(costs), *least, *most);
  return text;
}

class bench {
 public:
  /// Prints a table.
  void run(const table& of) {
    const std::uint32_t blocks = of.blocks == 0 ? tmap::apps::multiprocessors() : of.blocks;
    const std::uint32_t tiles = blocks * tiles_a_block;
    std::printf("\n%u columns: %u tiles of %u KiB, walked by %u blocks. Microseconds; a change of group in ns.\n\n",
                of.columns, tiles, of.columns / box_columns * box_bytes / 1024, blocks);
    std::printf(
        "| tiles a group | groups a block | one static map | its foreign rows | maps made ahead | and their launch | "
        "changed here | a change: made ahead | and the launch | changed here |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (const std::uint32_t size : group_sizes) {
      const grouped_tensor tensor(nearly_full_groups(tiles, size), of.columns, blocks);
      check_all(tensor);
      print_line(tensor, size);
      check_all(tensor);
    }
  }

  bool is_right() const { return wrong_ == 0; }

 private:
  void check_all(const grouped_tensor& tensor) {
    for (const map_way way : all_ways) {
      tensor.poison();
      if (way == map_way::made_ahead) tensor.make_maps(time_.stream());
      tensor.walk(way, time_.stream());
      const std::vector<part_sum> sums = tensor.sums();
      const std::size_t wrong = count_wrong(sums, expected_sums(tensor.groups(), way));
      if (wrong != 0) std::printf("way %d: %zu wrong sums\n", static_cast<int>(way), wrong);
      wrong_ += wrong;
      if (way == map_way::one_static_map) foreign_ = foreign_rows(sums, tensor.groups().front().columns);
    }
  }

  template <class Enqueue>
  double microseconds(const Enqueue& enqueue) const {
    constexpr int chain = 20;
    constexpr int repeats = 5;
    return time_.graph_microseconds(enqueue, chain, repeats);
  }

  /// Times all ways in turn, several times.
  times measured(const grouped_tensor& tensor) const {
    constexpr int rounds = 7;
    times found;
    tensor.make_maps(time_.stream());
    const auto walk = [&](map_way way) { return [&tensor, way](cudaStream_t s) { tensor.walk(way, s); }; };
    for (int round = 0; round < rounds; ++round) {
      found[one_static_map].push_back(microseconds(walk(map_way::one_static_map)));
      found[made_ahead].push_back(microseconds(walk(map_way::made_ahead)));
      found[made_and_walked].push_back(microseconds([&](cudaStream_t s) {
        tensor.make_maps(s);
        tensor.walk(map_way::made_ahead, s);
      }));
      found[changed_here].push_back(microseconds(walk(map_way::changed_here)));
    }
    return found;
  }

  void print_line(const grouped_tensor& tensor, std::uint32_t size) const {
    const times found = measured(tensor);
    const std::uint32_t changes = tensor.most_groups_of_a_block();
    const auto time = [&](timed what) { return tmap::apps::median(found[what]); };
    const auto cost = [&](timed what) { return cost_of_change(found, what, changes); };
    std::printf("| %u | %u | %.2f | %llu | %.2f | %.2f | %.2f | %s | %s | %s |\n", size, changes, time(one_static_map),
                static_cast<unsigned long long>(foreign_), time(made_ahead), time(made_and_walked), time(changed_here),
                cost(made_ahead).c_str(), cost(made_and_walked).c_str(), cost(changed_here).c_str());
    std::fflush(stdout);
  }

  tmap::apps::timer time_;
  std::size_t wrong_{};
  std::uint64_t foreign_{};
};

int run(const settings& with) {
  if (!tmap::apps::has_hopper()) return tmap::apps::lack_of_hopper("group_maps");
  tmap::apps::end_after(with.seconds, "group_maps");
  tmap::apps::print_device();
  tmap::apps::wake_device();
  bench all;
  if (with.only.columns != 0) {
    all.run(with.only);
  } else {
    for (const table& each : usual_tables) all.run(each);
  }
  return all.is_right() ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  settings with;
  CLI::App app{"Compares three ways to get the tensor map of each group", "group_maps"};
  const CLI::Validator whole_boxes(
      [](const std::string& text) { return std::stoul(text) % box_columns == 0 ? "" : "must be a multiple of 64"; },
      "");
  CLI::Option* const columns = app.add_option("--columns", with.only.columns, "Print one table with this many columns")
                                   ->check(CLI::Range(box_columns, most_columns))
                                   ->check(whole_boxes);
  app.add_option("--blocks", with.only.blocks, "and this many blocks; default: one per multiprocessor")
      ->check(CLI::Range(1, 1024))
      ->needs(columns);
  app.add_option("--seconds", with.seconds, "Stop after this many seconds")->capture_default_str();
  if (const auto ended = tmap::apps::parse_command_line(app, count, arguments)) return *ended;
  return run(with);
}
