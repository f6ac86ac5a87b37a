// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/ragged.h>
#include <tmap/ragged.hpp>

#include <algorithm>
#include <iterator>

#include "lib/interop/ragged_call.hpp"

namespace tmap::interop {
namespace {

answer choose(const tmap_tensor_layout* tensor, uint32_t policy, uint32_t allowed, uint32_t* route, uint32_t* reason) {
  arguments given;
  given.structure(tensor, "tensor");
  check_routes(given, policy, allowed, {"policy", "allowed"});
  given.pointer(route, "route");
  given.pointer(reason, "reason");
  if (!given) return given.complaint();
  tensor_layout layout;
  layout.address = tensor->address;
  layout.element_bytes = tensor->element_bytes;
  layout.rank = tensor->rank;
  std::copy(std::begin(tensor->dim), std::end(tensor->dim), layout.dim);
  std::copy(std::begin(tensor->stride_bytes), std::end(tensor->stride_bytes), layout.stride_bytes);
  const route_choice chosen =
      choose_route(layout, {policy_of(policy).value_or(route_policy::enable), routes_of(allowed)});
  *route = static_cast<std::uint32_t>(chosen.way);
  *reason = static_cast<std::uint32_t>(chosen.why);
  return {};
}

engine on(tmap_stream stream, const workspace& scratch = {}) {
  return on_stream{cuda::stream_ref{stream}, scratch};
}

}  // namespace
}  // namespace tmap::interop

using namespace tmap::interop;

tmap_status tmap_choose_route(const tmap_tensor_layout* tensor, uint32_t policy, uint32_t allowed, uint32_t* route,
                              uint32_t* reason) {
  return call(__func__, [&] { return choose(tensor, policy, allowed, route, reason); });
}

tmap_status tmap_ragged_workspace_bytes(uint64_t count, uint32_t rank, uint64_t* bytes) {
  return call(__func__, [&]() -> answer {
    arguments given;
    given.pointer(bytes, "bytes");
    if (!given) return given.complaint();
    const tmap::result<std::uint64_t> needed = tmap::ragged::workspace_bytes(count, rank);
    if (!needed) return needed.error();
    *bytes = *needed;
    return {};
  });
}

tmap_status tmap_ragged_copy(const tmap_tensor_batch* source, const tmap_tensor_batch* destination, void* workspace,
                             uint64_t workspace_bytes, const tmap_ragged_options* options, tmap_stream stream) {
  return call(__func__, [&] {
    return between(
        source, destination, options, on(stream, {workspace, workspace_bytes}),
        [&](const auto& from, const auto& to, const auto& with) { return tmap::ragged::copy(from, to, with); });
  });
}

tmap_status tmap_ragged_pack(const tmap_tensor_batch* source, const tmap_packed_buffer* destination, void* workspace,
                             uint64_t workspace_bytes, const tmap_ragged_options* options, tmap_stream stream) {
  return call(__func__, [&] {
    return between(
        source, destination, options, on(stream, {workspace, workspace_bytes}),
        [&](const auto& from, const auto& to, const auto& with) { return tmap::ragged::pack(from, to, with); });
  });
}

tmap_status tmap_ragged_unpack(const tmap_packed_buffer* source, const tmap_tensor_batch* destination, void* workspace,
                               uint64_t workspace_bytes, const tmap_ragged_options* options, tmap_stream stream) {
  return call(__func__, [&] {
    return between(
        source, destination, options, on(stream, {workspace, workspace_bytes}),
        [&](const auto& from, const auto& to, const auto& with) { return tmap::ragged::unpack(from, to, with); });
  });
}

tmap_status tmap_ragged_pad(const tmap_tensor_batch* source, const tmap_dense_batch* destination, const void* fill,
                            void* workspace, uint64_t workspace_bytes, const tmap_ragged_options* options,
                            tmap_stream stream) {
  return call(__func__, [&] {
    return between(source, destination, options, on(stream, {workspace, workspace_bytes}),
                   [&](const auto& from, const auto& to, const auto& with) {
                     return tmap::ragged::pad(from, to, fill_of(fill, *source), with);
                   });
  });
}

