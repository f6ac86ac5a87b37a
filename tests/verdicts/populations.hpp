// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/patch_rules.hpp>
#include <tmap/validate.hpp>

#include <sstream>
#include <string>
#include <type_traits>

#include "support/spec_text.hpp"
#include "verdicts/corner_source.hpp"

// The populations to judge: patches of templates, tiled specs, im2col specs. A verdict holds the
// bits of a `rule_set` or, for patches, of a `map_status`. Items share a context, which holds
// everything else that judging needs.

namespace tmap::testing {

/// Judges patches as the encoder does.
struct patch_population {
  static constexpr const char* name = "patches";
  static constexpr std::uint32_t max_windows = 3;
  using item = map_patch;

  struct context {
    map_template base;
    address_window windows[max_windows];
    std::uint32_t window_count;
  };

  static context make_context(corner_source& source) {
    context made{source.base(), {}, source.random().one_in(2) ? 0 : source.random().below32(max_windows + 1)};
    for (std::uint32_t i = 0; i < made.window_count; ++i) made.windows[i] = source.window();
    return made;
  }
  static item make_item(corner_source& source, const context& shared) {
    return source.patch(shared.base, shared.windows, shared.window_count);
  }

  TMAP_HOST_DEVICE static std::uint64_t judge(const context& shared, const item& patch) {
    return judge_patched(patched_spec(shared.base, patch), shared.base.fields, shared.windows, shared.window_count)
        .bits;
  }
  /// Does the same by checking every rule, without knowing what a patch can change.
  static std::uint64_t judge_whole(const context& shared, const item& patch) {
    const tensor_spec spec = question(shared, patch);
    for (std::uint32_t axis = 0; axis < spec.rank; ++axis) {
      if (spec.global_dim[axis] == 0) return map_status::empty_bit;
    }
    return broken_rules(spec).bits | check_address_windows(spec, shared.windows, shared.window_count).bits;
  }
  static bool driver_knows(const context&, const device_limits&) { return true; }
  static tensor_spec question(const context& shared, const item& patch) { return patched_spec(shared.base, patch); }

  static std::string text(const context& shared, const item& patch) {
    std::ostringstream out;
    out << spec_columns << "\n  " << to_text(question(shared, patch)) << "\n  fields " << bits_of(shared.base.fields);
    for (std::uint32_t i = 0; i < shared.window_count; ++i) {
      out << ", window " << shared.windows[i].begin << " to " << shared.windows[i].end;
    }
    return out.str();
  }
};

/// Judges whole specs with `broken_rules`. Some are for a GPU with the packed types, which a Hopper
/// driver does not know.
template <class Spec>
struct spec_population {
  static constexpr bool is_tiled = std::is_same_v<Spec, tensor_spec>;
  static constexpr const char* name = is_tiled ? "tiled specs" : "im2col specs";
  using item = Spec;

  struct context {
    device_limits limits;
  };

  static context make_context(corner_source& source) {
    return {source.random().one_in(8) ? device_limits{100, 232448} : hopper_limits()};
  }
  static item make_item(corner_source& source, const context& shared) {
    if constexpr (is_tiled) {
      return shared.limits.compute_capability >= 100 && source.random().one_in(2) ? source.packed() : source.tiled();
    } else {
      return source.im2col();
    }
  }

  TMAP_HOST_DEVICE static std::uint64_t judge(const context& shared, const item& spec) {
    return broken_rules(spec, shared.limits).bits;
  }
  /// Uses the list of violations, which only the host makes here.
  static std::uint64_t judge_whole(const context& shared, const item& spec) {
    rule_set broken;
    for (const violation& v : validate(spec, shared.limits)) {
      if (info(v.id).level == severity::error) broken.insert(v.id);
    }
    return broken.bits;
  }
  static bool driver_knows(const context& shared, const device_limits& own) {
    return shared.limits.compute_capability == own.compute_capability;
  }
  static const item& question(const context&, const item& spec) { return spec; }

  static std::string text(const context& shared, const item& spec) {
    std::ostringstream out;
    out << spec_columns << (is_tiled ? "" : " ") << (is_tiled ? "" : im2col_columns) << "\n  " << to_text(spec)
        << "\n  compute capability " << shared.limits.compute_capability;
    return out.str();
  }
};

using tiled_population = spec_population<tensor_spec>;
using im2col_population = spec_population<im2col_spec>;

/// The number of items that share a context. Each block has its own generator, so that it is the
/// same alone and on any number of threads.
inline constexpr std::uint64_t block_items = 1 << 12;

template <class Population>
class block_source {
 public:
  explicit block_source(std::uint64_t block)
      : source_{block * 0x10001 + 7}, shared_{Population::make_context(source_)} {}

  const typename Population::context& shared() const { return shared_; }
  typename Population::item next() { return Population::make_item(source_, shared_); }

 private:
  corner_source source_;
  typename Population::context shared_;
};

}  // namespace tmap::testing
