// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/json_text.hpp"

#include <sstream>

#include "apps/tmap/text_position.hpp"

namespace tmap::tool {

bool looks_like_json(const std::string& text) {
  constexpr const char* blanks = " \t\r\n\xef\xbb\xbf";
  const std::size_t brace = text.find_first_not_of(blanks);
  if (brace == std::string::npos || text[brace] != '{') return false;
  const std::size_t next = text.find_first_not_of(blanks, brace + 1);
  if (next == std::string::npos) return true;
  if (text[next] == '}') return true;
  return text[next] == '"' && next + 1 < text.size() && (text[next + 1] < '0' || text[next + 1] > '9');
}

outcome<std::vector<nlohmann::ordered_json>> read_json(const std::string& text, const std::string& source) {
  std::istringstream stream{text};
  std::vector<nlohmann::ordered_json> values;
  std::size_t begin = 0;
  try {
    while ((stream >> std::ws).good()) {
      begin = static_cast<std::size_t>(stream.tellg());
      stream >> values.emplace_back();
    }
  } catch (const nlohmann::json::parse_error& e) {
    const std::size_t at = begin + (e.byte == 0 ? 0 : e.byte - 1);
    return refuse("{}: is not valid JSON ({})", source, position_in(text, at));
  }
  if (values.empty()) return refuse("{}: is not valid JSON (it is empty)", source);
  return values;
}

}  // namespace tmap::tool
