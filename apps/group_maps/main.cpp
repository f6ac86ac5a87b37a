// SPDX-License-Identifier: Apache-2.0
// Three ways in which the blocks of a kernel that walks tiles of many groups come by each group's tensor map: checked,
// timed, and what a change of group costs (standard output, Markdown).
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "apps/bench/device.hpp"
#include "apps/bench/timing.hpp"
#include "apps/group_maps/ways.hpp"
#include "apps/group_maps/workload.hpp"

namespace {

using namespace group_maps;

/// Columns of all groups, and blocks; 0: one on each multiprocessor.
struct table {
  std::uint32_t columns;
  std::uint32_t blocks;
};
/// Tiles of 128 KiB; of 16 KiB, the smallest; these in so few blocks that all data stays in L2.
constexpr table usual_tables[] = {{512, 0}, {64, 0}, {64, 16}};
constexpr std::uint32_t tiles_a_block = 64;
constexpr std::uint32_t group_sizes[] = {1, 2, 4, 16, 64};  // in tiles

struct settings {
  table only{};
  int seconds{60};
};

/// A kernel that hangs ends with the process.
void end_after(int seconds) {
  std::thread([seconds] {
    std::this_thread::sleep_for(std::chrono::seconds{seconds});
    std::fprintf(stderr, "group_maps: not done after %d seconds, given up\n", seconds);
    std::_Exit(2);
  }).detach();
}

class bench {
 public:
  /// Prints a table.
  void run(const table& of) {
    const std::uint32_t blocks = of.blocks == 0 ? tmap::bench::multiprocessors() : of.blocks;
    const std::uint32_t tiles = blocks * tiles_a_block;
    std::printf("\n%u columns: %u tiles of %u KiB, walked by %u blocks. Microseconds.\n\n", of.columns, tiles,
                of.columns / box_columns * box_bytes / 1024, blocks);
    std::printf(
        "| tiles a group | groups a block | one static map | its foreign rows | maps made ahead | and their launch | "
        "changed here | a change, ns: made ahead | and the launch | changed here |\n"
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
      const std::size_t wrong = count_wrong(tensor.sums(), expected_sums(tensor.groups(), way));
      if (wrong != 0) std::printf("way %d: %zu wrong sums\n", static_cast<int>(way), wrong);
      wrong_ += wrong;
    }
  }

  double microseconds(const grouped_tensor& tensor, map_way way, bool makes_maps = false) const {
    constexpr int chain = 20;
    return time_.graph_microseconds(
        [&](cudaStream_t stream) {
          if (makes_maps) tensor.make_maps(stream);
          tensor.walk(way, stream);
        },
        chain);
  }

  void print_line(const grouped_tensor& tensor, std::uint32_t size) const {
    const double fixed = microseconds(tensor, map_way::one_static_map);
    const std::uint64_t foreign = foreign_rows(tensor.sums(), tensor.groups().front().columns);
    const double with_launch = microseconds(tensor, map_way::made_ahead, true);
    const double ahead = microseconds(tensor, map_way::made_ahead);
    const double changed = microseconds(tensor, map_way::changed_here);
    const std::uint32_t changes = tensor.most_groups_of_a_block();
    const auto of_a_change = [&](double time) { return (time - fixed) * 1000 / changes; };
    std::printf("| %u | %u | %.2f | %llu | %.2f | %.2f | %.2f | %.0f | %.0f | %.0f |\n", size, changes, fixed,
                static_cast<unsigned long long>(foreign), ahead, with_launch, changed, of_a_change(ahead),
                of_a_change(with_launch), of_a_change(changed));
    std::fflush(stdout);
  }

  tmap::bench::timer time_;
  std::size_t wrong_{};
};

int run(const settings& with) {
  if (!tmap::bench::has_hopper()) {
    std::printf("group_maps: no Hopper GPU\n");
    return 0;
  }
  end_after(with.seconds);
  tmap::bench::print_device();
  tmap::bench::wake_device();
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
  CLI::App app{"Three ways to have the tensor map of each group, beside each other"};
  const CLI::Validator whole_boxes(
      [](const std::string& text) { return std::stoul(text) % box_columns == 0 ? "" : "must be a multiple of 64"; },
      "");
  CLI::Option* const columns = app.add_option("--columns", with.only.columns, "One table: with so many columns")
                                   ->check(CLI::Range(box_columns, most_columns))
                                   ->check(whole_boxes);
  app.add_option("--blocks", with.only.blocks, "and so many blocks; else one on each multiprocessor")
      ->check(CLI::Range(1, 1024))
      ->needs(columns);
  app.add_option("--seconds", with.seconds, "Give up after this long")->capture_default_str();
  CLI11_PARSE(app, count, arguments);
  return run(with);
}
