// SPDX-License-Identifier: Apache-2.0
#pragma once

// Chooses the experts of each token from its logits. A warp takes one token and keeps all scores in
// registers: lane l holds experts l, l + 32, l + 64 and so on.

#include <tmap/device/warp.cuh>
#include <tmap/moe.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/batch/scan.cuh"

namespace tmap::kernels {

/// Holds all by which experts are chosen.
struct score_work {
  std::uint32_t experts;
  std::uint32_t k;
  moe::logits from;
  bool wants_weights;
};

/// An expert of a token.
struct scored_choice {
  std::int32_t expert;
  float weight;
};

namespace detail {

/// Scores are compared as integers in the same order. This key stands for an expert that cannot be
/// chosen (any more). No score has it.
inline constexpr std::uint32_t no_key = 0;

__device__ inline std::uint32_t key_of(float score) {
  const float ordered = isnan(score) ? -INFINITY : score + 0.0f;  // -0 becomes 0
  const std::uint32_t bits = __float_as_uint(ordered);
  return (bits >> 31) != 0 ? ~bits : bits | 1u << 31;
}

__device__ inline float score_of(std::uint32_t key) {
  return __uint_as_float((key >> 31) != 0 ? key & ~(1u << 31) : ~key);
}

__device__ inline float to_float(float x) {
  return x;
}
__device__ inline float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
__device__ inline float to_float(__half x) {
  return __half2float(x);
}

/// Calls `use(row)` with the logits of a token, as a pointer to their type.
template <class Use>
__device__ void with_logits(const moe::logits& from, std::uint64_t token, const Use& use) {
  const std::uint64_t row = from.values.address + token * from.values.pitch_bytes;
  switch (from.type) {
    case moe::float_type::f32: use(reinterpret_cast<const float*>(row)); break;
    case moe::float_type::bf16: use(reinterpret_cast<const __nv_bfloat16*>(row)); break;
    case moe::float_type::f16: use(reinterpret_cast<const __half*>(row)); break;
  }
}

__device__ inline float without_nan(float logit) {
  return isnan(logit) ? -INFINITY : logit;
}

__device__ inline float sigmoid(float x) {
  return 1.0f / (1.0f + expf(-x));
}

/// Returns e^(x - most), which is 1 for equal infinities.
__device__ inline float exponential(float x, float most) {
  return x == most ? 1.0f : expf(x - most);
}

struct best_of_warp {
  std::uint32_t key;
  std::uint32_t number;
};

/// Returns the largest key of all lanes, and the lowest number that has it.
__device__ inline best_of_warp best_of(std::uint32_t key, std::uint32_t number) {
  const std::uint32_t most = __reduce_max_sync(~0u, key);
  return {most, __reduce_min_sync(~0u, key == most ? number : ~0u)};
}

/// An expert that was chosen, with the key of its score.
struct chosen_expert {
  std::uint32_t number;
  std::uint32_t key;
};

/// The scores of one token, held by a warp. Each lane has `PerLane` of them.
template <std::uint32_t PerLane>
class token_scores {
 public:
  __device__ token_scores(const score_work& work, std::uint64_t token)
      : work_(work), token_(token), lane_(threadIdx.x % device::warp_lanes) {
    float logits[PerLane];
    with_logits(work.from, token, [&](const auto* row) {
#pragma unroll
      for (std::uint32_t i = 0; i < PerLane; ++i) logits[i] = is_expert(i) ? to_float(row[expert_at(i)]) : 0;
    });
#pragma unroll
    for (std::uint32_t i = 0; i < PerLane; ++i) {
      keys_[i] = is_expert(i) ? key_of(score(expert_at(i), without_nan(logits[i]))) : no_key;
    }
    if (work.wants_weights && work.from.scoring == moe::scoring::softmax_then_top_k) sum_up();
  }

  /// Leaves only the experts of the best groups.
  __device__ void choose_groups() {
    const moe::expert_groups& groups = work_.from.groups;
    const std::uint32_t size = work_.experts / groups.count;
    std::uint32_t group_key = no_key;  // of group `lane_`
    for (std::uint32_t g = 0; g < groups.count; ++g) {
      const std::uint32_t key = key_of_group(g * size, (g + 1) * size);
      if (lane_ == g) group_key = key;
    }
    std::uint32_t chosen = 0;
    for (std::uint32_t i = 0; i < groups.chosen; ++i) {
      const std::uint32_t group = best_of(group_key, lane_).number;
      chosen |= 1u << group;
      if (lane_ == group) group_key = no_key;
    }
#pragma unroll
    for (std::uint32_t i = 0; i < PerLane; ++i) {
      if (is_expert(i) && (chosen >> expert_at(i) / size & 1) == 0) keys_[i] = no_key;
    }
  }

  /// Chooses k experts. Lane j returns the j-th of them.
  __device__ chosen_expert choose() {
    chosen_expert mine{};
    for (std::uint32_t j = 0; j < work_.k; ++j) {
      const std::uint32_t most = __reduce_max_sync(~0u, most_of_lane());
      const std::uint32_t number = __reduce_min_sync(~0u, first_with(most));
      if (lane_ == j) mine = {number, most};
      take(number);
    }
    return mine;
  }

