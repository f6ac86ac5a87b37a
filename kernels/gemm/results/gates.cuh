// SPDX-License-Identifier: Apache-2.0
#pragma once

// The functions of gates, and their derivatives. silu and gelu_tanh are both g * sigma(t), where t
// is g times a polynomial of g.

#include <tmap/grouped_gemm.hpp>

#include <cstdint>

namespace tmap::kernels {

class gate_maths {
 public:
  __device__ explicit gate_maths(const gemm::gate& with) : with_(with) {}

  /// Sets gates = function(gates) * (values + value_shift).
  template <std::uint32_t Count>
  __device__ void apply(float (&gates)[Count], float (&values)[Count]) const {
    if (is_cut()) {
#pragma unroll
      for (std::uint32_t i = 0; i < Count; ++i) {
        gates[i] = cut_gate(gates[i]);
        values[i] = cut_value(values[i]);
      }
    }
    if (with_.function == gemm::gate_function::silu) {
#pragma unroll
      for (std::uint32_t i = 0; i < Count; ++i) {
        gates[i] = __fdividef(gates[i], 1 + __expf(-with_.alpha * gates[i])) * (values[i] + with_.value_shift);
      }
    } else if (with_.function == gemm::gate_function::gelu_tanh) {
#pragma unroll
      for (std::uint32_t i = 0; i < Count; ++i) {
        gates[i] = __fdividef(gates[i], 1 + __expf(-tanh_term(gates[i]))) * (values[i] + with_.value_shift);
      }
    } else {
#pragma unroll
      for (std::uint32_t i = 0; i < Count; ++i) {
        gates[i] = gates[i] * gelu_share(gates[i]) * (values[i] + with_.value_shift);
      }
    }
  }

  /// The gradients of a gate and of its value.
  struct gradients {
    float of_gate;
    float of_value;
  };
  /// `gradient` is that of the result.
  __device__ gradients differentiate(float gradient, float gate, float value) const {
    const float g = cut_gate(gate);
    float share = 0;  // function(g) is g * share
    float slope = 0;
    if (with_.function == gemm::gate_function::gelu) {
      constexpr float density_at_0 = 0.3989422804f;  // 1 / sqrt(2 pi)
      share = gelu_share(g);
      slope = share + g * density_at_0 * __expf(-0.5f * g * g);
    } else {
      const bool is_silu = with_.function == gemm::gate_function::silu;
      const float t = is_silu ? with_.alpha * g : tanh_term(g);
      const float slope_of_t = is_silu ? with_.alpha : 2 * tanh_linear + 6 * tanh_linear * tanh_cubic * g * g;
      share = __fdividef(1, 1 + __expf(-t));
      slope = share * (1 + (1 - share) * g * slope_of_t);
    }
    const float of_gate = gradient * (cut_value(value) + with_.value_shift) * slope;
    const float of_value = gradient * (g * share);
    return {gate > with_.limit ? 0 : of_gate, fabsf(value) > with_.limit ? 0 : of_value};
  }

 private:
  static constexpr float tanh_linear = 0.7978845608f;  // sqrt(2 / pi)
  static constexpr float tanh_cubic = 0.044715f;

  __device__ bool is_cut() const {
    return with_.limit < __int_as_float(0x7f800000);
  }
  // Comparisons keep a NaN, which fminf would hide.
  __device__ float cut_gate(float gate) const {
    return gate > with_.limit ? with_.limit : gate;
  }
  __device__ float cut_value(float value) const {
    const float low = value < -with_.limit ? -with_.limit : value;
    return low > with_.limit ? with_.limit : low;
  }
  /// Returns t for which (1 + tanh(t / 2)) / 2, which is sigma(t), is the share of gelu_tanh.
  static __device__ float tanh_term(float g) {
    return g * fmaf(g * g, 2 * tanh_linear * tanh_cubic, 2 * tanh_linear);
  }
  /// Returns the share of gelu, (1 + erf(g / sqrt(2))) / 2, with an error below 1e-7 (Abramowitz
  /// and Stegun, 7.1.26). erff would take registers that the sums need.
  static __device__ float gelu_share(float g) {
    constexpr float sqrt_half = 0.7071067812f;
    const float x = fabsf(g) * sqrt_half;
    const float t = __fdividef(1, fmaf(0.3275911f, x, 1));
    float sum = fmaf(1.061405429f, t, -1.453152027f);
    sum = fmaf(sum, t, 1.421413741f);
    sum = fmaf(sum, t, -0.284496736f);
    sum = fmaf(sum, t, 0.254829592f);
    const float tail = 0.5f * sum * t * __expf(-x * x);
    return g < 0 ? tail : 1 - tail;
  }

  const gemm::gate& with_;
};

}  // namespace tmap::kernels
