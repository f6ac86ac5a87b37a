// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

// Reads SVG and HTML that the project writes, for tests that count elements and compare values.

namespace tmap::testing {

/// One tag that opens an element.
struct element {
  std::string name;
  std::map<std::string, std::string> attributes;

  std::string attribute(const std::string& key) const {
    const auto found = attributes.find(key);
    return found == attributes.end() ? std::string{} : found->second;
  }
  bool has_class(const std::string& wanted) const {
    return (' ' + attribute("class") + ' ').find(' ' + wanted + ' ') != std::string::npos;
  }
};

namespace detail {

inline std::map<std::string, std::string> attributes_of(std::string_view tag) {
  std::map<std::string, std::string> found;
  for (std::size_t at = 0; (at = tag.find("=\"", at)) != std::string_view::npos;) {
    const std::size_t name = tag.find_last_of(" \n", at) + 1;
    const std::size_t end = tag.find('"', at + 2);
    found.emplace(tag.substr(name, at - name), tag.substr(at + 2, end - at - 2));
    at = end;
  }
  return found;
}

}  // namespace detail

/// Lists the elements of a page or a picture in their order. Every element that opens must close,
/// in the right order.
inline std::vector<element> elements_of(std::string_view text) {
  constexpr std::string_view alone[] = {"meta", "link", "br"};
  std::vector<element> elements;
  std::vector<std::string> open;
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string_view::npos;) {
    const std::size_t end = text.find('>', at);
    const std::string_view tag = text.substr(at + 1, end - at - 1);
    at = end;
    if (tag.starts_with('!')) continue;
    if (tag.starts_with('/')) {
      EXPECT_FALSE(open.empty()) << tag;
      if (open.empty()) break;
      EXPECT_EQ(open.back(), tag.substr(1));
      open.pop_back();
      continue;
    }
    const std::string name{tag.substr(0, tag.find_first_of(" \n/"))};
    elements.push_back({name, detail::attributes_of(tag)});
    bool is_alone = tag.ends_with('/');
    for (const std::string_view each : alone) is_alone = is_alone || name == each;
    if (!is_alone) open.push_back(name);
  }
  EXPECT_TRUE(open.empty()) << open.back();
  return elements;
}

/// The elements of a class.
inline std::vector<element> of_class(const std::vector<element>& all, const std::string& wanted) {
  std::vector<element> found;
  for (const element& each : all) {
    if (each.has_class(wanted)) found.push_back(each);
  }
  return found;
}

/// The text between the tags of the first element with this id.
inline std::string text_of_id(const std::string& page, const std::string& id) {
  const std::size_t at = page.find("id=\"" + id + "\"");
  if (at == std::string::npos) return {};
  const std::size_t begin = page.find('>', at) + 1;
  return page.substr(begin, page.find('<', begin) - begin);
}

}  // namespace tmap::testing
