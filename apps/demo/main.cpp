// SPDX-License-Identifier: Apache-2.0
// The program of `make demo`: makes a batch of tensors, encodes their maps, moves tiles through
// them, checks the tiles, and leaves a report and a contact sheet.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "apps/demo/pictures/write_pictures.hpp"
#include "apps/demo/report.hpp"
#include "apps/support/command_line.hpp"
#include "apps/tmap/pad/engine_option.hpp"
#include "apps/tmap/pad/output_file.hpp"
#include "apps/tmap/pad/pad_job.hpp"

namespace {

using namespace tmap;
using tool::outcome;
using tool::refusal;
using tool::refuse;

constexpr std::uint64_t most_picture_bytes = std::uint64_t{1} << 30;
constexpr int exit_wrong = 1;
constexpr int exit_trouble = 2;

outcome<demo::engine_run> run_batch(const demo::demo_batch& batch, const tool::engine& engine) {
  if (engine.name != "gpu") return demo::run_in_simulator(batch);
  auto run = demo::run_on_gpu(batch);
  if (run) run->device = engine.device;
  return run;
}

outcome<void> write_report(const std::filesystem::path& path, const std::string& page) {
  return tool::write_file(path, {std::as_bytes(std::span{page.data(), page.size()})});
}

/// Pads the project's own pictures into one batch and draws it.
outcome<void> write_contact_sheet(const std::filesystem::path& folder, tool::engine_request engine) {
  const auto drawn = demo::write_pictures(folder / "pictures");
  if (!drawn) return refusal{drawn.error()};
  const tool::pad_request request{.inputs = {(folder / "pictures").string()},
                                  .out = folder / "out",
                                  .plan = {.crop_to_smallest = false, .crop = {}, .most_bytes = most_picture_bytes},
                                  .engine = engine,
                                  .keep_going = false,
                                  .quiet = true};
  if (tool::run_pad(request) != 0) return refuse("the pictures could not be padded");
  return {};
}

outcome<int> run(const std::filesystem::path& folder, tool::engine_request asked) {
  const auto engine = tool::choose_engine(asked);
  if (!engine) return refusal{engine.error()};
  if (const auto ready = tool::prepare_folder(folder); !ready) return refusal{ready.error()};

  const demo::demo_batch batch = demo::make_batch();
  const auto done = run_batch(batch, *engine);
  if (!done) return refusal{done.error()};
  const demo::check_result checked = demo::check_tiles(batch, *done);
  const demo::batch_counts counts = demo::count(batch, *done);
  if (const auto written = write_report(folder / "report.html", demo::report_of(batch, *done, checked)); !written) {
    return refusal{written.error()};
  }
  if (const auto written = write_contact_sheet(folder, asked); !written) return refusal{written.error()};

  fmt::print("{} tensors on the {}: {} by tensor map, {} another way, {} empty, {} refused\n", counts.tensors,
             done->engine, counts.mapped, counts.otherwise, counts.empty, counts.refused);
  fmt::print("{} tiles moved, {} elements checked, {} wrong; checksum {}\n", batch.tiles.size(), checked.elements,
             checked.wrong, demo::checksum_of(done->tiles));
  fmt::print("report         {}\n", std::filesystem::absolute(folder / "report.html").string());
  fmt::print("contact sheet  {}\n", std::filesystem::absolute(folder / "out/contact_sheet.png").string());
  return checked.wrong == 0 ? 0 : exit_wrong;
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app{"Makes a batch of tensor maps, moves tiles through them, and leaves a report", "tmap_demo"};
  std::string folder;
  tool::engine_request engine{};
  app.add_option("FOLDER", folder, "Folder for the report and the contact sheet")->required()->type_name("");
  tool::add_engine_option(app, engine, "The engine that moves tiles");
  if (const auto ended = apps::parse_command_line(app, argc, argv)) return *ended;
  const auto done = run(folder, engine);
  if (done) return *done;
  fmt::print(stderr, "tmap_demo: {}\n", done.error());
  return exit_trouble;
} catch (const std::exception& e) {
  std::fprintf(stderr, "tmap_demo: %s\n", e.what());
  return exit_trouble;
}
