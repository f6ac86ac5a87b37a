// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tensor_map.hpp>

#include <string>
#include <vector>

#include "apps/tmap/pad/outcome.hpp"

namespace tmap::tool {

/// The help of an argument that is a map.
inline constexpr const char* map_help = "A file, - for standard input, or a map as text (see below)";

/// The forms in which a person may write maps, for the end of a help text.
inline const std::string map_forms =
    "A map as text is hex digits in memory order, 16 words of 64 bits, 32 words of 32 bits, b'...' of Python, or JSON "
    "of inspect or explain. A file may also hold raw bytes, or a dump of xxd, hexdump -C or gdb. ";

/// Reads the maps that an argument names: text, or a file (text or raw bytes) with one map or an
/// array of them. If a text has more than one meaning, it prints on standard error how it read it.
/// Fails with a sentence that names the argument.
outcome<std::vector<tensor_map>> read_maps(const std::string& argument);

/// Returns the maps that the content of a file holds. Fails with a sentence that begins with
/// `name`.
outcome<std::vector<tensor_map>> maps_of_content(const std::string& content, const std::string& name);

/// Reads the maps of several arguments: files one after the other, or the words of one text.
outcome<std::vector<tensor_map>> read_maps(const std::vector<std::string>& arguments);

/// Reads the map of an argument that names just one.
outcome<tensor_map> read_one_map(const std::string& argument);

}  // namespace tmap::tool
