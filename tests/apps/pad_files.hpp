// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/support/picture/picture.hpp"
#include "apps/tmap/pad/tensor.hpp"

#include <fmt/ranges.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

// Makes files for the tests of `tmap pad`, byte by byte, and a folder to put them in.

namespace tmap::testing {

using bytes_t = std::vector<std::byte>;

inline bytes_t to_bytes(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

inline tool::byte_storage stored(bytes_t bytes) {
  return std::make_shared<const bytes_t>(std::move(bytes));
}

/// Returns bytes that count up and repeat after 251, so that a shifted copy differs everywhere.
inline std::string counting_bytes(std::size_t size, std::size_t first = 0) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>((first + i) % 251 + 1);
  return text;
}

/// Returns a .npy file with any header text. The length field has the size that the version needs,
/// little endian.
inline std::string npy_file(int version, const std::string& dictionary, const std::string& data) {
  const std::string text = dictionary + "\n";
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) file += static_cast<char>(text.size() >> 8 * i & 255);
  return file + text + data;
}

inline std::string npy_of(const std::string& descr, const std::string& shape, const std::string& data) {
  return npy_file(1, "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }", data);
}

inline std::string safetensors_file(const std::string& header, const std::string& data) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> 8 * i & 255);
  return file + header + data;
}

/// Holds one tensor of a safetensors file under construction.
struct safetensors_writer {
  std::string header{"{\"__metadata__\":{\"format\":\"test\"}"};
  std::string data;

  void add(const std::string& name, const std::string& dtype, const std::vector<std::uint64_t>& shape,
           std::uint64_t item) {
    std::uint64_t size = item;
    for (const std::uint64_t dim : shape) size *= dim;
    header += fmt::format(R"(,"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", name, dtype,
                          fmt::join(shape, ","), data.size(), data.size() + size);
    data += counting_bytes(size, data.size());
  }

  std::string file() const { return safetensors_file(header + "}", data); }
};

/// Returns 55 tensors of 11 types, ranks 0 to 4 and many sizes.
inline std::string mixed_safetensors() {
  const std::pair<const char*, std::uint64_t> types[] = {{"F32", 4}, {"F16", 2},     {"BF16", 2}, {"U8", 1},
                                                         {"I8", 1},  {"BOOL", 1},    {"I64", 8},  {"I32", 4},
                                                         {"C64", 8}, {"F8_E4M3", 1}, {"F64", 8}};
  safetensors_writer writer;
  std::mt19937 random{7};
  for (std::uint64_t i = 0; i < 55; ++i) {
    std::vector<std::uint64_t> shape;
    for (std::uint64_t axis = 0; axis < i / 11; ++axis) shape.push_back(1 + random() % 9);
    const auto& [dtype, item] = types[i % 11];
    writer.add("block" + std::to_string(i), dtype, shape, item);
  }
  return writer.file();
}

/// Returns a PNG picture whose pixels all differ from their neighbours.
inline bytes_t sample_png(std::uint32_t width, std::uint32_t height, std::uint32_t seed = 0) {
  drawing::picture image{width, height, {}};
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      image.set(x, y,
                {static_cast<std::uint8_t>(x * 5 + seed), static_cast<std::uint8_t>(y * 3 + 1),
                 static_cast<std::uint8_t>((x ^ y) + seed)});
    }
  }
  return image.png();
}

/// Makes a folder, and removes it with all its files at the end of the test.
class temporary_folder {
 public:
  temporary_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tmap-pad-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~temporary_folder() { std::filesystem::remove_all(path_); }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string string() const { return path_.string(); }

  std::string write(const std::string& name, std::string_view content) const {
    std::ofstream{path_ / name, std::ios::binary} << content;
    return (path_ / name).string();
  }
  std::string write(const std::string& name, const bytes_t& content) const {
    return write(name, std::string_view{reinterpret_cast<const char*>(content.data()), content.size()});
  }

  std::vector<std::string> names(const std::string& folder) const {
    std::vector<std::string> found;
    if (!std::filesystem::exists(path_ / folder)) return found;
    for (const auto& entry : std::filesystem::directory_iterator{path_ / folder}) {
      found.push_back(entry.path().filename().string());
    }
    return found;
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_text_file(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace tmap::testing
