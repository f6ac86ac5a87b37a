// SPDX-License-Identifier: Apache-2.0
#include "apps/drawing/page.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tmap::drawing {
namespace {

// Hues 0 to 7 have a pale class (c0) for areas and a strong one (s0) for what stands out in them.
constexpr std::string_view style = R"(
:root{color-scheme:light dark;--paper:#fff;--card:#f6f7f9;--ink:#1b1f27;--soft:#5a6372;--edge:#c3cad5;--bad:#b3261e;
--badpaper:#fdeceb;--good:#1a7f45;--none:#eceef2;--pad:#b9c0cc;--fill:#d9a441;--accent:#c2410c;
--c0:#bcd9f7;--s0:#2f7fd0;--c1:#b9e3dc;--s1:#1c8f7e;--c2:#d6e8ae;--s2:#6d9417;--c3:#f9dfa0;--s3:#c08a08;
--c4:#f9c9ae;--s4:#d2622a;--c5:#f4c0d3;--s5:#c93a74;--c6:#dac9f5;--s6:#8453d1;--c7:#cfd6e2;--s7:#64748b}
@media (prefers-color-scheme:dark){:root{--paper:#14171d;--card:#1c2028;--ink:#e7eaf0;--soft:#9aa5b5;--edge:#3b4351;
--bad:#ff8a80;--badpaper:#3a1e1f;--good:#6ed69a;--none:#262b34;--pad:#4a5361;--fill:#c7933a;--accent:#ff9d66;
--c0:#1f4468;--s0:#5fb0ff;--c1:#18504a;--s1:#45cbb5;--c2:#3e5116;--s2:#a8d14a;--c3:#5b4510;--s3:#edbb45;
--c4:#632f17;--s4:#ff9463;--c5:#602039;--s5:#ff7eaf;--c6:#432f6b;--s6:#b590ff;--c7:#343c4a;--s7:#93a3ba}}
svg{background:var(--paper)}
svg text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:var(--ink)}
svg .m{font:11px ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace}
svg .q{fill:var(--soft)} svg .h{font-weight:600} svg .r{text-anchor:end} svg .mid{text-anchor:middle}
svg .title{font-size:17px;font-weight:650}
svg .badtext{fill:var(--bad)} svg .goodtext{fill:var(--good)}
.c0{fill:var(--c0)}.c1{fill:var(--c1)}.c2{fill:var(--c2)}.c3{fill:var(--c3)}.c4{fill:var(--c4)}.c5{fill:var(--c5)}
.c6{fill:var(--c6)}.c7{fill:var(--c7)}.s0{fill:var(--s0)}.s1{fill:var(--s1)}.s2{fill:var(--s2)}.s3{fill:var(--s3)}
.s4{fill:var(--s4)}.s5{fill:var(--s5)}.s6{fill:var(--s6)}.s7{fill:var(--s7)}
.none{fill:var(--none)}.paper{fill:var(--paper)}.odd{fill-opacity:.6}.badarea{fill:var(--bad);fill-opacity:.3}
.frame{fill:none;stroke:var(--edge)}.outline{fill:none;stroke:var(--ink)}
.mark{fill:var(--accent);fill-opacity:.22;stroke:var(--accent);stroke-width:2}
.grid{fill:none;stroke:var(--ink);stroke-opacity:.4;stroke-width:.8}.edge{fill:none;stroke:var(--edge)}
.hpad{fill:none;stroke:var(--pad);stroke-width:1.2}.hfill{fill:none;stroke:var(--fill);stroke-width:1.4;stroke-opacity:.65}
)";

constexpr std::string_view page_style = R"(
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1360px;margin:0 auto;padding:20px 16px 60px}
h1{font-size:26px;line-height:1.25;margin:8px 0 6px}h2{font-size:20px;line-height:1.3;margin:36px 0 8px}
h3{font-size:14px;margin:0 0 6px;font-weight:600}
p{max-width:78ch;margin:6px 0}figure{margin:14px 0 26px}figcaption{margin-bottom:10px}figcaption h2{margin-top:22px;font-size:17px}
.panels{display:flex;flex-wrap:wrap;gap:22px 30px;align-items:flex-start}.panel{min-width:0;max-width:100%}
.panel svg{display:block;max-width:100%;height:auto}
code,.mono{font-family:ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.9em}
.bad{color:var(--bad)}.soft{color:var(--soft)}
)";