  /// Returns the weight of the expert that `choose` returned to this lane.
  __device__ float weight_of(const chosen_expert& expert) const {
    const bool is_chosen = lane_ < work_.k;
    const float score = is_chosen ? score_of(expert.key) : -INFINITY;
    float weight = 0;
    switch (work_.from.scoring) {
      case moe::scoring::softmax_then_top_k: weight = exponential(score, most_) / sum_; break;
      case moe::scoring::top_k_then_softmax: weight = part_of_chosen(score, is_chosen); break;
      case moe::scoring::sigmoid: weight = without_bias(score, expert.number); break;
    }
    if (!is_chosen) weight = 0;
    if (work_.from.renormalise) {
      const float sum = join_lanes(weight, add_floats{});
      if (sum != 0) weight /= sum;
    }
    return weight * work_.from.scale;
  }

 private:
  struct add_floats {
    __device__ float operator()(float a, float b) const { return a + b; }
  };
  struct larger_float {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
  };

  __device__ std::uint32_t expert_at(std::uint32_t i) const {
    return i * device::warp_lanes + lane_;
  }
  __device__ bool is_expert(std::uint32_t i) const {
    return expert_at(i) < work_.experts;
  }

  __device__ float score(std::uint32_t expert, float logit) const {
    if (work_.from.scoring != moe::scoring::sigmoid) return logit;
    return sigmoid(logit) + (work_.from.bias == nullptr ? 0.0f : work_.from.bias[expert]);
  }

  /// Returns sigmoid(logit) of an expert whose score may have a bias.
  __device__ float without_bias(float score, std::uint32_t expert) const {
    if (work_.from.bias == nullptr || lane_ >= work_.k) return score;
    float logit = 0;
    with_logits(work_.from, token_, [&](const auto* row) { logit = to_float(row[expert]); });
    return sigmoid(without_nan(logit));
  }

  __device__ std::uint32_t most_of_lane() const {
    std::uint32_t most = keys_[0];
#pragma unroll
    for (std::uint32_t i = 1; i < PerLane; ++i) most = max(most, keys_[i]);
    return most;
  }

  /// Returns the lowest expert of this lane that has the key; ~0 if there is none.
  __device__ std::uint32_t first_with(std::uint32_t key) const {
    std::uint32_t number = ~0u;
#pragma unroll
    for (std::uint32_t i = PerLane; i-- > 0;) {
      if (keys_[i] == key) number = expert_at(i);
    }
    return number;
  }

  // Indexes by constants only, so that the keys stay in registers.
  __device__ void take(std::uint32_t expert) {
#pragma unroll
    for (std::uint32_t i = 0; i < PerLane; ++i) {
      if (expert_at(i) == expert) keys_[i] = no_key;
    }
  }

  /// Finds the largest logit, and the sum of the softmax.
  __device__ void sum_up() {
    most_ = score_of(__reduce_max_sync(~0u, most_of_lane()));
    float sum = 0;
#pragma unroll
    for (std::uint32_t i = 0; i < PerLane; ++i) {
      if (is_expert(i)) sum += exponential(score_of(keys_[i]), most_);
    }
    sum_ = join_lanes(sum, add_floats{});
  }

  /// Returns the key of the group's score to all lanes.
  __device__ std::uint32_t key_of_group(std::uint32_t begin, std::uint32_t end) const {
    std::uint32_t first = no_key;
    std::uint32_t second = no_key;
#pragma unroll
    for (std::uint32_t i = 0; i < PerLane; ++i) {
      const bool is_member = expert_at(i) >= begin && expert_at(i) < end;
      const std::uint32_t key = is_member ? keys_[i] : no_key;
      second = max(second, min(first, key));
      first = max(first, key);
    }
    const best_of_warp best = best_of(first, lane_);
    if (work_.from.groups.score == moe::group_scoring::largest) return best.key;
    const std::uint32_t next = __reduce_max_sync(~0u, lane_ == best.number ? second : first);
    return key_of(score_of(best.key) + score_of(next));
  }

  __device__ static float part_of_chosen(float logit, bool is_chosen) {
    const float most = join_lanes(logit, larger_float{});
    const float mine = is_chosen ? exponential(logit, most) : 0;
    return mine / join_lanes(mine, add_floats{});
  }

  const score_work& work_;
  std::uint64_t token_;
  std::uint32_t lane_;
  std::uint32_t keys_[PerLane];
  float most_{};  // logit
  float sum_{1};  // of the softmax of all logits
};

}  // namespace detail

/// Chooses the experts of one token. Lane j returns the j-th of them. All lanes of a warp call it.
template <std::uint32_t PerLane>
__device__ scored_choice choose_experts(const score_work& work, std::uint64_t token) {
  detail::token_scores<PerLane> scores(work, token);
  if (work.from.groups.count > 1) scores.choose_groups();
  const detail::chosen_expert expert = scores.choose();
  return {static_cast<std::int32_t>(expert.number), work.wants_weights ? scores.weight_of(expert) : 0};
}

}  // namespace tmap::kernels
