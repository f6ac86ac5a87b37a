// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/ragged.h>
#include <tmap/ragged.hpp>

#include "lib/interop/convert.hpp"
#include "lib/interop/convert_call.hpp"
#include "lib/interop/inputs.hpp"

namespace tmap::interop {
namespace {

/// A policy and a set of routes that are arguments of their own.
struct route_arguments {
  void check(arguments& all) const { check_routes(all, policy, allowed, "policy", "allowed"); }
  route_options value() const { return {policy_of(policy).value_or(route_policy::enable), routes_of(allowed)}; }

  std::uint32_t policy;
  std::uint32_t allowed;
};

/// An element to fill with, of the size that a checked source has.
struct fill_input {
  void check(arguments&) const {}
  ragged::fill_value value() const { return fill_of(element, source->element_bytes); }

  const void* element;
  const tmap_tensor_batch* source;
};

/// The same for rows that are padded.
struct row_fill_input {
  void check(arguments&) const {}
  ragged::fill_value value() const { return fill_of(element, rows->element_bytes); }

  const void* element;
  const tmap_padded_rows* rows;
};

answer choose(const tensor_layout& tensor, const route_options& choices, std::uint32_t& route, std::uint32_t& reason) {
  const route_choice chosen = choose_route(tensor, choices);
  route = static_cast<std::uint32_t>(chosen.way);
  reason = static_cast<std::uint32_t>(chosen.why);
  return {};
}

}  // namespace
}  // namespace tmap::interop

using namespace tmap::interop;
namespace ragged = tmap::ragged;

tmap_status tmap_choose_route(const tmap_tensor_layout* tensor, uint32_t policy, uint32_t allowed, uint32_t* route,
                              uint32_t* reason) {
  return run(__func__, choose, input{"tensor", tensor}, route_arguments{policy, allowed}, output{"route", route},
             output{"reason", reason});
}

tmap_status tmap_ragged_workspace_bytes(uint64_t count, uint32_t rank, uint64_t* bytes) {
  return ask(__func__, output{"bytes", bytes}, tmap::ragged::workspace_bytes, as_is{count}, as_is{rank});
}

tmap_status tmap_ragged_copy(const tmap_tensor_batch* source, const tmap_tensor_batch* destination,
                             const tmap_call* call) {
  return run(__func__, ragged::copy, input{"source", source}, input{"destination", destination}, ragged_call{call});
}

tmap_status tmap_ragged_pack(const tmap_tensor_batch* source, const tmap_packed_buffer* destination,
                             const tmap_call* call) {
  return run(__func__, ragged::pack, input{"source", source}, input{"destination", destination}, ragged_call{call});
}

tmap_status tmap_ragged_unpack(const tmap_packed_buffer* source, const tmap_tensor_batch* destination,
                               const tmap_call* call) {
  return run(__func__, ragged::unpack, input{"source", source}, input{"destination", destination}, ragged_call{call});
}

tmap_status tmap_ragged_pad(const tmap_tensor_batch* source, const tmap_dense_batch* destination, const void* fill,
                            const tmap_call* call) {
  return run(__func__, ragged::pad, input{"source", source}, input{"destination", destination},
             fill_input{fill, source}, ragged_call{call});
}

tmap_status tmap_ragged_unpad(const tmap_dense_batch* source, const tmap_tensor_batch* destination,
                              const tmap_call* call) {
  return run(__func__, ragged::unpad, input{"source", source}, input{"destination", destination}, ragged_call{call});
}

tmap_status tmap_ragged_gather_rows(const tmap_row_matrix* source, const tmap_row_index* index,
                                    const tmap_row_matrix* destination, const tmap_call* call) {
  return run(__func__, ragged::gather_rows, input{"source", source}, input{"index", index},
             input{"destination", destination}, index_call{call});
}

tmap_status tmap_ragged_scatter_rows(const tmap_row_matrix* source, const tmap_row_index* index,
                                     const tmap_row_matrix* destination, const tmap_call* call) {
  return run(__func__, ragged::scatter_rows, input{"source", source}, input{"index", index},
             input{"destination", destination}, index_call{call});
}

tmap_status tmap_ragged_pad_rows(const tmap_padded_rows* rows, const void* fill, const tmap_call* call) {
  return run(__func__, ragged::pad_rows, input{"rows", rows}, row_fill_input{fill, rows}, padding_call{call});
}

tmap_status tmap_ragged_unpad_rows(const tmap_padded_rows* rows, const tmap_call* call) {
  return run(__func__, ragged::unpad_rows, input{"rows", rows}, padding_call{call});
}

tmap_status tmap_ragged_transpose(const tmap_tensor_batch* source, const tmap_tensor_batch* destination,
                                  const tmap_call* call) {
  return run(__func__, ragged::transpose, input{"source", source}, input{"destination", destination},
             ragged_call{call});
}

tmap_status tmap_ragged_cast(const tmap_tensor_batch* source, const tmap_tensor_batch* destination,
                             const tmap_cast_values* values, const tmap_call* call) {
  return run(__func__, ragged::cast, input{"source", source}, input{"destination", destination},
             input{"values", values}, ragged_call{call});
}

tmap_status tmap_ragged_saxpy(float a, const tmap_tensor_batch* x, const tmap_tensor_batch* y, const tmap_call* call) {
  return run(__func__, ragged::saxpy, as_is{a}, input{"x", x}, input{"y", y}, ragged_call{call});
}

tmap_status tmap_ragged_max_pool_1d(const tmap_tensor_batch* source, const tmap_tensor_batch* destination,
                                    uint32_t radius, const tmap_call* call) {
  return run(__func__, ragged::max_pool_1d, input{"source", source}, input{"destination", destination}, as_is{radius},
             ragged_call{call});
}

tmap_status tmap_ragged_reduce_rows(const tmap_tensor_batch* source, uint32_t type, uint32_t reduction,
                                    const tmap_tensor_batch* destination, const tmap_call* call) {
  return run(__func__, ragged::reduce_rows, input{"source", source}, as_is{static_cast<tmap::ragged::value_type>(type)},
             as_is{static_cast<tmap::ragged::row_reduction>(reduction)}, input{"destination", destination},
             ragged_call{call});
}

tmap_status tmap_ragged_quantize(const tmap_tensor_batch* source, const tmap_tensor_batch* destination,
                                 const tmap_tensor_batch* scales, const tmap_quantize_values* values,
                                 const tmap_call* call) {
  return run(__func__, ragged::quantize, input{"source", source}, input{"destination", destination},
             input{"scales", scales}, input{"values", values}, ragged_call{call});
}

tmap_status tmap_ragged_column_sums(const tmap_tensor_batch* source, uint32_t from,
                                    const tmap_tensor_batch* destination, uint32_t to, const tmap_call* call) {
  return run(__func__, ragged::column_sums, input{"source", source}, as_is{static_cast<ragged::value_type>(from)},
             input{"destination", destination}, as_is{static_cast<ragged::value_type>(to)}, ragged_call{call});
}
