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
  tensor_load = 0x5b4,      ///< UTMALDG
  tensor_store = 0x3b5,     ///< UTMASTG
  bulk_copy = 0x3ba,        ///< UBLKCP, of both directions
  bulk_add = 0x3bb,         ///< UBLKRED
  bulk_flush = 0x9b7,       ///< UTMACMDFLUSH
  map_control = 0x9b9,      ///< UTMACCTL: invalidate, or prefetch
  wait_scoreboard = 0x91a,  ///< DEPBAR
  memory_barrier = 0x992,   ///< MEMBAR
  proxy_fence = 0x3c6,      ///< FENCE.VIEW.ASYNC
  cache_control = 0x98f,    ///< CCTL
  load = 0x980,             ///< LD
  load_global = 0x981,      ///< LDG
  store_shared = 0x388,     ///< STS
  reduce_global = 0x98e,    ///< REDG
  block_barrier = 0xb1d,    ///< BAR
  phase_check = 0x5a7       ///< SYNCS.PHASECHK: the wait of an mbarrier
};

inline bool is_invalidate(const instruction& each) {
  constexpr std::uint64_t prefetches = 1 << 18;
  return each.operation() == map_control && (each.high & prefetches) == 0;
}

// Forms of one operation differ in the upper bits.

inline bool is_fence_of_all_gpus(const instruction& each) {  // MEMBAR.ALL.SYS
  return each.operation() == memory_barrier && (each.high >> 12 & 0xf) == 0xb;
}
inline bool is_load_of_all_gpus(const instruction& each) {  // LDG.STRONG.SYS
  return each.operation() == load_global && (each.high >> 12 & 0xff) == 0xf5;
}
inline bool is_weak_load(const instruction& each) {
  const std::uint64_t order = each.high >> 12 & 0xff;
  return (each.operation() == load && order == 1) || (each.operation() == load_global && (order == 1 || order == 0xe1));
}
inline bool is_l1_invalidate(const instruction& each) {  // CCTL.IVALL
  return each.operation() == cache_control && (each.high >> 24 & 0xff) == 2;
}
inline bool is_global_proxy_fence(const instruction& each) {
  return each.operation() == proxy_fence && (each.high & 0x100) != 0;
}
inline bool is_shared_proxy_fence(const instruction& each) {
  return each.operation() == proxy_fence && (each.high & 0x100) == 0;
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

/// Returns the PTX of one kernel, out of that of a file.
inline std::string ptx_of(const std::string& all, const std::string& kernel) {
  const std::size_t begin = all.find(".entry " + kernel + "(");
  if (begin == std::string::npos) throw std::runtime_error("no kernel " + kernel);
  return all.substr(begin, all.find(".entry ", begin + 1) - begin);
}

inline bool has_in_order(const std::string& text, const std::vector<std::string>& parts) {
  std::size_t at = 0;
  for (const std::string& each : parts) {
    at = text.find(each, at);
    if (at == std::string::npos) return false;
    at += each.size();
  }
  return true;
}

}  // namespace tmap::testing
