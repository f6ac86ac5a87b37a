// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <tmap/decode.hpp>
#include <tmap/validate.hpp>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "apps/support/terminal.hpp"
#include "apps/tmap/commands.hpp"
#include "apps/tmap/emit.hpp"
#include "apps/tmap/exit_code.hpp"
#include "apps/tmap/help.hpp"
#include "apps/tmap/nearest_spec.hpp"
#include "apps/tmap/pad/output_file.hpp"
#include "apps/tmap/spec_flags.hpp"
#include "apps/tmap/text_file.hpp"

namespace tmap::tool {
namespace {

using json = nlohmann::ordered_json;

using apps::style;
using apps::styled;

struct explain_options {
  std::string file;
  spec_words words;
  std::vector<CLI::Option*> flags;  ///< those that fill `words`
  std::string compute_capability;
  std::string language;  ///< of the code to print, or empty
  std::string out;       ///< the file for the 128 bytes, or empty
  bool fix{};
  bool json{};
};

/// All that explain has found out, before it is printed.
struct explanation {
  spec_answer given;
  device_limits limits;
  violations found;
  bool is_legal{};
  std::optional<nearest_spec> nearest;  ///< with --fix, of a spec that is not legal

  /// Returns the legal spec, given or nearest. Null if there is none.
  const any_spec* usable() const {
    if (is_legal) return &given;
    return nearest && nearest->is_legal ? &nearest->spec : nullptr;
  }
};

bool is_error(const violation& v) {
  return info(v.id).level == severity::error;
}

const char* level_of(const violation& v) {
  return is_error(v) ? "error" : "warning";
}

std::string words_of(const tensor_map& map, const char* separator) {
  std::string text;
  for (std::size_t i = 0; i < 16; ++i) text += fmt::format("{:#018x}{}", map.words[i], i % 4 == 3 ? "\n" : separator);
  return text;
}

std::string text_of_map(const any_spec& any, const device_limits& limits) {
  std::string text;
  if (limits.compute_capability != hopper_limits().compute_capability) {
    text += "Bits as documents have them: only compute capability 9.0 was measured.\n";
  }
  const auto map = any.encoded(limits);
  text += describe(*map);
  text += fmt::format("{:<24}{}\n", "bytes per load", any.load_bytes());
  text +=
      fmt::format("{:<24}{}, aligned to {}\n", "shared memory", any.shared_bytes(), shared_alignment(any.spec.swizzle));
  return text + words_of(*map, " ");
}

std::string text_of(const violation& v, element_type type) {
  const style level = is_error(v) ? style::bad : style::warning;
  return fmt::format("{}{}\n{:<8}{}\n", styled(level, fmt::format("{:<8}", level_of(v))), to_string(v), "",
                     styled(style::hint, remedy(v, type)));
}

std::string text_of(const nearest_spec& nearest, const device_limits& limits) {
  if (!nearest.is_legal) {
    const violations left = nearest.spec.broken(limits);
    return fmt::format("no legal spec is near: {}\n", to_string(*std::find_if(left.begin(), left.end(), is_error)));
  }
  std::string text = fmt::format("{}\n", styled(style::good, "nearest legal spec"));
  for (const std::string& change : nearest.changes) text += fmt::format("{:<8}{}\n", "change", change);
  return text + text_of_map(nearest.spec, limits);
}

std::string text_of(const explanation& e) {
  const std::uint32_t capability = e.limits.compute_capability;
  std::string text;
  for (const std::string& note : e.given.notes) text += fmt::format("not given, taken: {}\n", note);
  text += fmt::format("{} on compute capability {}.{}\n",
                      e.is_legal ? styled(style::good, "legal") : styled(style::bad, "not legal"), capability / 10,
                      capability % 10);
  for (const violation& v : e.found) text += text_of(v, e.given.spec.type);
  if (e.is_legal) text += text_of_map(e.given, e.limits);
  if (e.nearest) text += text_of(*e.nearest, e.limits);
  return text;
}

json violations_as_json(const violations& found, element_type type) {
  json list = json::array();
  for (const violation& v : found) {
    list.push_back({{"rule", info(v.id).name},
                    {"severity", level_of(v)},
                    {"axis", v.axis},
                    {"found", v.found},
                    {"allowed", v.allowed},
                    {"sentence", to_string(v)},
                    {"remedy", remedy(v, type)}});
  }
  return list;
}

/// Adds the map of a legal spec and the sizes of its tile.
void add_map(json& object, const any_spec& any, const device_limits& limits) {
  const auto map = any.encoded(limits);
  object["map"] = json::parse(describe_json(*map));
  object["words"] = words_as_json(*map);
  object["tile_bytes"] = any.load_bytes();
  object["tile_footprint_bytes"] = any.shared_bytes();
  object["shared_alignment"] = shared_alignment(any.spec.swizzle);
}

json nearest_as_json(const nearest_spec& nearest, const device_limits& limits) {
  json object{{"legal", nearest.is_legal}, {"changes", nearest.changes}, {"spec", nearest.spec.json()}};
  if (nearest.is_legal) add_map(object, nearest.spec, limits);
  return object;
}

std::string json_of(const explanation& e) {
  json object{{"legal", e.is_legal},
              {"compute_capability", e.limits.compute_capability},
              {"assumed", e.given.notes},
              {"spec", e.given.json()},
              {"violations", violations_as_json(e.found, e.given.spec.type)}};
  if (e.is_legal) add_map(object, e.given, e.limits);
  if (e.nearest) object["nearest"] = nearest_as_json(*e.nearest, e.limits);
  return object.dump() + "\n";
}

outcome<spec_words> words_of(const explain_options& options) {
  if (options.file.empty()) return options.words;
  for (const CLI::Option* flag : options.flags) {
    if (flag->count() > 0)
      return refuse("{}: cannot be combined with a spec file ({})", flag->get_name(), shown_path(options.file));
  }
  const auto text = read_text(options.file);
  if (!text) return refusal{text.error()};
  return read_spec_json(*text, shown_path(options.file));
}

outcome<device_limits> limits_of(const explain_options& options, const spec_words& words) {
  if (!options.compute_capability.empty()) return read_compute_capability(options.compute_capability);
  if (!words.compute_capability.empty()) return read_compute_capability(words.compute_capability);
  return hopper_limits();
}

outcome<explanation> explanation_of(const explain_options& options) {
  const auto words = words_of(options);
  if (!words) return refusal{words.error()};
  const auto given = understand(*words);
  if (!given) return refuse("{}{}", options.file.empty() ? "--" : shown_path(options.file) + ": ", given.error());
  const auto limits = limits_of(options, *words);
  if (!limits) return refuse("--{}", limits.error());
  explanation e{*given, *limits, given->broken(*limits), given->is_legal(*limits), {}};
  if (options.fix && !e.is_legal) e.nearest = find_nearest(e.given, e.limits);
  return e;
}

outcome<std::string> code_of(const any_spec& any, const std::string& language) {
  if (language == "c++") return cpp_code(any);
  if (language == "driver") return driver_code(any);
  return python_code(any);
}

outcome<void> write_map(const std::string& path, const tensor_map& map) {
  return write_file(path, {std::as_bytes(std::span{&map, 1})});
}

outcome<int> explain(const explain_options& options) {
  if (options.json && !options.language.empty()) return refuse("--json: cannot be combined with --emit");
  const auto explained = explanation_of(options);
  if (!explained) return refusal{explained.error()};
  const explanation& e = *explained;
  const any_spec* const usable = e.usable();
  std::string output = options.json ? json_of(e) : text_of(e);
  if (usable != nullptr && !options.language.empty()) {
    const auto code = code_of(*usable, options.language);
    if (!code) return refusal{code.error()};
    output = *code;
  }
  if (usable != nullptr && !options.out.empty()) {
    if (const auto written = write_map(options.out, *usable->encoded(e.limits)); !written) {
      return refusal{written.error()};
    }
  }
  // Code goes to files: of a spec that makes none, the reason goes past them.
  const bool lacks_code = usable == nullptr && !options.language.empty();
  if (lacks_code && !options.fix) output += "add --fix for the code of the nearest legal spec\n";
  fmt::print(lacks_code ? stderr : stdout, "{}", output);
  return e.is_legal ? exit_success : exit_no;
}

}  // namespace

void add_explain_command(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<explain_options>();
  CLI::App* command = app.add_subcommand("explain", "Name every rule a spec breaks and what to do, or show its map");
  command->add_option("spec", options->file,
                      "A JSON file as `inspect --json` and `explain --json` write it, or - for standard input; without "
                      "it the flags are the spec");
  options->flags = add_spec_flags(*command, options->words);
  command
      ->add_option("--compute-capability", options->compute_capability,
                   "The GPU asked about: 9, 9.0, 90, sm_90a, 10.0 and so on; 9.0 when left out")
      ->type_name("VERSION");
  command->add_flag("--fix", options->fix, "Show the nearest legal spec, and what changed");
  command->add_option("--emit", options->language, "Print code that makes the map: c++, driver or python")
      ->check(CLI::IsMember({"c++", "driver", "python"}))
      ->type_name("LANGUAGE");
  command->add_option("--out", options->out, "Write the 128 bytes of the map to this file")->type_name("FILE");
  command->add_flag("--json", options->json, "One JSON object");
  add_ending(*command,
             "Exit codes: 0 the spec is legal (warnings may be shown); 1 it breaks a rule, also where --fix finds a "
             "legal one; 2 the spec cannot be read. --emit and --out take the legal spec, given or found by --fix.",
             {{"a tile of 64 x 32 halves", "tmap explain --type f16 --dims 4096,128 --box 64,32 --swizzle 128"},
              {"rows that are no multiple of 16 bytes", "tmap explain --type f16 --dims 4100,4096 --box 64,64 --fix"},
              {"code for it", "tmap explain --type f16 --dims 4100,4096 --box 64,64 --strides 8208 --emit c++"},
              {"an im2col map",
               "tmap explain --type f16 --dims 64,28,28,8 --lower=-1,-1 --upper=-1,-1 --channels 64 --pixels 128"},
              {"the spec of an existing map", "tmap inspect --json map.bin | tmap explain -"}});
  command->callback([options, &exit_code] { exit_code = finish(explain(*options)); });
}

}  // namespace tmap::tool
