// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/ragged_host.h>
#include <tmap/ragged.hpp>

#include "lib/interop/ragged_call.hpp"

using namespace tmap::interop;

tmap_status tmap_ragged_on_host_copy(const tmap_tensor_batch* source, const tmap_tensor_batch* destination,
                                     const tmap_ragged_options* options) {
  return call(__func__, [&] {
    return between(
        source, destination, options, tmap::on_host{},
        [&](const auto& from, const auto& to, const auto& with) { return tmap::ragged::copy(from, to, with); });
  });
}

tmap_status tmap_ragged_on_host_pack(const tmap_tensor_batch* source, const tmap_packed_buffer* destination,
                                     const tmap_ragged_options* options) {
  return call(__func__, [&] {
    return between(
        source, destination, options, tmap::on_host{},
        [&](const auto& from, const auto& to, const auto& with) { return tmap::ragged::pack(from, to, with); });
  });
}

tmap_status tmap_ragged_on_host_unpack(const tmap_packed_buffer* source, const tmap_tensor_batch* destination,
                                       const tmap_ragged_options* options) {
  return call(__func__, [&] {
    return between(
        source, destination, options, tmap::on_host{},
        [&](const auto& from, const auto& to, const auto& with) { return tmap::ragged::unpack(from, to, with); });
  });
}

tmap_status tmap_ragged_on_host_pad(const tmap_tensor_batch* source, const tmap_dense_batch* destination,
                                    const void* fill, const tmap_ragged_options* options) {
  return call(__func__, [&] {
    return between(source, destination, options, tmap::on_host{},
                   [&](const auto& from, const auto& to, const auto& with) {
                     return tmap::ragged::pad(from, to, fill_of(fill, *source), with);
                   });
  });
}

tmap_status tmap_ragged_on_host_unpad(const tmap_dense_batch* source, const tmap_tensor_batch* destination,
                                      const tmap_ragged_options* options) {
  return call(__func__, [&] {
    return between(
        source, destination, options, tmap::on_host{},
        [&](const auto& from, const auto& to, const auto& with) { return tmap::ragged::unpad(from, to, with); });
  });
}

tmap_status tmap_ragged_on_host_gather_rows(const tmap_row_matrix* source, const tmap_row_index* index,
                                            const tmap_row_matrix* destination, const tmap_ragged_options* options) {
  return call(__func__, [&] {
    return between(
        source, destination, options, tmap::on_host{},
        [&](const auto& from, const auto& to, const auto& with) {
          return tmap::ragged::gather_rows(from, index_of(*index), to, with);
        },
        checked_index(index));
  });
}

tmap_status tmap_ragged_on_host_scatter_rows(const tmap_row_matrix* source, const tmap_row_index* index,
                                             const tmap_row_matrix* destination, const tmap_ragged_options* options) {
  return call(__func__, [&] {
    return between(
        source, destination, options, tmap::on_host{},
        [&](const auto& from, const auto& to, const auto& with) {
          return tmap::ragged::scatter_rows(from, index_of(*index), to, with);
        },
        checked_index(index));
  });
}

tmap_status tmap_ragged_on_host_transpose(const tmap_tensor_batch* source, const tmap_tensor_batch* destination,
                                          const tmap_ragged_options* options) {
  return call(__func__, [&] {
    return between(
        source, destination, options, tmap::on_host{},
        [&](const auto& from, const auto& to, const auto& with) { return tmap::ragged::transpose(from, to, with); });
  });
}

tmap_status tmap_ragged_on_host_cast(const tmap_tensor_batch* source, const tmap_tensor_batch* destination,
                                     const tmap_cast_values* values, const tmap_ragged_options* options) {
  return call(__func__, [&] {
    return between(
        source, destination, options, tmap::on_host{},
        [&](const auto& from, const auto& to, const auto& with) {
          return tmap::ragged::cast(from, to, values_of(*values), with);
        },
        checked_values(values));
  });
}

tmap_status tmap_ragged_on_host_saxpy(float a, const tmap_tensor_batch* x, const tmap_tensor_batch* y,
                                      const tmap_ragged_options* options) {
  return call(__func__, [&] {
    return between(
        x, y, options, tmap::on_host{},
        [&](const auto& from, const auto& to, const auto& with) { return tmap::ragged::saxpy(a, from, to, with); }, {},
        {"x", "y"});
  });
}

tmap_status tmap_ragged_on_host_max_pool_1d(const tmap_tensor_batch* source, const tmap_tensor_batch* destination,
                                            uint32_t radius, const tmap_ragged_options* options) {
  return call(__func__, [&] {
    return between(source, destination, options, tmap::on_host{},
                   [&](const auto& from, const auto& to, const auto& with) {
                     return tmap::ragged::max_pool_1d(from, to, radius, with);
                   });
  });
}

tmap_status tmap_ragged_on_host_reduce_rows(const tmap_tensor_batch* source, uint32_t type, uint32_t reduction,
                                            const tmap_tensor_batch* destination, const tmap_ragged_options* options) {
  return call(__func__, [&] {
    return between(
        source, destination, options, tmap::on_host{},
        [&](const auto& from, const auto& to, const auto& with) {
          return tmap::ragged::reduce_rows(from, static_cast<tmap::ragged::value_type>(type),
                                           static_cast<tmap::ragged::row_reduction>(reduction), to, with);
        },
        checked_reduction(type, reduction));
  });
}
