// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/text_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

namespace tmap::tool {
namespace {

/// More is no list of maps but a mistake, such as /dev/zero.
constexpr std::size_t max_bytes = std::size_t{1} << 30;

using file_handle = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

int leave_open(std::FILE*) {
  return 0;
}

file_handle open(const std::string& path) {
  if (path == "-") return {stdin, leave_open};
  return {std::fopen(path.c_str(), "rb"), std::fclose};
}

}  // namespace

std::string shown_path(const std::string& path) {
  return path == "-" ? "standard input" : path;
}

outcome<std::string> read_text(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return refuse("{}: is a folder, not a file", path);
  const file_handle file = open(path);
  if (!file) return refuse("{}: {}", path, std::strerror(errno));
  std::string content;
  char buffer[1 << 16];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, file.get())) {
    content.append(buffer, count);
    if (content.size() > max_bytes) return refuse("{}: is larger than 1 GiB", shown_path(path));
  }
  if (std::ferror(file.get()) != 0) return refuse("{}: {}", shown_path(path), std::strerror(errno));
  return content;
}

}  // namespace tmap::tool
