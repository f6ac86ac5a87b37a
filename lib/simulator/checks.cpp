// SPDX-License-Identifier: Apache-2.0
#include "lib/simulator/checks.hpp"

#include <tmap/decode.hpp>
#include <tmap/rule.hpp>
#include <tmap/validate.hpp>

namespace tmap::simulator {
namespace {

constexpr std::uint64_t largest_dim = std::uint64_t{1} << 31;
constexpr std::uint32_t tile_alignment = 128;

error raised(status code, rule broken, std::int32_t axis, std::uint64_t found, std::uint64_t allowed) {
  error e{.code = code, .first = broken, .axis = axis, .found = found, .allowed = allowed};
  e.rules.insert(broken);
  return e;
}

/// Rules an encoder keeps and the engine does not mind, or notices only when it reaches for the memory.
rule_set harmless_rules() {
  rule_set harmless;
  harmless.insert(rule::t25_interleave_32_swizzle);
  harmless.insert(rule::t37_box_bytes);
  return harmless;
}

rule_set alignment_rules() {
  rule_set alignment;
  alignment.insert(rule::t06_address_multiple_of_16);
  alignment.insert(rule::t07_address_interleave_32);
  return alignment;
}

/// Words 8 to 15 have no effect on the engine, whatever they hold.
tensor_map without_notes(const tensor_map& map) {
  tensor_map read = map;
  for (int word = 8; word < 16; ++word) read.words[word] = 0;
  return read;
}

error refused_map(error e) {
  const std::uint64_t severe = e.rules.bits & ~harmless_rules().bits;
  const bool only_misaligned = severe != 0 && (severe & ~alignment_rules().bits) == 0;
  e.code = only_misaligned ? status::misaligned_address : status::illegal_instruction;
  return e;
}

result<tensor_spec> read_map(const tensor_map& map) {
  const auto decoded = decode(without_notes(map));
  if (!decoded) return failure{refused_map(decoded.error())};
  const tensor_spec& spec = decoded->spec;
  if (decoded->kind != map_kind::tiled) return failure{error{.code = status::unsupported}};
  const auto last_mode = static_cast<std::uint32_t>(swizzle::bytes_128);
  if (is_packed(spec.type) || static_cast<std::uint32_t>(spec.swizzle) > last_mode) {
    return failure{error{.code = status::unsupported}};
  }
  for (std::uint32_t axis = 0; axis < spec.rank; ++axis) {
    if (spec.global_dim[axis] > largest_dim) {
      return failure{raised(status::illegal_instruction, rule::t36_global_dim_copied, static_cast<std::int32_t>(axis),
                            spec.global_dim[axis], largest_dim)};
    }
  }
  return spec;
}

result<void> check_corner(const tensor_spec& spec, const copy_request& request) {
  const auto coordinates = request.coordinates;
  const auto bytes = static_cast<std::int64_t>(element_bytes(spec.type));
  if (spec.interleave == interleave::none && coordinates[0] * bytes % 16 != 0) {
    return failure{raised(status::illegal_instruction, rule::u09_innermost_coordinate, 0,
                          static_cast<std::uint32_t>(coordinates[0]), static_cast<std::uint64_t>(16 / bytes))};
  }
  for (std::uint32_t axis = 0; request.is_store && axis < spec.rank; ++axis) {
    if (coordinates[axis] < 0) {
      return failure{raised(status::illegal_instruction, rule::u03_store_corner, static_cast<std::int32_t>(axis),
                            static_cast<std::uint32_t>(coordinates[axis]), 0)};
    }
  }
  return {};
}

result<void> check_instruction(const tensor_spec& spec, const copy_request& request) {
  if (request.coordinates.size() != spec.rank) {
    return failure{raised(status::illegal_instruction, rule::u07_instruction_rank, -1, request.coordinates.size(),
                          spec.rank)};
  }
  if (const reduction* op = request.operation; op != nullptr && !check_reduction(spec, *op).empty()) {
    return failure{raised(status::illegal_instruction, rule::u06_reduction_type, -1, static_cast<std::uint32_t>(*op),
                          reductions_of(spec.type))};
  }
  return check_corner(spec, request);
}

}  // namespace

result<tensor_spec> accept(const copy_request& request) {
  const auto spec = read_map(request.map);
  const bool misaligned_base = !spec && spec.error().code == status::misaligned_address;
  if (!spec && !misaligned_base) return spec;
  if (spec) {
    if (const auto allowed = check_instruction(*spec, request); !allowed) return failure{allowed.error()};
  }
  if (request.shared_address % tile_alignment != 0) {
    return failure{raised(status::misaligned_address, rule::u01_shared_alignment, -1, request.shared_address,
                          tile_alignment)};
  }
  if (misaligned_base) return spec;
  const std::uint64_t needed = tile_footprint_bytes(*spec);
  if (request.tile_size < needed) {
    return failure{error{.code = status::invalid_argument, .found = request.tile_size, .allowed = needed}};
  }
  return spec;
}

}  // namespace tmap::simulator
