// SPDX-License-Identifier: Apache-2.0
// The batch of `make demo`, its run in the simulator, and the report.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tmap/route.hpp>
#include <tmap/validate.hpp>

#include <bit>
#include <fstream>
#include <sstream>

#include "apps/demo/report.hpp"
#include "apps/drawing/canvas.hpp"
#include "apps/markup.hpp"
#include "apps/run_tool.hpp"
#include "apps/sample_maps.hpp"

namespace tmap::demo {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace tmap::testing;

struct whole_run {
  demo_batch batch = make_batch();
  engine_run run = *run_in_simulator(batch);
  check_result checked = check_tiles(batch, run);
};

const whole_run& shared_run() {
  static const whole_run run;
  return run;
}

TEST(demo, has_tensors_for_every_fate_and_half_take_maps) {
  const auto& [batch, run, checked] = shared_run();
  const batch_counts counts = count(batch, run);
  EXPECT_EQ(counts.tensors, batch.tensors.size());
  EXPECT_EQ(counts.mapped + counts.otherwise + counts.empty + counts.refused, counts.tensors);
  EXPECT_GE(2 * counts.mapped, counts.tensors);
  EXPECT_GE(counts.refused, 5u);
  EXPECT_GE(counts.empty, 1u);
}

TEST(demo, breaks_one_rule_in_each_tensor_that_is_wrong_on_purpose) {
  rule_set all;
  for (const demo_tensor& tensor : shared_run().batch.tensors) {
    const tensor_spec spec = tensor.at(simulated_base);
    const bool is_wrong = !is_empty(spec) && !broken_rules(spec).empty();
    EXPECT_EQ(is_wrong, tensor.is_wrong) << tensor.name;
    EXPECT_EQ(std::popcount(broken_rules(spec).bits), is_wrong || is_empty(spec) ? 1 : 0) << tensor.name;
    all.bits |= broken_rules(spec).bits;
  }
  for (const rule id : {rule::t05_address_null, rule::t06_address_multiple_of_16, rule::t13_stride_multiple_of_16,
                        rule::t17_box_dim_range}) {
    EXPECT_TRUE(all.contains(id)) << info(id).name;
  }
}

TEST(demo, moves_every_box_of_every_legal_tensor_once) {
  const demo_batch& batch = shared_run().batch;
  std::uint64_t end = 0;
  std::vector<std::uint64_t> tiles(batch.tensors.size());
  for (const demo_tile& tile : batch.tiles) {
    EXPECT_EQ(tile.offset, end);
    end += tile.bytes;
    ++tiles[tile.tensor];
  }
  EXPECT_EQ(end, batch.tile_bytes);
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const tensor_spec spec = batch.tensors[i].at(simulated_base);
    std::uint64_t boxes = is_empty(spec) || !broken_rules(spec).empty() ? 0 : 1;
    for (std::uint32_t axis = 0; axis < spec.rank; ++axis) boxes *= drawing::box_grid(spec).at(axis);
    EXPECT_EQ(tiles[i], boxes) << batch.tensors[i].name;
  }
}

TEST(demo, checks_tiles_so_that_one_wrong_byte_shows) {
  const auto& [batch, run, checked] = shared_run();
  EXPECT_EQ(checked.wrong, 0u);
  EXPECT_GT(checked.filled, 0u);
  EXPECT_GT(checked.elements, checked.filled);
  engine_run spoiled = run;
  const std::string before = checksum_of(spoiled.tiles);
  spoiled.tiles[5] ^= std::byte{1};
  EXPECT_EQ(check_tiles(batch, spoiled).wrong, 1u);
  EXPECT_NE(checksum_of(spoiled.tiles), before);
}

