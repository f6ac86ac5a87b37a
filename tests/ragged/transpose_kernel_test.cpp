// SPDX-License-Identifier: Apache-2.0
// Tests the transposing kernel alone: the host plans the work and pins each tensor's route, and the
// driver encodes maps. Compares all memory of the destinations, including the bytes around the
// tensors.

#include <tmap/encode.hpp>
#include <tmap/route.hpp>
#include <tmap/tensor_spec.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "device/gpu_fixture.hpp"
#include "kernels/ragged/transpose_tiles.hpp"
#include "kernels/ragged_launch.hpp"
#include "support/ragged_reference.hpp"

namespace tmap::testing {
namespace {

extents swapped(const extents& shape) {
  return {{shape.dim[1], shape.dim[0], shape.dim[2], shape.dim[3], shape.dim[4]}};
}

/// Returns the map of one source, if it can have one.
std::optional<tensor_map> map_of(const host_tensor& tensor, std::uint64_t memory, std::uint32_t element_bytes,
                                 std::uint32_t rank) {
  const kernels::transpose_box box = kernels::transpose_map_box(element_bytes);
  if (!box.exists) return std::nullopt;
  tensor_spec spec;
  spec.global_address = memory + tensor.begin;
  spec.type = box.type;
  spec.rank = rank;
  spec.swizzle = box.swizzle;
  for (std::uint32_t axis = 0; axis < rank; ++axis) {
    spec.global_dim[axis] = tensor.shape.dim[axis];
    spec.box_dim[axis] = box.box_dim[axis];
    if (axis + 1 < rank) spec.global_stride_bytes[axis] = tensor.stride[axis];
  }
  const result<tensor_map> map = encode(spec);
  return map ? std::optional<tensor_map>(*map) : std::nullopt;
}

/// Holds the work on the device. A tensor that has no map is planned for route `plain` instead.
class planned_batch {
 public:
  template <class RouteOf>
  planned_batch(const host_batch& source, std::uint64_t from, const host_batch& destination, std::uint64_t to,
                const RouteOf& route_of)
      : rule_(kernels::transpose_pieces(source.element_bytes, source.rank)) {
    for (std::uint64_t i = 0; i < source.tensors.size(); ++i) {
      kernels::planned_tensor planned = planned_from(source.tensors[i], from, destination.tensors[i], to);
      planned.way = route_of(i);
      planned.tensor = static_cast<std::uint32_t>(i);
      std::optional<tensor_map> map;
      if (planned.way == route::tensor_map && source.tensors[i].shape.elements() != 0) {
        map = map_of(source.tensors[i], from, source.element_bytes, source.rank);
      }
      if (!map && planned.way == route::tensor_map) planned.way = route::plain;
      mapped_ += map ? 1 : 0;
      maps_.push_back(map.value_or(tensor_map{}));
      maps_.push_back({});
      tensors_.push_back(planned);
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + kernels::transpose_piece_count(planned, rule_));
    }
    device_tensors_.emplace(tensors_);
    device_ends_.emplace(ends_);
    device_maps_.emplace(maps_);
  }

  kernels::planned_work work() const {
    kernels::planned_work work{};
    work.tensors = device_tensors_->data();
    work.ends = device_ends_->data();
    work.count = tensors_.size();
    work.rule = rule_;
    work.maps = device_maps_->data();
    work.queue = reinterpret_cast<device::queue_counter*>(device_queue_.data());
    return work;
  }
  std::uint64_t mapped() const { return mapped_; }

 private:
  static kernels::planned_tensor planned_from(const host_tensor& source, std::uint64_t from,
                                              const host_tensor& destination, std::uint64_t to) {
    kernels::planned_tensor planned{};
    planned.source = from + source.begin;
    planned.destination = to + destination.begin;
    for (std::uint32_t axis = 0; axis < max_rank; ++axis) planned.dim[axis] = source.shape.dim[axis];
    for (std::uint32_t i = 0; i + 1 < max_rank; ++i) {
      planned.source_stride[i] = source.stride[i];
      planned.destination_stride[i] = destination.stride[i];
    }
    return planned;
  }

