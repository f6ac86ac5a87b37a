// SPDX-License-Identifier: Apache-2.0
#include "apps/demo/report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "apps/demo/card.hpp"
#include "apps/drawing/map_figure.hpp"
#include "apps/drawing/page.hpp"
#include "apps/drawing/tensor_figure.hpp"
#include "apps/drawing/tile_figure.hpp"

namespace tmap::demo {
namespace {

using drawing::escaped;

constexpr std::string_view style = R"(
.lead{font-size:17px;max-width:70ch}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:10px;margin:16px 0}
.fact{background:var(--card);border:1px solid var(--edge);border-radius:8px;padding:8px 14px;min-width:0}
.fact b{display:block;font-size:22px;line-height:1.2}.fact.sum{grid-column:span 2}.fact.sum b{font:600 16px/26px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace}
.fact span{font-size:13px;color:var(--soft)}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,318px),1fr));gap:14px;margin:14px 0}
.card{background:var(--paper);border:1px solid var(--edge);border-radius:8px;padding:12px 14px;min-width:0;
overflow-wrap:anywhere}
.card h3{font-size:15px;margin:0 0 2px}.card p{margin:4px 0;font-size:13.5px;line-height:1.45}
.card svg{display:block;max-width:100%;height:auto;margin:8px 0 4px}
.card.refused{border:2px solid var(--bad);background:var(--badpaper)}.card.refused svg{background:none}
.card.refused .tag{background:var(--bad);color:var(--paper)}
.tag{display:inline-block;font-size:12px;font-weight:600;padding:1px 8px;border-radius:9px;background:var(--c7);
color:var(--ink)}
.tag.tensor_map{background:var(--c1)}.tag.other{background:var(--c0)}
table{border-collapse:collapse;margin:12px 0;font-size:14.5px}
th,td{text-align:left;padding:6px 18px 6px 0;border-bottom:1px solid var(--edge);vertical-align:top}
td.n{text-align:right;white-space:nowrap}
.wide{overflow-x:auto}
.keys{display:flex;flex-wrap:wrap;gap:4px 20px;font-size:13.5px;margin:10px 0;padding:0;list-style:none}
.keys i{display:inline-block;width:20px;height:12px;margin-right:7px;border:1px solid var(--edge);vertical-align:-1px}
.k1{background:var(--c1)}.k3{background:var(--c3)}.kbad{background:var(--bad)}
.kfill{background:repeating-linear-gradient(135deg,var(--fill) 0 1.5px,var(--none) 1.5px 5px)}
.kpad{background:repeating-linear-gradient(135deg,var(--pad) 0 1.5px,var(--paper) 1.5px 5px)}
)";

std::string fact(std::string_view value, const char* meaning, const char* id) {
  return fmt::format("<div class=\"fact{}\"><b id=\"{}\">{}</b><span>{}</span></div>\n",
                     value.size() > 12 ? " sum" : "", id, value, meaning);
}

std::string facts_of(const demo_batch& batch, const engine_run& run, const check_result& checked) {
  const batch_counts counts = count(batch, run);
  return "<div class=\"facts\">\n" + fact(fmt::format("{}", counts.tensors), "tensors", "tensors") +
         fact(fmt::format("{}", counts.mapped), "take the tensor-map route", "mapped") +
         fact(fmt::format("{}", counts.otherwise), "have a map, go another way", "otherwise") +
         fact(fmt::format("{}", counts.empty), "empty, no error", "empty") +
         fact(fmt::format("{}", counts.refused), "refused, each with its rule", "refused") +
         fact(fmt::format("{}", batch.tiles.size()), "tiles moved through maps", "tiles") +
         fact(fmt::format("{}", checked.wrong), "wrong elements", "wrong") +
         fact(checksum_of(run.tiles), "checksum of all tiles", "checksum") + "</div>\n";
}

std::string head_of(const demo_batch& batch, const engine_run& run, const check_result& checked) {
  const std::string where =
      run.device.empty() ? "a model of the GPU's copy engine that runs on the CPU" : escaped(run.device);
  return fmt::format(
             "<h1>tmap demo: what tensor maps do</h1>\n"
             "<p class=\"lead\">A <b>tensor map</b> is a 128-byte object that states where a tensor lies "
             "and how to cut it into boxes. The copy engine of a GPU reads it. This run took {} tensors of many "
             "shapes, some of them wrong on "
             "purpose. It encoded a map for each that allows one and moved every box through it.</p>\n"
             "<p>Engine: <b id=\"engine\">{}</b> ({}). The checksum is the same on every machine, with and without a "
             "GPU.</p>\n",
             batch.tensors.size(), run.engine, where) +
         facts_of(batch, run, checked);
}

