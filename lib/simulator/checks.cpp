// SPDX-License-Identifier: Apache-2.0
#include "lib/simulator/checks.hpp"

#include <tmap/decode.hpp>
#include <tmap/rule.hpp>
#include <tmap/validate.hpp>

#include "lib/codec/layout.hpp"
#include "lib/support/arguments.hpp"

namespace tmap::simulator {
namespace {

constexpr std::uint64_t largest_dim = std::uint64_t{1} << 31;
constexpr std::uint32_t tile_alignment = 128;

error raised(status code, rule broken, std::int32_t axis, std::uint64_t found, std::uint64_t allowed) {
  error e{.code = code, .first = broken, .axis = axis, .found = found, .allowed = allowed};
  e.rules.insert(broken);
  return e;
}

/// Drops the bits that have no effect on a tiled copy: words 8 to 15, bits of no field, and the
/// fields that newer GPUs read. The address is checked after everything else, so this drops it too.
tensor_map without_idle_bits(const tensor_map& map) {
  tensor_map read{};
  for (std::uint32_t word = 0; word < 8; ++word)
    read.words[word] = map.words[word] & codec::known_bits(word, codec::tiled);
  for (const codec::bit_range idle : {codec::row("version").low, codec::row("swizzle").high,
                                      codec::row("large_tensor").low, codec::row("global_address").low}) {
    read.words[idle.word] &= ~idle.mask();
  }
  return read;
}

status raised_for(rule broken) {
  // No shared memory holds a tile that breaks T37.
  return broken == rule::t37_box_bytes ? status::illegal_memory_access : status::illegal_instruction;
}

result<tensor_spec> decode_map(const tensor_map& map) {
  if (codec::read(map, codec::row("kind")) != 0) return failure{error{.code = status::illegal_instruction}};
  const auto decoded = decode(without_idle_bits(map));
  if (!decoded) {
    error e = decoded.error();
    e.code = e.rules.empty() ? status::illegal_instruction : raised_for(e.first);
    return failure{e};
  }
  tensor_spec spec = decoded->spec;
  spec.global_address = codec::read(map, codec::row("global_address"));
  if (is_packed(spec.type)) {
    return failure{raised(status::illegal_instruction, rule::t02_element_type, -1,
                          static_cast<std::uint32_t>(spec.type), hopper_element_type_count - 1)};
  }
  if (spec.interleave == interleave::bytes_32 && spec.swizzle != swizzle::bytes_32) {
    // The engine runs such a map, but its result is not measured.
    return failure{raised(status::unsupported, rule::t25_interleave_32_swizzle, -1,
                          static_cast<std::uint32_t>(spec.swizzle), static_cast<std::uint32_t>(swizzle::bytes_32))};
  }
  for (std::uint32_t axis = 0; axis < spec.rank; ++axis) {
    if (spec.global_dim[axis] > largest_dim) {
      return failure{raised(status::illegal_instruction, rule::t36_global_dim_copied, static_cast<std::int32_t>(axis),
                            spec.global_dim[axis], largest_dim)};
    }
  }
  return spec;
}

/// Each thread remembers the last map it read. Decoding takes longer than copying a small tile, and
/// a walk over a tensor uses one map thousands of times.
result<tensor_spec> read_map(const tensor_map& map) {
  struct remembered {
    tensor_map map;
    tensor_spec spec;
  };
  thread_local remembered last{};
  if (last.spec.rank != 0 && last.map == map) return last.spec;
  const auto spec = decode_map(map);
  if (spec) last = {map, *spec};
  return spec;
}

/// Returns a coordinate as `error::found` holds it: with the sign in all 64 bits, as texts read it.
std::uint64_t as_found(std::int32_t coordinate) {
  return static_cast<std::uint64_t>(std::int64_t{coordinate});
}

result<void> check_corner(const tensor_spec& spec, const copy_request& request) {
  const auto coordinates = request.coordinates;
  const auto bytes = static_cast<std::int64_t>(element_bytes(spec.type));
  if (spec.interleave == interleave::none && coordinates[0] * bytes % 16 != 0) {
    return failure{raised(status::illegal_instruction, rule::u09_innermost_coordinate, 0, as_found(coordinates[0]),
                          static_cast<std::uint64_t>(16 / bytes))};
  }
  for (std::uint32_t axis = 0; request.is_store && axis < spec.rank; ++axis) {
    if (coordinates[axis] < 0) {
      return failure{raised(status::illegal_instruction, rule::u03_store_corner, static_cast<std::int32_t>(axis),
                            as_found(coordinates[axis]), 0)};
    }
  }
  return {};
}

result<void> check_instruction(const tensor_spec& spec, const copy_request& request) {
  if (request.coordinates.size() != spec.rank) {
    return failure{
        raised(status::illegal_instruction, rule::u07_instruction_rank, -1, request.coordinates.size(), spec.rank)};
  }
  if (const reduction* op = request.operation; op != nullptr && !check_reduction(spec, *op).empty()) {
    return failure{raised(status::illegal_instruction, rule::u06_reduction_type, -1, static_cast<std::uint32_t>(*op),
                          reductions_of(spec.type).bits())};
  }
  return check_corner(spec, request);
}

result<void> check_alignment(const tensor_spec& spec, std::uint32_t shared_address) {
  if (shared_address % tile_alignment != 0) {
    return failure{raised(status::misaligned_address, rule::u01_shared_alignment, -1, shared_address, tile_alignment)};
  }
  if (spec.global_address % 16 != 0) {
    return failure{raised(status::misaligned_address, rule::t06_address_multiple_of_16, -1, spec.global_address, 16)};
  }
  if (spec.interleave == interleave::bytes_32 && spec.global_address % 32 != 0) {
    return failure{raised(status::misaligned_address, rule::t07_address_interleave_32, -1, spec.global_address, 32)};
  }
  return {};
}

}  // namespace

result<tensor_spec> accept(const copy_request& request) {
  const auto spec = read_map(request.map);
  if (!spec) return spec;
  if (const auto allowed = check_instruction(*spec, request); !allowed) return failure{allowed.error()};
  if (const auto aligned = check_alignment(*spec, request.shared_address); !aligned) return failure{aligned.error()};
  const std::uint64_t needed = tile_footprint_bytes(*spec);
  if (request.tile_size < needed) {
    return support::refused("tile", "has {found} bytes; a tile of this map needs {allowed}", request.tile_size, needed);
  }
  return spec;
}

}  // namespace tmap::simulator
