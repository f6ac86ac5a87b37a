// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

// Reads the instructions of one kernel from a cubin, an ELF file with a section of code for each
// kernel. It decodes just enough to find a fence: each instruction has sixteen bytes, and its
// lowest twelve bits hold the operation.

namespace tmap::testing {

struct instruction {
  std::uint64_t low;
  std::uint64_t high;

  std::uint32_t operation() const { return low & 0xfff; }
};

/// Lists operations of compute capability 9.0. They were identified by compiling one PTX
/// instruction at a time.
enum operation : std::uint32_t {
  tensor_load = 0x5b4,     ///< UTMALDG
  bulk_flush = 0x9b7,      ///< UTMACMDFLUSH
  map_control = 0x9b9,     ///< UTMACCTL: invalidate, or prefetch
  wait_scoreboard = 0x91a  ///< DEPBAR
};

inline bool is_invalidate(const instruction& each) {
  constexpr std::uint64_t prefetches = 1 << 18;
  return each.operation() == map_control && (each.high & prefetches) == 0;
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class T>
T read_at(const std::string& bytes, std::uint64_t offset) {
  if (offset + sizeof(T) > bytes.size()) throw std::runtime_error("the cubin is cut off");
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

/// Throws if there is no such kernel.
inline std::vector<instruction> instructions_of(const std::string& cubin, const std::string& kernel) {
  const auto header = read_at<Elf64_Ehdr>(cubin, 0);
  const auto section = [&](std::uint64_t i) {
    return read_at<Elf64_Shdr>(cubin, header.e_shoff + i * header.e_shentsize);
  };
  const std::uint64_t names = section(header.e_shstrndx).sh_offset;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr each = section(i);
    if (cubin.c_str() + names + each.sh_name != ".text." + kernel) continue;
    std::vector<instruction> code;
    for (std::uint64_t at = 0; at + sizeof(instruction) <= each.sh_size; at += sizeof(instruction)) {
      code.push_back(read_at<instruction>(cubin, each.sh_offset + at));
    }
    return code;
  }
  throw std::runtime_error("no kernel " + kernel);
}

}  // namespace tmap::testing
