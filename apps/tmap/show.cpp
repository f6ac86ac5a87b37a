// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <tmap/validate.hpp>

#include <charconv>
#include <cstdio>
#include <memory>

#include "apps/drawing/map_figure.hpp"
#include "apps/drawing/page.hpp"
#include "apps/drawing/tensor_figure.hpp"
#include "apps/drawing/terminal_drawing.hpp"
#include "apps/drawing/tile_figure.hpp"
#include "apps/support/terminal.hpp"
#include "apps/tmap/commands.hpp"
#include "apps/tmap/exit_code.hpp"
#include "apps/tmap/help.hpp"
#include "apps/tmap/map_input.hpp"
#include "apps/tmap/pad/output_file.hpp"
#include "apps/tmap/show_input.hpp"
#include "apps/tmap/spec_flags.hpp"

namespace tmap::tool {
namespace {

struct show_options {
  std::string thing;
  spec_words words;
  std::vector<CLI::Option*> flags;  ///< those that fill `words`
  std::vector<std::string> at;
  std::string html;
  std::string svg;
};

/// Holds a thing to draw and the box to draw of it.
struct shown_view {
  shown_thing thing;
  drawing::coordinates at{};
  std::string why_no_tile;  ///< empty where the load can be drawn
};

outcome<drawing::coordinates> read_position(const std::vector<std::string>& words, const tensor_spec& spec) {
  if (words.size() != spec.rank)
    return refuse("--at: {} given, but rank {} needs {}", words.size(), spec.rank, spec.rank);
  drawing::coordinates at{};
  for (std::size_t axis = 0; axis < words.size(); ++axis) {
    const std::string& word = words[axis];
    const auto read = std::from_chars(word.data(), word.data() + word.size(), at.at(axis));
    if (read.ec != std::errc{} || read.ptr != word.data() + word.size()) {
      return refuse("--at: '{}' is no whole number of 32 bits", word);
    }
  }
  return at;
}

/// Returns why the load of a box cannot be drawn; empty where it can.
std::string obstacle(const shown_thing& thing) {
  if (!thing.spec || !thing.problems.empty()) return "no load: the map cannot be used";
  if (!thing.is_tiled) return "no load: only boxes of tiled maps are drawn";
  return {};
}

drawing::tensor_marks marks_of(const shown_view& view) {
  drawing::tensor_marks marks;
  if (view.why_no_tile.empty()) marks.box_at = view.at;
  marks.is_refused = !view.thing.problems.empty();
  return marks;
}

/// Names the flag where a coordinate is at fault.
std::string tile_sentence(const error& e) {
  return "--at: " + to_string(e);
}

outcome<std::string> as_text(const shown_view& view, bool colour) {
  std::string text;
  if (view.thing.spec && view.thing.is_tiled) {
    text += drawing::tensor_as_text(*view.thing.spec, marks_of(view), colour) + '\n';
  }
  if (view.thing.map) text += drawing::map_as_text(*view.thing.map, colour) + '\n';
  if (!view.why_no_tile.empty()) return text;
  const auto tile = drawing::tile_as_text(*view.thing.spec, view.at, colour);
  if (!tile) return refuse("{}", tile_sentence(tile.error()));
  return text + *tile;
}

outcome<std::vector<drawing::figure>> figures_of(const shown_view& view) {
  std::vector<drawing::figure> figures;
  if (view.thing.spec && view.thing.is_tiled) {
    figures.push_back(drawing::draw_tensor(*view.thing.spec, marks_of(view)));
    for (const std::string& problem : view.thing.problems)
      figures.back().sentences.push_back("Broken rule: " + problem);
  }
  if (view.why_no_tile.empty()) {
    auto tile = drawing::draw_tile(*view.thing.spec, view.at);
    if (!tile) return refuse("{}", tile_sentence(tile.error()));
    figures.push_back(std::move(*tile));
  }
  if (view.thing.map) figures.push_back(drawing::draw_map(*view.thing.map));
  return figures;
}

outcome<void> write_text(const std::string& path, const std::string& text) {
  return write_file(path, {std::as_bytes(std::span{text.data(), text.size()})});
}

outcome<void> write_pages(const show_options& options, const shown_view& view) {
  const auto figures = figures_of(view);
  if (!figures) return refusal{figures.error()};
  if (!options.svg.empty()) {
    if (auto written = write_text(options.svg, drawing::svg_file(*figures)); !written) return written;
  }
  if (options.html.empty()) return {};
  std::string body = "<h1>A tensor map, drawn by tmap show</h1>\n";
  for (const std::string& problem : view.thing.problems) {
    body += fmt::format("<p class=\"bad\">{}</p>\n", drawing::escaped(problem));
  }
  for (const std::string& warning : view.thing.warnings) {
    body += fmt::format("<p>Warning: {}</p>\n", drawing::escaped(warning));
  }
  for (const drawing::figure& drawn : *figures) body += drawing::html_of(drawn);
  return write_text(options.html, drawing::html_page("tmap show", body));
}

void print_sentences(const shown_thing& thing) {
  for (const std::string& note : thing.notes) fmt::print("not given, taken: {}\n", note);
  for (const std::string& warning : thing.warnings) fmt::print("warning {}\n", warning);
  for (const std::string& problem : thing.problems) fmt::print("error   {}\n", problem);
}

outcome<shown_thing> read_thing(const show_options& options) {
  if (options.thing.empty()) return thing_of_words(options.words, "--");
  for (const CLI::Option* flag : options.flags) {
    if (flag->count() > 0) return refuse("{}: goes with no spec or map ({})", flag->get_name(), options.thing);
  }
  return thing_of_argument(options.thing);
}

outcome<shown_view> read_view(const show_options& options) {
  const auto thing = read_thing(options);
  if (!thing) return refusal{thing.error()};
  shown_view view{.thing = *thing, .at = {}, .why_no_tile = obstacle(*thing)};
  if (!view.why_no_tile.empty()) return view;
  view.at = drawing::last_box(*view.thing.spec);
  if (options.at.empty()) return view;
  const auto at = read_position(options.at, *view.thing.spec);
  if (!at) return refusal{at.error()};
  view.at = *at;
  return view;
}

outcome<int> show(const show_options& options) {
  const auto view = read_view(options);
  if (!view) return refusal{view.error()};
  const int exit_code = view->thing.problems.empty() ? exit_success : exit_no;
  const bool to_terminal = options.html.empty() && options.svg.empty();
  const auto text = to_terminal ? as_text(*view, apps::shows_colours()) : outcome<std::string>{};
  if (!text) return refusal{text.error()};
  if (const auto written = to_terminal ? outcome<void>{} : write_pages(options, *view); !written) {
    return refusal{written.error()};
  }
  print_sentences(view->thing);
  fmt::print("{}", *text);
  if (!view->why_no_tile.empty()) fmt::print("{}\n", view->why_no_tile);
  return exit_code;
}

}  // namespace

void add_show_command(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<show_options>();
  CLI::App* command = app.add_subcommand("show", "Draw a spec or a map: the tensor, its boxes, one load, the bytes");
  command->add_option("thing", options->thing, std::string{map_help} + "; without it the flags are the spec");
  options->flags = add_spec_flags(*command, options->words);
  command->add_option("--at", options->at, "Coordinates of the box to load, innermost first; the last box if left out")
      ->delimiter(',')
      ->type_name("X,Y");
  command->add_option("--html", options->html, "Write a page that needs no network")->type_name("FILE");
  command->add_option("--svg", options->svg, "Write one picture")->type_name("FILE");
  add_ending(
      *command,
      map_forms +
          "Draws to the terminal unless --html or --svg names a file. Exit codes: 0 all is well; 1 a rule "
          "is broken or bytes are no tensor map, and what can be drawn is drawn; 2 the input cannot be read.",
      {{"a tile of 64 x 32 halves", "tmap show --type f16 --dims 4096,128 --box 64,32 --swizzle 128"},
       {"the box at column 64, row 96", "tmap show --type f16 --dims 100,128 --strides 256 --box 64,32 --at 64,96"},
       {"an existing map, as a page", "tmap show map.bin --html map.html"}});
  command->callback([options, &exit_code] { exit_code = finish(show(*options)); });
}

}  // namespace tmap::tool
