// SPDX-License-Identifier: Apache-2.0
// Compares loads through im2col maps with a plain walk over the pixels.
#include "device/toolkit_maps.cuh"

namespace tmap::testing::toolkit_im2col_cases {
namespace {

constexpr std::uint32_t room = 1024;  // floats of shared memory, including some after the column

template <std::uint32_t Rank>
struct column_use {
  std::int32_t at[Rank];
  std::uint16_t offsets[Rank - 2];
  std::uint32_t bytes_of_column;
  float* image;

  __device__ void operator()(device::acquired_map map) const {
    alignas(128) __shared__ float column[room];
    __shared__ device::tile_barrier barrier;
    for (std::uint32_t i = threadIdx.x; i < room; i += blockDim.x) column[i] = -1;
    device::fence_shared_writes();
    if (threadIdx.x == 0) barrier.init(1), device::fence_barrier_init();
    __syncthreads();
    if (threadIdx.x == 0) {
      barrier.arrive_expect(bytes_of_column);
      device::load_im2col(column, map, at, offsets, barrier);
    }
    barrier.wait(0);
    for (std::uint32_t i = threadIdx.x; i < room; i += blockDim.x) image[i] = column[i];
  }
};

/// Walks over the pixels of a column. The position has W, H, D and image.
template <std::uint32_t Rank>
class pixel_walk {
 public:
  pixel_walk(const im2col_spec& spec, const std::int32_t (&at)[Rank]) : spec_(spec) {
    std::copy(at + 1, at + Rank, place_);
  }

  /// Advances in the bounding box, then to the next image.
  void advance() {
    for (std::uint32_t axis = 0; axis < spatial; ++axis) {
      place_[axis] += static_cast<std::int32_t>(spec_.tensor.element_stride[axis + 1]);
      if (place_[axis] < dim(axis) + spec_.upper_corner[axis]) return;
      place_[axis] = spec_.lower_corner[axis];
    }
    ++place_[spatial];
  }

  /// Returns the element of `channel` in a tensor without gaps whose elements count from 1, or 0
  /// outside the tensor.
  float element(std::int32_t channel, const std::uint16_t (&offsets)[Rank - 2]) const {
    const auto channels = static_cast<std::int32_t>(spec_.tensor.global_dim[0]);
    std::int32_t index = 0;
    bool inside = channel < channels;
    for (std::uint32_t i = 0; i <= spatial; ++i) {
      const std::uint32_t axis = spatial - i;
      const std::int32_t at = place_[axis] + (axis < spatial ? offsets[axis] : 0);
      inside = inside && at >= 0 && at < dim(axis);
      index = index * dim(axis) + at;
    }
    return inside ? static_cast<float>(index * channels + channel + 1) : 0;
  }

 private:
  static constexpr std::uint32_t spatial = Rank - 2;
  std::int32_t dim(std::uint32_t axis) const { return static_cast<std::int32_t>(spec_.tensor.global_dim[axis + 1]); }

  const im2col_spec& spec_;
  std::int32_t place_[Rank - 1];
};

class toolkit_im2col : public toolkit {
 protected:
  /// Makes the tensor, sets its address in `spec`, and expects the right elements.
  template <std::uint32_t Rank>
  void expect_right(im2col_spec spec, const column_use<Rank>& asked) {
    std::uint64_t elements = 1;
    for (std::uint32_t axis = 0; axis < Rank; ++axis) elements *= spec.tensor.global_dim[axis];
    std::vector<float> values(elements);
    for (std::uint64_t i = 0; i < elements; ++i) values[i] = static_cast<float>(i + 1);
    const device_array<float> tensor(values);
    spec.tensor.global_address = tensor.address();

    std::vector<float> expected(room, -1);
    pixel_walk<Rank> pixel(spec, asked.at);
    for (std::uint32_t i = 0; i < spec.pixels_per_column; ++i, pixel.advance()) {
      for (std::uint32_t c = 0; c < spec.channels_per_pixel; ++c) {
        const std::int32_t channel = asked.at[0] + static_cast<std::int32_t>(c);
        expected[i * spec.channels_per_pixel + c] = pixel.element(channel, asked.offsets);
      }
    }
    for (const map_place place : map_places) {
      SCOPED_TRACE(static_cast<int>(place));
      const device_array<float> image(room);
      column_use<Rank> use = asked;
      use.bytes_of_column = spec.channels_per_pixel * spec.pixels_per_column * 4;
      use.image = image.data();
      use_map(place, spec, {}, use);
      EXPECT_EQ(image.download(), expected);
    }
  }

  template <std::size_t Rank>
  static tensor_spec tensor_of(const std::uint64_t (&dims)[Rank]) {
    return packed_spec(element_type::f32, 0, dims, {});
  }
};

TEST_F(toolkit_im2col, rank_3) {
  const im2col_spec spec{tensor_of({8, 10, 3}), {-1}, {-1}, 8, 24};
  for (const std::uint16_t offset : {0, 1, 2}) expect_right<3>(spec, {{0, 2, 0}, {offset}, 0, nullptr});
}

TEST_F(toolkit_im2col, rank_3_channels_past_the_end) {
  const im2col_spec spec{tensor_of({12, 10, 3}), {-1}, {-1}, 8, 24};
  expect_right<3>(spec, {{8, -1, 1}, {2}, 0, nullptr});
}

TEST_F(toolkit_im2col, rank_4) {
  const im2col_spec spec{tensor_of({8, 6, 5, 3}), {-1, -1}, {-1, -1}, 4, 50};
  for (const std::uint16_t w : {0, 1, 2}) {
    for (const std::uint16_t h : {0, 1, 2}) expect_right<4>(spec, {{4, 1, 2, 1}, {w, h}, 0, nullptr});
  }
}

TEST_F(toolkit_im2col, rank_4_past_the_last_image) {
  const im2col_spec spec{tensor_of({4, 6, 5, 2}), {-1, -1}, {-1, -1}, 4, 40};
  expect_right<4>(spec, {{0, 0, 0, 1}, {1, 1}, 0, nullptr});
}

TEST_F(toolkit_im2col, rank_4_with_strides) {
  im2col_spec spec{tensor_of({8, 9, 8, 3}), {-1, -1}, {-1, -2}, 8, 35};
  spec.tensor.element_stride[1] = 2;
  spec.tensor.element_stride[2] = 3;
  expect_right<4>(spec, {{0, 1, 2, 0}, {2, 1}, 0, nullptr});
}

TEST_F(toolkit_im2col, rank_5) {
  const im2col_spec spec{tensor_of({4, 5, 4, 3, 2}), {-1, -1, 0}, {-1, -1, -1}, 4, 60};
  expect_right<5>(spec, {{0, 3, 1, 1, 0}, {2, 0, 1}, 0, nullptr});
}

}  // namespace
}  // namespace tmap::testing::toolkit_im2col_cases
