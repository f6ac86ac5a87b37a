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

/// The arguments of the kernel: sizes and logits of a problem, and its results.
struct score_work {
  std::uint64_t tokens;
  std::uint32_t experts;
  std::uint32_t k;
  moe::logits from;
  std::int32_t* ids;
  float* weights;  ///< null: not wanted
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

__device__ inline float load_logit(const moe::logits& from, std::uint64_t token, std::uint32_t expert) {
  const std::uint64_t row = from.values.address + token * from.values.pitch_bytes;
  float logit = 0;
  switch (from.type) {
    case moe::float_type::f32: logit = reinterpret_cast<const float*>(row)[expert]; break;
    case moe::float_type::bf16: logit = __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(row)[expert]); break;
    case moe::float_type::f16: logit = __half2float(reinterpret_cast<const __half*>(row)[expert]); break;
  }
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

/// The scores of one token, held by a warp. Each lane has `PerLane` of them.
template <std::uint32_t PerLane>
class token_scores {
 public:
  __device__ token_scores(const score_work& work, std::uint64_t token)
      : work_(work), token_(token), lane_(threadIdx.x % device::warp_lanes) {
#pragma unroll
    for (std::uint32_t i = 0; i < PerLane; ++i) {
      const std::uint32_t expert = expert_at(i);
      logits_[i] = expert < work.experts ? load_logit(work.from, token, expert) : -INFINITY;
    }
#pragma unroll
    for (std::uint32_t i = 0; i < PerLane; ++i) {
      keys_[i] = expert_at(i) < work.experts ? key_of(score(expert_at(i), logits_[i])) : no_key;
    }
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
      if (expert_at(i) < work_.experts && (chosen >> expert_at(i) / size & 1) == 0) keys_[i] = no_key;
    }
  }

  /// Chooses k experts. Lane j returns the j-th of them.
  __device__ std::uint32_t choose() {
    std::uint32_t mine = 0;
    best_of_warp local = best_of_lane();
    for (std::uint32_t j = 0; j < work_.k; ++j) {
      const std::uint32_t expert = best_of(local.key, local.number).number;
      if (lane_ == j) mine = expert;
      if (expert % device::warp_lanes == lane_) {
        take(expert / device::warp_lanes);
        local = best_of_lane();
      }
    }
    return mine;
  }

  /// Returns the weight of the expert that `choose` returned to this lane.
  __device__ float weight_of(std::uint32_t expert) const {
    const bool is_chosen = lane_ < work_.k;
    const float logit = is_chosen ? load_logit(work_.from, token_, expert) : -INFINITY;
    float weight = 0;
    switch (work_.from.scoring) {
      case moe::scoring::softmax_then_top_k: weight = part_of_all(logit); break;
      case moe::scoring::top_k_then_softmax: weight = part_of_chosen(logit, is_chosen); break;
      case moe::scoring::sigmoid: weight = sigmoid(logit); break;
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

  __device__ float score(std::uint32_t expert, float logit) const {
    if (work_.from.scoring != moe::scoring::sigmoid) return logit;
    return sigmoid(logit) + (work_.from.bias == nullptr ? 0.0f : work_.from.bias[expert]);
  }

  __device__ best_of_warp best_of_lane() const {
    best_of_warp best{keys_[0], lane_};
#pragma unroll
    for (std::uint32_t i = 1; i < PerLane; ++i) {
      if (keys_[i] > best.key) best = {keys_[i], expert_at(i)};
    }
    return best;
  }

  // Indexes by constants only, so that the keys stay in registers.
  __device__ void take(std::uint32_t slot) {
#pragma unroll
    for (std::uint32_t i = 0; i < PerLane; ++i) {
      if (i == slot) keys_[i] = no_key;
    }
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

  __device__ float part_of_all(float logit) const {
    float most = -INFINITY;
#pragma unroll
    for (std::uint32_t i = 0; i < PerLane; ++i) most = fmaxf(most, logits_[i]);
    most = join_lanes(most, larger_float{});
    float sum = 0;
#pragma unroll
    for (std::uint32_t i = 0; i < PerLane; ++i) {
      if (expert_at(i) < work_.experts) sum += exponential(logits_[i], most);
    }
    return exponential(logit, most) / join_lanes(sum, add_floats{});
  }

  __device__ static float part_of_chosen(float logit, bool is_chosen) {
    const float most = join_lanes(logit, larger_float{});
    const float mine = is_chosen ? exponential(logit, most) : 0;
    return mine / join_lanes(mine, add_floats{});
  }

  const score_work& work_;
  std::uint64_t token_;
  std::uint32_t lane_;
  float logits_[PerLane];
  std::uint32_t keys_[PerLane];
};

}  // namespace detail

/// Writes the choices of one token. All lanes of a warp call it.
template <std::uint32_t PerLane>
__device__ void choose_experts(const score_work& work, std::uint64_t token) {
  detail::token_scores<PerLane> scores(work, token);
  if (work.from.groups.count > 1) scores.choose_groups();
  const std::uint32_t expert = scores.choose();
  const std::uint32_t lane = threadIdx.x % device::warp_lanes;
  const std::uint64_t choice = token * work.k + lane;
  if (lane < work.k) work.ids[choice] = static_cast<std::int32_t>(expert);
  if (work.weights == nullptr) return;
  const float weight = scores.weight_of(expert);
  if (lane < work.k) work.weights[choice] = weight;
}

}  // namespace tmap::kernels