std::string view_of(const canvas& picture) {
  return fmt::format(R"(width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}")", picture.width(),
                     picture.height());
}

/// Stacks the figures of an SVG file from top to bottom.
class svg_stack {
 public:
  void add(const figure& drawn) {
    y_ += 30;
    line(drawn.title, "title");
    for (const std::string& sentence : drawn.sentences) {
      for (const std::string& part : wrapped(sentence, 130)) line(part, "t");
    }
    add_panels(drawn.panels);
  }
  std::string file() const {
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1:.0f}\" viewBox=\"0 0 {0} {1:.0f}\">\n"
        "<style>{2}</style>\n<rect width=\"100%\" height=\"100%\" class=\"paper\"/>\n{3}</svg>\n",
        width, y_ + 20, style_sheet(), elements_);
  }

 private:
  static constexpr int width = 980;
  static constexpr double margin = 30;
  static constexpr double gap = 50;

  void line(const std::string& words, const char* css) {
    elements_ += fmt::format("<text x=\"{}\" y=\"{:.0f}\" class=\"{}\">{}</text>\n", margin, y_, css, escaped(words));
    y_ += 19;
  }
  /// Places two panels in a row.
  void add_panels(const std::vector<panel>& panels) {
    for (std::size_t i = 0; i < panels.size(); i += 2) {
      double height = 0;
      y_ += 22;
      for (std::size_t side = 0; side < 2 && i + side < panels.size(); ++side) {
        const panel& part = panels[i + side];
        const double x = margin + static_cast<double>(side) * (panel_width + gap);
        elements_ += fmt::format("<text x=\"{}\" y=\"{:.0f}\" class=\"h\">{}</text>\n", x, y_, escaped(part.heading));
        elements_ += fmt::format("<svg x=\"{}\" y=\"{:.0f}\" {}>\n{}</svg>\n", x, y_ + 8, view_of(part.picture),
                                 part.picture.elements());
        height = std::max(height, part.picture.height());
      }
      y_ += height + 12;
    }
  }

  double y_{10};
  std::string elements_;
};

}  // namespace

std::string_view style_sheet() {
  return style;
}

std::string html_of(const figure& drawn) {
  std::string text = fmt::format("<figure id=\"{}\">\n<figcaption><h2>{}</h2>\n", drawn.id, escaped(drawn.title));
  for (const std::string& sentence : drawn.sentences) text += fmt::format("<p>{}</p>\n", escaped(sentence));
  text += "</figcaption>\n<div class=\"panels\">\n";
  for (const panel& part : drawn.panels) {
    text += fmt::format("<div class=\"panel\"><h3>{0}</h3><svg {1} role=\"img\" aria-label=\"{0}\">\n{2}</svg></div>\n",
                        escaped(part.heading), view_of(part.picture), part.picture.elements());
  }
  return text + "</div>\n</figure>\n";
}

std::string html_page(std::string_view title, std::string_view body, std::string_view more_style) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "img-src data:\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>{}{}{}</style>\n</head>\n<body>\n<main>\n{}"
      "</main>\n</body>\n</html>\n",
      escaped(title), style_sheet(), page_style, more_style, body);
}

std::string svg_file(const std::vector<figure>& figures) {
  svg_stack stack;
  for (const figure& drawn : figures) stack.add(drawn);
  return stack.file();
}

}  // namespace tmap::drawing
