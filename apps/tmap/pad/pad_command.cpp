// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/commands.hpp"
#include "apps/tmap/help.hpp"
#include "apps/tmap/pad/engine_option.hpp"
#include "apps/tmap/pad/pad_job.hpp"

#include <csignal>
#include <memory>

namespace tmap::tool {
namespace {

constexpr std::uint64_t default_most_bytes = std::uint64_t{8} << 30;

/// Reads "min", or sizes separated by commas.
std::string parse_crop(const std::string& text, plan_options& options) {
  options.crop_to_smallest = text == "min";
  options.crop.clear();
  if (options.crop_to_smallest) return {};
  for (const std::string& word : CLI::detail::split(text, ',')) {
    std::uint64_t size = 0;
    if (!CLI::detail::lexical_cast(word, size) || size == 0) return "a shape like 224,224,3 or min is needed";
    options.crop.push_back(size);
  }
  return {};
}

void add_options(CLI::App& pad, pad_request& request) {
  pad.add_option(
         "input", request.inputs,
         "Pictures (.png, .jpg), .npy arrays, .safetensors files, or folders of them (not folders inside those)")
      ->required();
  pad.add_option("--out", request.out, "Folder for the results; those of an earlier run there are removed")
      ->required()
      ->type_name("FOLDER");
  add_engine_option(pad, request.engine, "The engine that copies");
  pad.add_option_function<std::string>(
         "--crop", [&request](const std::string& text) { parse_crop(text, request.plan); },
         "Cut to this shape, outermost first, such as 224,224,3; min cuts to the smallest")
      ->check([&request](const std::string& text) { return parse_crop(text, request.plan); })
      ->type_name("SHAPE");
  pad.add_option("--max-bytes", request.plan.most_bytes,
                 "Largest batch, and largest input, in bytes; 8G, the default, is 8 GiB")
      ->transform(CLI::AsSizeValue(false))
      ->default_val(default_most_bytes)
      ->option_text("SIZE");
  pad.add_flag("--keep-going", request.keep_going, "Go on with the other inputs after one has failed");
  pad.add_flag("--quiet", request.quiet, "Print nothing but failures");
}

}  // namespace

void add_pad_command(CLI::App& app, int& exit_code) {
  CLI::App* pad = app.add_subcommand("pad", "Copy tensors of any mix of sizes into dense zero-padded batches");
  add_ending(
      *pad, "Exit codes: 0 all is well; 1 an input or a step failed; 2 the command line is wrong.",
      {{"one batch of all pictures of a folder", "tmap pad pictures --out padded"},
       {"tensors of a model, cut to the smallest of each kind", "tmap pad model.safetensors --crop min --out cut"},
       {"without a GPU", "tmap pad arrays --engine simulator --out padded"}});
  const auto request = std::make_shared<pad_request>();
  add_options(*pad, *request);
  pad->callback([request, &exit_code] {
    // A limit on file sizes is a failed write with its own sentence, not the end of the program.
    std::signal(SIGXFSZ, SIG_IGN);
    exit_code = run_pad(*request);
  });
}

}  // namespace tmap::tool