  kernels::piece_rule rule_;
  std::vector<kernels::planned_tensor> tensors_;
  std::vector<std::uint64_t> ends_;
  std::vector<tensor_map> maps_;
  std::uint64_t mapped_{};
  std::optional<device_array<kernels::planned_tensor>> device_tensors_;
  std::optional<device_array<std::uint64_t>> device_ends_;
  std::optional<device_array<tensor_map>> device_maps_;
  device_array<std::uint32_t> device_queue_{std::vector<std::uint32_t>{0}};
};

/// Returns shapes near the tile's sides, one row, one column, pixels to planes and back, and empty
/// ones.
std::vector<extents> shapes_of(std::uint32_t rank, random_source& random) {
  const std::uint64_t pairs[][2] = {{1, 1},     {1, 1000},  {1000, 1},  {3, 5000},  {5000, 3},  {4, 4097},  {17, 300},
                                    {300, 17},  {16, 16},   {31, 33},   {32, 64},   {64, 32},   {63, 65},   {64, 64},
                                    {65, 63},   {127, 129}, {128, 128}, {129, 127}, {200, 96},  {256, 256}, {40, 1024},
                                    {1024, 40}, {8, 9000},  {3, 30001}, {20003, 3}, {300, 700}, {700, 300}, {515, 64},
                                    {0, 7},     {7, 0},     {130, 2},   {2, 130},   {512, 24}};
  std::vector<extents> shapes;
  for (const auto& pair : pairs) {
    extents shape;
    shape.dim[0] = pair[0];
    shape.dim[1] = pair[1];
    for (std::uint32_t axis = 2; axis < rank; ++axis) shape.dim[axis] = 1 + random.below(2);
    shapes.push_back(shape);
  }
  for (int i = 0; i < 40; ++i) {
    extents shape;
    for (std::uint32_t axis = 0; axis < rank; ++axis) shape.dim[axis] = 1 + random.below(axis < 2 ? 150 : 3);
    shapes.push_back(shape);
  }
  return shapes;
}

struct transpose_case {
  std::uint32_t element_bytes;
  std::uint32_t rank;
};

class transpose_kernel_test : public gpu_test {
 protected:
  /// Tests one random layout of all shapes. Returns how many tensors were loaded through a map.
  template <class RouteOf>
  static std::uint64_t run(transpose_case sizes, random_source& random, const RouteOf& route_of) {
    const std::vector<extents> shapes = shapes_of(sizes.rank, random);
    std::vector<extents> turned;
    for (const extents& shape : shapes) turned.push_back(swapped(shape));
    const host_batch source = lay_out(random, shapes, sizes.rank, sizes.element_bytes, source_form::array);
    host_batch expected = lay_out(random, turned, sizes.rank, sizes.element_bytes, source_form::array);
    const device_array<unsigned char> from(source.bytes);
    const device_array<unsigned char> to(expected.bytes);
    const planned_batch planned(source, from.address(), expected, to.address(), route_of);
    EXPECT_EQ(kernels::launch_transpose(planned.work(), sizes.element_bytes, device(), nullptr), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    reference::transpose(source, expected);
    expect_bytes(expected.bytes, to.download());
    expect_bytes(source.bytes, from.download());
    return planned.mapped();
  }

  static kernels::device_shape device() {
    int multiprocessors = 0;
    EXPECT_EQ(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0), cudaSuccess);
    return {static_cast<std::uint32_t>(multiprocessors), 227 * 1024};
  }
};

/// Tests every size with every rank, in several layouts each.
template <class Check>
void for_each_case(const Check& check) {
  for (const std::uint32_t element_bytes : {1u, 2u, 3u, 4u, 5u, 8u, 12u, 16u}) {
    for (std::uint32_t rank = 2; rank <= max_rank; ++rank) {
      SCOPED_TRACE(::testing::Message() << "element bytes " << element_bytes << ", rank " << rank);
      random_source random(element_bytes * 100 + rank);
      for (int layout = 0; layout < 3; ++layout) check(transpose_case{element_bytes, rank}, random);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST_F(transpose_kernel_test, loads_through_maps) {
  std::uint64_t mapped = 0;
  for_each_case([&](transpose_case sizes, random_source& random) {
    mapped += run(sizes, random, [](std::uint64_t) { return route::tensor_map; });
  });
  EXPECT_GT(mapped, 500u);
}

TEST_F(transpose_kernel_test, loads_by_bulk_copies) {
  for_each_case([](transpose_case sizes, random_source& random) {
    run(sizes, random, [](std::uint64_t) { return route::bulk; });
  });
}

TEST_F(transpose_kernel_test, loads_by_asynchronous_copies) {
  for_each_case([](transpose_case sizes, random_source& random) {
    run(sizes, random, [](std::uint64_t) { return route::ldgsts; });
  });
}

TEST_F(transpose_kernel_test, loads_plainly) {
  for_each_case([](transpose_case sizes, random_source& random) {
    run(sizes, random, [](std::uint64_t) { return route::plain; });
  });
}

TEST_F(transpose_kernel_test, mixes_routes_in_a_batch) {
  for_each_case([](transpose_case sizes, random_source& random) {
    run(sizes, random, [&](std::uint64_t) { return static_cast<route>(random.below32(route_count)); });
  });
}

}  // namespace
}  // namespace tmap::testing
