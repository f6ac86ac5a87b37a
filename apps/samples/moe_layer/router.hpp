// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>

#include <cmath>
#include <cstdint>
#include <limits>

// Chooses the experts of a token and their weights. The GPU and the host share this code.

namespace moe {

/// The number of experts per token.
inline constexpr std::uint32_t choices = 2;

/// Finds the two experts with the largest logits, the larger first. The lower number wins among
/// equal logits. NaN is smaller than all numbers, so any two or more logits give two experts.
class top_two {
 public:
  /// Takes the experts in the order of their numbers.
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
  /// Returns the softmax of the larger of the two logits.
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
