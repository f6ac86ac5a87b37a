// SPDX-License-Identifier: Apache-2.0
#include "apps/support/terminal.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace tmap::apps {
namespace {

colour_choice chosen = colour_choice::automatic;

bool has_value(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool is_dumb() {
  const char* terminal = std::getenv("TERM");
  return terminal == nullptr || std::string_view{terminal} == "dumb";
}

bool shows_colours(int file) {
  if (chosen != colour_choice::automatic) return chosen == colour_choice::always;
  return isatty(file) == 1 && !has_value("NO_COLOR") && !is_dumb();
}

const char* code_of(style s) {
  switch (s) {
    case style::good: return "32";
    case style::bad: return "1;31";
    case style::warning: return "33";
    case style::hint: return "36";
    case style::strong: return "1";
  }
  return "0";
}

std::string styled_for(int file, style s, std::string_view text) {
  if (!shows_colours(file)) return std::string{text};
  return fmt::format("\x1b[{}m{}\x1b[0m", code_of(s), text);
}

}  // namespace

void choose_colours(colour_choice choice) {
  chosen = choice;
}

std::string styled(style s, std::string_view text) {
  return styled_for(STDOUT_FILENO, s, text);
}

std::string styled_error(style s, std::string_view text) {
  return styled_for(STDERR_FILENO, s, text);
}

bool shows_colours() {
  return shows_colours(STDOUT_FILENO);
}

}  // namespace tmap::apps