std::string batch_of(const demo_batch& batch, const engine_run& run) {
  std::string text =
      "<h2>The batch</h2>\n"
      "<p>Each drawing shows a tensor to scale, unless its caption differs: its elements across, its rows down. Lines "
      "show "
      "the boxes, one copy each. Of tensors with more than two dimensions one slice is drawn.</p>\n"
      "<ul class=\"keys\"><li><i class=\"k1\"></i>boxes inside the tensor</li>"
      "<li><i class=\"k3\"></i>boxes that its edge cuts off</li>"
      "<li><i class=\"kfill\"></i>outside: arrives as zero or NaN</li>"
      "<li><i class=\"kpad\"></i>padding between rows</li><li><i class=\"kbad\"></i>refused</li></ul>\n"
      "<div class=\"cards\">\n";
  for (std::size_t i = 0; i < batch.tensors.size(); ++i) text += card_of(batch, run, i);
  return text + "</div>\n";
}

/// Shows the first tensor's last box, which two edges of the tensor cut off.
std::string close_up(const demo_batch& batch, const engine_run& run) {
  const demo_tensor& tensor = batch.tensors.front();
  const tensor_spec spec = tensor.at(run.base);
  drawing::tensor_marks marks;
  marks.box_at = drawing::coordinates{};
  (*marks.box_at)[0] = static_cast<std::int32_t>(spec.box_dim[0]);
  (*marks.box_at)[1] = drawing::last_box(spec)[1];
  std::string text = fmt::format("<h2>One map up close: {}</h2>\n", escaped(tensor.name)) +
                     drawing::html_of(drawing::draw_tensor(spec, marks));
  if (const auto tile = drawing::draw_tile(spec, *marks.box_at)) text += drawing::html_of(*tile);
  if (run.verdicts.front().map) text += drawing::html_of(drawing::draw_map(*run.verdicts.front().map));
  return text;
}

std::string milliseconds(double seconds) {
  return fmt::format("{:.3f} ms", seconds * 1e3);
}

std::string row(const char* part, const std::string& what, double seconds, const std::string& rate) {
  return fmt::format("<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td>{}</tr>\n", part, what, milliseconds(seconds),
                     rate.empty() ? "" : "<td class=\"n\">" + rate + "</td>");
}

std::string rate_of(const demo_batch& batch, double seconds) {
  return fmt::format("{:.0f} GB/s", static_cast<double>(batch.tile_bytes) / seconds / 1e9);
}

std::string times_of(const demo_batch& batch, const engine_run& run, const check_result& checked) {
  const bool has_rate = run.seconds.ceiling.has_value();
  const auto maps = std::count_if(run.verdicts.begin(), run.verdicts.end(), [](const verdict& v) { return v.map; });
  const double megabytes = static_cast<double>(batch.tile_bytes) / 1e6;
  std::string text = fmt::format(
      "<h2>Time</h2>\n<p>{}</p>\n<div class=\"wide\"><table id=\"times\">\n"
      "<tr><th>part</th><th>work</th><th>time</th>{}</tr>\n",
      has_rate
          ? "Times of the GPU. The last line is the ceiling: a plain copy (cudaMemcpy) of as many bytes in the same "
            "memory, measured in the same run."
          : "The simulator is a model on the CPU. Its times say nothing about a GPU, so this table has no rate.",
      has_rate ? "<th>rate</th>" : "");
  const std::string none = has_rate ? "-" : "";
  text += row("encode", fmt::format("{} maps", maps), run.seconds.encode, none);
  text += row("copy", fmt::format("{} tiles, {:.1f} MB", batch.tiles.size(), megabytes), run.seconds.copy,
              has_rate ? rate_of(batch, run.seconds.copy) : "");
  text += row("check, on the CPU", fmt::format("{} elements, {} of them fill", checked.elements, checked.filled),
              checked.seconds, none);
  if (has_rate) {
    text += row("ceiling", fmt::format("cudaMemcpy of {:.1f} MB", megabytes), *run.seconds.ceiling,
                rate_of(batch, *run.seconds.ceiling));
  }
  return text + "</table></div>\n";
}

}  // namespace

batch_counts count(const demo_batch& batch, const engine_run& run) {
  batch_counts counts{.tensors = batch.tensors.size()};
  for (std::size_t i = 0; i < batch.tensors.size(); ++i) {
    switch (fate_of(batch.tensors[i], run, i)) {
      case fate::mapped: ++counts.mapped; break;
      case fate::otherwise: ++counts.otherwise; break;
      case fate::empty: ++counts.empty; break;
      case fate::refused: ++counts.refused; break;
    }
  }
  return counts;
}

std::string report_of(const demo_batch& batch, const engine_run& run, const check_result& checked) {
  constexpr std::string_view sheet =
      "<h2>The contact sheet</h2>\n<p>The demo also draws pictures of different sizes and pads them into one batch: "
      "each is copied to a place of equal size, and zeros fill the rest. The contact sheet shows that batch; the "
      "hatched "
      "parts are the zeros. It lies next to this page, in <code>out/contact_sheet.png</code>.</p>\n";
  std::string body = head_of(batch, run, checked) + batch_of(batch, run) + close_up(batch, run);
  body += times_of(batch, run, checked);
  body += sheet;
  return drawing::html_page("tmap demo", body, style);
}

}  // namespace tmap::demo
