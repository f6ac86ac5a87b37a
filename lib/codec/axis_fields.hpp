// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/codec/layout.hpp"

// The rows of the table that repeat for each dimension, by index.

namespace tmap::codec {

inline constexpr const field* global_dim[] = {&row("global_dim[0]"), &row("global_dim[1]"), &row("global_dim[2]"),
                                              &row("global_dim[3]"), &row("global_dim[4]")};
inline constexpr const field* global_stride_bytes[] = {&row("global_stride_bytes[0]"), &row("global_stride_bytes[1]"),
                                                       &row("global_stride_bytes[2]"), &row("global_stride_bytes[3]")};
inline constexpr const field* box_dim[] = {&row("box_dim[0]"), &row("box_dim[1]"), &row("box_dim[2]"),
                                           &row("box_dim[3]"), &row("box_dim[4]")};
inline constexpr const field* element_stride[] = {&row("element_stride[0]"), &row("element_stride[1]"),
                                                  &row("element_stride[2]"), &row("element_stride[3]"),
                                                  &row("element_stride[4]")};

/// Corners by spatial dimensions - 1 and axis.
inline constexpr const field* lower_corner[3][3] = {
    {&row("lower_corner[0]", im2col_rank_3)},
    {&row("lower_corner[0]", im2col_rank_4), &row("lower_corner[1]", im2col_rank_4)},
    {&row("lower_corner[0]", im2col_rank_5), &row("lower_corner[1]", im2col_rank_5),
     &row("lower_corner[2]", im2col_rank_5)}};
inline constexpr const field* upper_corner[3][3] = {
    {&row("upper_corner[0]", im2col_rank_3)},
    {&row("upper_corner[0]", im2col_rank_4), &row("upper_corner[1]", im2col_rank_4)},
    {&row("upper_corner[0]", im2col_rank_5), &row("upper_corner[1]", im2col_rank_5),
     &row("upper_corner[2]", im2col_rank_5)}};

}  // namespace tmap::codec
