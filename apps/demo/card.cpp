// SPDX-License-Identifier: Apache-2.0
#include "apps/demo/card.hpp"

#include <fmt/format.h>
#include <tmap/route.hpp>
#include <tmap/validate.hpp>

#include <algorithm>
#include <string_view>

#include "apps/drawing/page.hpp"
#include "apps/drawing/tensor_figure.hpp"

namespace tmap::demo {
namespace {

using drawing::escaped;

constexpr double card_width = 300;
constexpr double card_height = 150;

/// Describes a route to a reader who does not know its name.
const char* words_of(route way) {
  switch (way) {
    case route::tensor_map: return "tensor map: the copy engine moves boxes";
    case route::bulk: return "bulk copy: the copy engine moves whole rows, without a map";
    case route::ldgsts: return "asynchronous copies: each thread moves 4 to 16 bytes";
    case route::plain: return "plain loads and stores: any address, any pitch";
  }
  return "";
}

/// Returns why the tensor takes its route.
std::string reason_of(const tensor_spec& spec) {
  const route_choice choice = choose_route(spec);
  if (choice.way == route::tensor_map) {
    return "Address and pitch are multiples of 16 bytes, and there are gaps between the rows.";
  }
  if (choice.way == route::bulk) return "Its rows are long, so that a one-dimensional copy of each is faster.";
  switch (choice.why) {
    case route_reason::misaligned: return "Address, pitch or row is no multiple of 16 bytes.";
    case route_reason::too_small: return "Its rows are too short for boxes to pay.";
    case route_reason::extent_too_large: return "A dimension has more elements than a map can count.";
    default: return fmt::format("Reason: {}.", name(choice.why));
  }
}

/// Returns a sentence of the rule table, with what stands in backquotes as code.
std::string with_code(std::string_view sentence) {
  std::string html;
  bool is_code = false;
  for (const char letter : escaped(sentence)) {
    if (letter != '`') {
      html += letter;
      continue;
    }
    html += is_code ? "</code>" : "<code>";
    is_code = !is_code;
  }
  return html;
}

std::string broken_sentences(const tensor_spec& spec) {
  std::string text;
  for (const violation& v : validate(spec)) {
    const rule_info& broken = info(v.id);
    if (broken.level != severity::error) continue;
    const std::string found = to_string(v).substr(std::string_view{broken.name}.size() + 1);
    text += fmt::format(
        "<p class=\"rule\"><b>Rule {}</b>: {}</p>\n<p><b>It states</b>: {}</p>\n<p><b>What to do</b>: {}</p>\n",
        broken.name, escaped(found), with_code(broken.sentence), escaped(remedy(v, spec.type)));
  }
  return text;
}

std::string count_text(std::size_t tiles) {
  return tiles == 1 ? "1 tile" : fmt::format("{} tiles", tiles);
}

/// Writes one tensor of the batch.
class card {
 public:
  card(const demo_batch& batch, const engine_run& run, std::size_t index)
      : tensor_(batch.tensors[index]), spec_(tensor_.at(run.base)), fate_(fate_of(tensor_, run, index)) {
    tiles_ = static_cast<std::size_t>(
        std::count_if(batch.tiles.begin(), batch.tiles.end(), [&](const demo_tile& t) { return t.tensor == index; }));
  }

  std::string html() const {
    return fmt::format(
        "<article class=\"card {}\" data-verdict=\"{}\" data-route=\"{}\">\n<h3>{}</h3>\n<p>{} "
        "{}</p>\n{}{}</article>\n",
        fate_ == fate::refused ? "refused" : "legal", verdict_word(), name(choose_route(spec_).way),
        escaped(tensor_.name), tag(), escaped(drawing::short_name(spec_)), drawn(), sentences());
  }

 private:
  const char* verdict_word() const {
    constexpr const char* words[] = {"legal", "legal", "empty", "refused"};
    return words[static_cast<int>(fate_)];
  }
  std::string tag() const {
    switch (fate_) {
      case fate::mapped: return "<span class=\"tag tensor_map\">tensor map</span>";
      case fate::otherwise: return fmt::format("<span class=\"tag other\">{}</span>", name(choose_route(spec_).way));
      case fate::empty: return "<span class=\"tag\">empty</span>";
      case fate::refused: return "<span class=\"tag\">refused</span>";
    }
    return {};
  }
  std::string drawn() const {
    if (fate_ == fate::empty) return {};
    drawing::tensor_marks marks;
    marks.is_refused = fate_ == fate::refused;
    marks.width = card_width;
    marks.height = card_height;
    const drawing::canvas picture = drawing::draw_tensor_to_scale(spec_, marks);
    return fmt::format(
        "<svg width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\" aria-label=\"{2}\">\n"
        "{3}</svg>\n",
        picture.width(), picture.height(), escaped(tensor_.name), picture.elements());
  }
  std::string sentences() const {
    const std::string where =
        fmt::format("<p><b>Route</b>: {}. {}</p>\n", words_of(choose_route(spec_).way), reason_of(spec_));
    switch (fate_) {
      case fate::empty:
        return "<p>A dimension is 0: there is nothing to move. That is no error, and no copy is made.</p>\n";
      case fate::refused: return broken_sentences(spec_);
      case fate::otherwise:
        return boxes() + where + "<p>A map can describe it too: its tiles were moved through one.</p>\n";
      case fate::mapped: return boxes() + where;
    }
    return {};
  }
  std::string boxes() const {
    std::string text = fmt::format("<p>{}.", escaped(drawing::box_sentence(spec_)));
    if (spec_.swizzle != swizzle::none) text += fmt::format(" Swizzle {}.", name(spec_.swizzle));
    return text + fmt::format(" {} moved.</p>\n", count_text(tiles_));
  }

  const demo_tensor& tensor_;
  tensor_spec spec_;
  fate fate_;
  std::size_t tiles_{};
};

}  // namespace

fate fate_of(const demo_tensor& tensor, const engine_run& run, std::size_t index) {
  const verdict& judged = run.verdicts[index];
  if (judged.is_empty) return fate::empty;
  if (!judged.map) return fate::refused;
  return choose_route(tensor.at(run.base)).way == route::tensor_map ? fate::mapped : fate::otherwise;
}

std::string card_of(const demo_batch& batch, const engine_run& run, std::size_t index) {
  return card{batch, run, index}.html();
}

}  // namespace tmap::demo