tmap_status tmap_ragged_unpad(const tmap_dense_batch* source, const tmap_tensor_batch* destination, void* workspace,
                              uint64_t workspace_bytes, const tmap_ragged_options* options, tmap_stream stream) {
  return call(__func__, [&] {
    return between(
        source, destination, options, on(stream, {workspace, workspace_bytes}),
        [&](const auto& from, const auto& to, const auto& with) { return tmap::ragged::unpad(from, to, with); });
  });
}

tmap_status tmap_ragged_gather_rows(const tmap_row_matrix* source, const tmap_row_index* index,
                                    const tmap_row_matrix* destination, const tmap_ragged_options* options,
                                    tmap_stream stream) {
  return call(__func__, [&] {
    return between(
        source, destination, options, on(stream),
        [&](const auto& from, const auto& to, const auto& with) {
          return tmap::ragged::gather_rows(from, index_of(*index), to, with);
        },
        checked_index(index));
  });
}

tmap_status tmap_ragged_scatter_rows(const tmap_row_matrix* source, const tmap_row_index* index,
                                     const tmap_row_matrix* destination, const tmap_ragged_options* options,
                                     tmap_stream stream) {
  return call(__func__, [&] {
    return between(
        source, destination, options, on(stream),
        [&](const auto& from, const auto& to, const auto& with) {
          return tmap::ragged::scatter_rows(from, index_of(*index), to, with);
        },
        checked_index(index));
  });
}

tmap_status tmap_ragged_transpose(const tmap_tensor_batch* source, const tmap_tensor_batch* destination,
                                  void* workspace, uint64_t workspace_bytes, const tmap_ragged_options* options,
                                  tmap_stream stream) {
  return call(__func__, [&] {
    return between(
        source, destination, options, on(stream, {workspace, workspace_bytes}),
        [&](const auto& from, const auto& to, const auto& with) { return tmap::ragged::transpose(from, to, with); });
  });
}

tmap_status tmap_ragged_cast(const tmap_tensor_batch* source, const tmap_tensor_batch* destination,
                             const tmap_cast_values* values, void* workspace, uint64_t workspace_bytes,
                             const tmap_ragged_options* options, tmap_stream stream) {
  return call(__func__, [&] {
    return between(
        source, destination, options, on(stream, {workspace, workspace_bytes}),
        [&](const auto& from, const auto& to, const auto& with) {
          return tmap::ragged::cast(from, to, values_of(*values), with);
        },
        checked_values(values));
  });
}

tmap_status tmap_ragged_saxpy(float a, const tmap_tensor_batch* x, const tmap_tensor_batch* y, void* workspace,
                              uint64_t workspace_bytes, const tmap_ragged_options* options, tmap_stream stream) {
  return call(__func__, [&] {
    return between(
        x, y, options, on(stream, {workspace, workspace_bytes}),
        [&](const auto& from, const auto& to, const auto& with) { return tmap::ragged::saxpy(a, from, to, with); }, {},
        {"x", "y"});
  });
}

tmap_status tmap_ragged_max_pool_1d(const tmap_tensor_batch* source, const tmap_tensor_batch* destination,
                                    uint32_t radius, void* workspace, uint64_t workspace_bytes,
                                    const tmap_ragged_options* options, tmap_stream stream) {
  return call(__func__, [&] {
    return between(source, destination, options, on(stream, {workspace, workspace_bytes}),
                   [&](const auto& from, const auto& to, const auto& with) {
                     return tmap::ragged::max_pool_1d(from, to, radius, with);
                   });
  });
}

tmap_status tmap_ragged_reduce_rows(const tmap_tensor_batch* source, uint32_t type, uint32_t reduction,
                                    const tmap_tensor_batch* destination, void* workspace, uint64_t workspace_bytes,
                                    const tmap_ragged_options* options, tmap_stream stream) {
  return call(__func__, [&] {
    return between(
        source, destination, options, on(stream, {workspace, workspace_bytes}),
        [&](const auto& from, const auto& to, const auto& with) {
          return tmap::ragged::reduce_rows(from, static_cast<tmap::ragged::value_type>(type),
                                           static_cast<tmap::ragged::row_reduction>(reduction), to, with);
        },
        checked_reduction(type, reduction));
  });
}
