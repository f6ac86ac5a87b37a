// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tmap::pytorch {

/// The schemas of operators with kernels in this library. The Python package defines the same.
inline constexpr const char* operator_schemas[] = {
    "grouped_mm(Tensor a, Tensor b, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None, *, "
    "bool zero_rest=False) -> Tensor",
    "grouped_scaled_mm(Tensor a, Tensor b, Tensor a_scales, Tensor b_scales, Tensor offs, Tensor? bias=None, "
    "ScalarType? out_dtype=None, *, bool fast_accumulation=False, bool zero_rest=False) -> Tensor",
    "pad_ragged(Tensor values, Tensor offsets, SymInt max_length, *, float fill=0.0, str format=\"ends\") -> Tensor",
    "unpad_ragged(Tensor dense, Tensor offsets, SymInt total, *, str format=\"ends\") -> Tensor",
};

}  // namespace tmap::pytorch
