// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <tmap/decode.hpp>
#include <tmap/validate.hpp>

#include <charconv>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/tmap/commands.hpp"
#include "apps/tmap/exit_code.hpp"
#include "apps/tmap/spec_input.hpp"
#include "apps/tmap/text_file.hpp"

namespace tmap::tool {
namespace {

using json = nlohmann::ordered_json;

struct explain_options {
  std::string file;
  spec_words words;
  std::vector<CLI::Option*> flags;  ///< those that fill `words`
  std::string compute_capability{"9.0"};
  bool json{};
};

/// What explain has found out, before it is printed.
struct explanation {
  spec_answer given;
  device_limits limits;
  violations found;
  bool is_legal{};
  result<tensor_map> map;
};

const char* level_of(const violation& v) {
  return info(v.id).level == severity::error ? "error" : "warning";
}

std::string words_of(const tensor_map& map, const char* separator) {
  std::string text;
  for (std::size_t i = 0; i < 16; ++i) text += fmt::format("{:#018x}{}", map.words[i], i % 4 == 3 ? "\n" : separator);
  return text;
}

void print_map(const explanation& e) {
  if (e.limits.compute_capability != hopper_limits().compute_capability) {
    fmt::print("Bits as documents have them: only compute capability 9.0 was measured.\n");
  }
  fmt::print("{}", describe(*e.map));
  fmt::print("{:<24}{}\n", "bytes per load", tile_bytes(e.given.spec));
  fmt::print("{:<24}{}, aligned to {}\n", "shared memory", tile_footprint_bytes(e.given.spec),
             shared_alignment(e.given.spec.swizzle));
  fmt::print("{}", words_of(*e.map, " "));
}

void print_text(const explanation& e) {
  const std::uint32_t capability = e.limits.compute_capability;
  for (const std::string& note : e.given.notes) fmt::print("not given, taken: {}\n", note);
  fmt::print("{} on compute capability {}.{}\n", e.is_legal ? "legal" : "not legal", capability / 10, capability % 10);
  for (const violation& v : e.found) fmt::print("{:<8}{}\n", level_of(v), to_string(v));
  if (e.is_legal) print_map(e);
}

json violations_as_json(const violations& found) {
  json list = json::array();
  for (const violation& v : found) {
    list.push_back({{"rule", info(v.id).name},
                    {"severity", level_of(v)},
                    {"axis", v.axis},
                    {"found", v.found},
                    {"allowed", v.allowed},
                    {"sentence", to_string(v)}});
  }
  return list;
}

void print_json(const explanation& e) {
  json object{{"legal", e.is_legal},
              {"compute_capability", e.limits.compute_capability},
              {"assumed", e.given.notes},
              {"violations", violations_as_json(e.found)}};
  if (e.is_legal && e.map) {
    object["map"] = json::parse(describe_json(*e.map));
    for (const std::uint64_t word : e.map->words) object["words"].push_back(fmt::format("{:#018x}", word));
    object["tile_bytes"] = tile_bytes(e.given.spec);
    object["tile_footprint_bytes"] = tile_footprint_bytes(e.given.spec);
    object["shared_alignment"] = shared_alignment(e.given.spec.swizzle);
  }
  fmt::print("{}\n", object.dump());
}

outcome<spec_words> words_of(const explain_options& options) {
  if (options.file.empty()) return options.words;
  for (const CLI::Option* flag : options.flags) {
    if (flag->count() > 0) return refuse("{}: goes with no spec file ({})", flag->get_name(), shown_path(options.file));
  }
  const auto text = read_text(options.file);
  if (!text) return refusal{text.error()};
  return read_spec_json(*text, shown_path(options.file));
}

outcome<int> explain(const explain_options& options) {
  const auto words = words_of(options);
  if (!words) return refusal{words.error()};
  const auto given = understand(*words);
  if (!given) return refuse("{}{}", options.file.empty() ? "--" : shown_path(options.file) + ": ", given.error());
  const auto limits = read_compute_capability(options.compute_capability);
  if (!limits) return refuse("--{}", limits.error());
  explanation e{.given = *given,
                .limits = *limits,
                .found = validate(given->spec, *limits),
                .is_legal = broken_rules(given->spec, *limits).empty(),
                .map = encode_bits(given->spec, *limits)};
  options.json ? print_json(e) : print_text(e);
  return e.is_legal ? exit_success : exit_no;
}

/// CLI11 by itself would read -1 as a huge number.
template <class Number>
std::string why_no_number(const std::string& word) {
  Number value{};
  const char* end = word.data() + word.size();
  const auto read = std::from_chars(word.data(), end, value);
  if (read.ec == std::errc{} && read.ptr == end) return {};
  return fmt::format("'{}' is no whole number from 0 to {}", word, std::numeric_limits<Number>::max());
}

template <class Number>
CLI::Option* add_numbers(CLI::App& command, const char* flag, std::vector<Number>& numbers, const char* help) {
  return command.add_option(flag, numbers, help)->delimiter(',')->type_name("N,N")->check(why_no_number<Number>);
}

std::vector<CLI::Option*> add_spec_flags(CLI::App& command, spec_words& words) {
  const auto add_word = [&](const char* flag, std::string& word, const char* help) {
    return command.add_option(flag, word, help)->type_name("WORD");
  };
  return {
      add_word("--type", words.type, "Element type: u8, u16, u32, i32, u64, i64, f16, f32, f64, bf16, tf32, ..."),
      add_numbers(command, "--dims", words.dims, "Tensor dimensions, innermost first: 4096,128"),
      add_numbers(command, "--strides", words.strides, "Bytes from row to row, and so on; packed when left out"),
      add_numbers(command, "--box", words.box, "Box dimensions, innermost first: 64,32"),
      add_numbers(command, "--element-strides", words.element_strides, "Steps inside the box; 1 when left out"),
      add_word("--interleave", words.interleave, "none, 16B or 32B"),
      add_word("--swizzle", words.swizzle, "none, 32B, 64B or 128B"),
      add_word("--l2", words.l2, "L2 promotion: none, 64B, 128B or 256B"),
      add_word("--fill", words.fill, "What lies outside the tensor reads as: zero or nan"),
      add_word("--address", words.address, "Device address, decimal or 0x hexadecimal"),
  };
}

}  // namespace

void add_explain_command(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<explain_options>();
  CLI::App* command = app.add_subcommand("explain", "Name every rule a spec breaks, or show the map it makes");
  command->add_option("spec", options->file,
                      "A JSON file with the names of `inspect --json`, or - for standard input; else use flags");
  options->flags = add_spec_flags(*command, options->words);
  command->add_option("--compute-capability", options->compute_capability, "Of the GPU asked about")
      ->capture_default_str();
  command->add_flag("--json", options->json, "One JSON object");
  command->footer("Exit code 0 when the spec is legal (warnings may be shown), 1 when it breaks a rule.");
  command->callback([options, &exit_code] { exit_code = finish(explain(*options)); });
}

}  // namespace tmap::tool