TEST(demo, report_has_a_card_for_each_tensor_and_a_rule_for_each_refused_one) {
  const auto& [batch, run, checked] = shared_run();
  const std::string page = report_of(batch, run, checked);
  const auto all = elements_of(page);
  const auto cards = of_class(all, "card");
  ASSERT_EQ(cards.size(), batch.tensors.size());
  std::size_t mapped = 0;
  for (const element& each : cards) {
    if (each.attribute("data-verdict") == "legal" && each.attribute("data-route") == "tensor_map") ++mapped;
  }
  EXPECT_GE(2 * mapped, cards.size());
  EXPECT_EQ(text_of_id(page, "mapped"), std::to_string(mapped));
  EXPECT_EQ(of_class(all, "refused").size(), count(batch, run).refused);
  EXPECT_EQ(of_class(all, "rule").size(), count(batch, run).refused);
  for (const demo_tensor& tensor : batch.tensors) {
    EXPECT_THAT(page, HasSubstr("<h3>" + tensor.name + "</h3>"));
    if (!tensor.is_wrong) continue;
    const tensor_spec spec = tensor.at(run.base);
    for (const violation& v : validate(spec)) {
      if (info(v.id).level == severity::warning) continue;
      EXPECT_THAT(page, HasSubstr(drawing::escaped(to_string(v).substr(4))));
      EXPECT_THAT(page, HasSubstr("<b>What to do</b>: " + drawing::escaped(remedy(v, spec.type))));
    }
  }
}

TEST(demo, report_shows_a_map_up_close_and_times_without_a_rate) {
  const auto& [batch, run, checked] = shared_run();
  const std::string page = report_of(batch, run, checked);
  const auto all = elements_of(page);
  EXPECT_EQ(of_class(all, "byte").size(), 128u);
  EXPECT_EQ(of_class(all, "read").size(), 3u);
  EXPECT_EQ(text_of_id(page, "checksum"), checksum_of(run.tiles));
  EXPECT_EQ(text_of_id(page, "engine"), "simulator");
  EXPECT_EQ(text_of_id(page, "wrong"), "0");
  EXPECT_THAT(page, Not(HasSubstr("GB/s")));
  for (const char* part : {"<td>encode</td>", "<td>copy</td>", "<td>check, on the CPU</td>"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
}

TEST(demo, report_of_a_gpu_has_a_rate_and_its_ceiling) {
  const auto& [batch, run, checked] = shared_run();
  engine_run on_gpu = run;
  on_gpu.engine = "GPU";
  on_gpu.seconds = {.encode = 1e-5, .copy = 2e-5, .ceiling = 1e-5};
  const std::string page = report_of(batch, on_gpu, checked);
  const auto rate = [&](double seconds) {
    return fmt::format("{:.0f} GB/s", static_cast<double>(batch.tile_bytes) / seconds / 1e9);
  };
  EXPECT_THAT(page, HasSubstr(rate(2e-5)));
  EXPECT_THAT(page, HasSubstr(rate(1e-5)));
  EXPECT_THAT(page, HasSubstr("<td>ceiling</td>"));
}

TEST(demo, program_leaves_the_report_and_the_contact_sheet) {
  const temporary_folder folder;
  const tool_result run = run_program({TMAP_DEMO, folder.file("demo"), "--engine", "simulator"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, HasSubstr(folder.file("demo/report.html")));
  EXPECT_THAT(run.out, HasSubstr(folder.file("demo/out/contact_sheet.png")));
  EXPECT_THAT(run.out, HasSubstr("checksum " + checksum_of(shared_run().run.tiles)));
  EXPECT_THAT(run.out, Not(HasSubstr("GB/s")));
  EXPECT_TRUE(std::filesystem::exists(folder.file("demo/report.html")));
  EXPECT_TRUE(std::filesystem::exists(folder.file("demo/out/contact_sheet.png")));
}

TEST(demo, program_names_what_it_does_not_know) {
  EXPECT_EQ(run_program({TMAP_DEMO}).exit_code, 2);
  const tool_result run = run_program({TMAP_DEMO, "anywhere", "--engine", "abacus"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("abacus not in {auto,gpu,simulator}"));
  const tool_result help = run_program({TMAP_DEMO, "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("FOLDER"));
}

}  // namespace
}  // namespace tmap::demo
