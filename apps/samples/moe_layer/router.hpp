// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>

#include <cmath>
#include <cstdint>
#include <limits>

// Which experts a token goes to, and with which weights: one function for the GPU and the host.

namespace moe {

/// How many experts each token goes to.
inline constexpr std::uint32_t choices = 2;

/// The two experts with the largest logits, the larger first. Of equal logits the lower number
/// wins; NaN counts as the least of all, so that any two or more logits leave two experts.
class top_two {
 public:
  /// Experts come in the order of their numbers.
  TMAP_HOST_DEVICE void take(std::int32_t expert, float logit) {
    const candidate next{expert, logit == logit ? logit : -std::numeric_limits<float>::infinity()};
    if (first_.expert < 0 || next.logit > first_.logit) {
      second_ = first_;
      first_ = next;
    } else if (second_.expert < 0 || next.logit > second_.logit) {
      second_ = next;
    }
  }
  TMAP_HOST_DEVICE std::int32_t first() const { return first_.expert; }
  TMAP_HOST_DEVICE std::int32_t second() const { return second_.expert; }
  /// The softmax of the two logits.
  TMAP_HOST_DEVICE float share_of_first() const { return 1 / (1 + std::exp(second_.logit - first_.logit)); }
  TMAP_HOST_DEVICE float share_of_second() const { return 1 / (1 + std::exp(first_.logit - second_.logit)); }

 private:
  struct candidate {
    std::int32_t expert{-1};
    float logit{};
  };
  candidate first_;
  candidate second_;
};

}  // namespace moe
