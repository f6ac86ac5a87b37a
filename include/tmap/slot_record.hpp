// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>

namespace tmap {

/// @file
/// The records that a build with TMAP_CHECK_HAZARDS keeps for each slot, and the log in which its
/// kernels report (docs/hazards.md). The types are the same in every build.

/// Whether this translation unit checks hazards. Not inline, because another one may be built
/// otherwise.
#if defined(TMAP_CHECK_HAZARDS)
constexpr bool checks_hazards = true;
#else
constexpr bool checks_hazards = false;
#endif

/// A use of a map that its batch does not allow.
enum class hazard : std::uint32_t {
  unpublished_slot,        ///< acquired before the batch was encoded: the kernel is not ordered after the encode
  stale_generation,        ///< a ref or writer used after its batch had ended and its slots had been lent again
  acquire_missing,         ///< a tile copied through a map whose slot was written again since the acquire
  rewritten_while_leased,  ///< a map of a reserved batch encoded a second time
  slot_not_open,           ///< a reserved batch encoded into by a kernel that is not ordered after the reserve
  index_out_of_batch,      ///< a map index beyond the batch; the kernel traps, as in every build
};
inline constexpr std::uint32_t hazard_count = 6;

/// Returns the enumerator's name; "invalid" for a value that is no hazard.
TMAP_HOST_DEVICE constexpr const char* name(hazard kind) {
  switch (kind) {
    case hazard::unpublished_slot: return "unpublished_slot";
    case hazard::stale_generation: return "stale_generation";
    case hazard::acquire_missing: return "acquire_missing";
    case hazard::rewritten_while_leased: return "rewritten_while_leased";
    case hazard::slot_not_open: return "slot_not_open";
    case hazard::index_out_of_batch: return "index_out_of_batch";
  }
  return "invalid";
}

/// A hazard, as the thread that found it reports it.
struct hazard_report {
  hazard kind{};
  std::uint32_t map{};                  ///< its index in the batch
  std::uint32_t expected_generation{};  ///< of the ref or writer
  std::uint32_t found_generation{};     ///< of the slot
  std::uint64_t block{};                ///< counted through the grid, x first
  std::uint32_t thread{};               ///< counted through the block, x first
  std::uint32_t reserved{};
};

/// The reports of kernels, in pinned mapped host memory, zeroed before its first use. Kernels only
/// add to it, so the host may read it at any time, even if the context is broken.
struct alignas(16) hazard_log {
  std::uint64_t counts[hazard_count]{};  ///< by kind
  hazard_report first{};                 ///< good once `first_complete` is 1
  std::uint32_t first_claimed{};
  std::uint32_t first_complete{};
};

/// The history of one slot. All zero: never lent, and `log` is unknown.
struct alignas(16) slot_record {
  std::uint32_t generation{};  ///< of the lease the slot was last opened for; 0 for none
  std::uint32_t edition{};     ///< never twice the same while contents come and go; its low bits below
  hazard_log* log{};
};

/// Bits of `slot_record::edition`: a map was begun, and it was published. Each opening adds
/// `edition_step`.
inline constexpr std::uint32_t edition_written = 1;
inline constexpr std::uint32_t edition_published = 2;
inline constexpr std::uint32_t edition_step = 4;

static_assert(sizeof(slot_record) == 16 && std::is_trivially_copyable_v<slot_record>);
static_assert(std::is_trivially_copyable_v<hazard_log>);

}  // namespace tmap
