// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Encoding by one warp. It composes up to 32 maps at a time in shared memory, one map a lane, and
/// publishes them to slots in global memory. The library's own kernel calls these functions. A
/// kernel that computes the shapes may call them in its epilogue. They need an
/// architecture-specific target such as sm_90a or sm_100a (tensormap.replace, PTX ISA 9.7.9.28).

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/device/map_guard.cuh>
#include <tmap/device/ptx.cuh>
#include <tmap/device/ptx_replace.cuh>
#include <tmap/device/warp.cuh>
#include <tmap/map_patch.hpp>
#include <tmap/map_status.hpp>
#include <tmap/map_template.hpp>
#include <tmap/publish.hpp>
#include <tmap/tensor_map.hpp>

#include <cuda/ptx>
#include <cuda/std/utility>

namespace tmap::device {

/// Shared memory in which one warp composes its maps. They lie 144 bytes apart. At 128 bytes they
/// would share their banks, and 32 lanes that edit 32 of them would take turns. So only the first
/// map is aligned to 128 bytes, as tensormap.cp_fenceproxy requires of its source. The others need
/// no such alignment: ptxas turns tensormap.replace into plain loads and stores of words. The tests
/// compare the bytes.
struct alignas(tensor_map_bytes) warp_stage {
  static constexpr std::uint32_t stride_bytes = tensor_map_bytes + sizeof(uint4);
  unsigned char bytes[warp_lanes * stride_bytes];

  __device__ tensor_map* map(std::uint32_t i) { return reinterpret_cast<tensor_map*>(bytes + i * stride_bytes); }
  /// Returns the 16-byte piece `at` of the maps. Each map has eight.
  __device__ uint4& chunk(std::uint32_t at) {
    constexpr std::uint32_t chunks = tensor_map_bytes / sizeof(uint4);
    return *reinterpret_cast<uint4*>(bytes + at / chunks * stride_bytes + at % chunks * sizeof(uint4));
  }
};

namespace detail {

/// Names the fields whose values are immediates of their instructions.
enum class mode_field { element_type, interleave, swizzle, fill };

template <mode_field Field, int Value>
__device__ inline void write_immediate(tensor_map* map) {
  if constexpr (Field == mode_field::element_type) device::ptx::replace_elemtype<Value>(map);
  if constexpr (Field == mode_field::interleave) device::ptx::replace_interleave_layout<Value>(map);
  if constexpr (Field == mode_field::swizzle) device::ptx::replace_swizzle_mode<Value>(map);
  if constexpr (Field == mode_field::fill) device::ptx::replace_fill_mode<Value>(map);
}

/// Writes `value`, one of `Values`. It uses no generic lambda: NVRTC takes those for functions of
/// the host.
template <mode_field Field, int... Values>
__device__ inline void write_mode(tensor_map* map, std::uint32_t value, cuda::std::integer_sequence<int, Values...>) {
  ((value == Values ? write_immediate<Field, Values>(map) : void()), ...);
}

/// Returns the number of an element type in tensormap.replace (PTX ISA 9.7.9.28). Three differ from
/// the driver's numbers.
__device__ constexpr std::uint32_t replace_elemtype(element_type type) {
  switch (type) {
    case element_type::f64: return 9;
    case element_type::bf16: return 10;
    case element_type::f32_ftz: return 8;
    default: return static_cast<std::uint32_t>(type);
  }
}

template <int Axis>
__device__ inline void patch_axis(tensor_map* map, const tensor_spec& values, patch_fields fields) {
  // A dim of 2^32 is passed as 0: the instruction stores dim - 1, which wraps to the 0xffffffff it
  // must be.
  if (has_any(fields, patch_dim(Axis))) {
    device::ptx::replace_global_dim<Axis>(map, static_cast<std::uint32_t>(values.global_dim[Axis]));
  }
  if constexpr (Axis + 1 < static_cast<int>(max_rank)) {
    if (has_any(fields, patch_stride(Axis))) {
      device::ptx::replace_global_stride<Axis>(map, values.global_stride_bytes[Axis]);
    }
  }
  if (has_any(fields, patch_box(Axis))) device::ptx::replace_box_dim<Axis>(map, values.box_dim[Axis]);
  if (has_any(fields, patch_element_stride(Axis))) {
    device::ptx::replace_element_stride<Axis>(map, values.element_stride[Axis]);
  }
}

}  // namespace detail

/// Replaces the fields named in `fields` of the map at `map` (shared memory) by those of `values`.
/// One thread calls it.
__device__ inline void apply_patch(tensor_map* map, const tensor_spec& values, patch_fields fields) {
  if (has_any(fields, patch_address)) device::ptx::replace_global_address(map, values.global_address);
  detail::patch_axis<0>(map, values, fields);
  detail::patch_axis<1>(map, values, fields);
  detail::patch_axis<2>(map, values, fields);
  detail::patch_axis<3>(map, values, fields);
  detail::patch_axis<4>(map, values, fields);
}

/// Writes every field of `spec` into the zeroed map at `map` (shared memory), except L2 promotion,
/// which tensormap.replace cannot write. Words 8 and 9 stay zero too. One thread calls it. It knows
/// the types and swizzles of compute capability 9. It is out of line, as most templates come from
/// the driver.
__device__ __noinline__ inline void write_zeroed_map(tensor_map* map, const tensor_spec& spec) {
  using field = detail::mode_field;
  device::ptx::replace_rank(map, spec.rank - 1);
  detail::write_mode<field::element_type>(map, detail::replace_elemtype(spec.type),
                                          cuda::std::make_integer_sequence<int, 13>{});
  detail::write_mode<field::interleave>(map, static_cast<std::uint32_t>(spec.interleave),
                                        cuda::std::make_integer_sequence<int, 3>{});
  detail::write_mode<field::swizzle>(map, static_cast<std::uint32_t>(spec.swizzle),
                                     cuda::std::make_integer_sequence<int, 4>{});
  detail::write_mode<field::fill>(map, static_cast<std::uint32_t>(spec.oob_fill),
                                  cuda::std::make_integer_sequence<int, 2>{});
  apply_patch(map, spec, patch_everything(spec.rank));
}

/// The shape of any template: its rank and fields are known only when the kernel runs.
struct any_shape {
  static constexpr bool may_be_zeroed = true;
  static __device__ std::uint32_t rank(const map_template& base) { return base.spec.rank; }
  static __device__ patch_fields fields(const map_template& base) { return base.fields; }
};

/// A shape whose rank and fields are known when the kernel is compiled, which needs a fifth of the
/// code. The template must agree, and come from `make_template`.
template <std::uint32_t Rank, patch_fields Fields>
struct fixed_shape {
  static constexpr bool may_be_zeroed = false;
  static __device__ constexpr std::uint32_t rank(const map_template&) { return Rank; }
  static __device__ constexpr patch_fields fields(const map_template&) { return Fields; }
};

/// Encodes maps of one template in one stage. All 32 lanes of a full warp must call each function
/// together, converged.
template <class Shape = any_shape>
class warp_encoder {
 public:
  /// `stage` is shared memory of this warp alone.
  __device__ warp_encoder(const map_template& base, warp_stage& stage, Shape = {}) : base_(base), stage_(stage) {
    const std::uint32_t lane = lane_index();
    chunk_ = reinterpret_cast<const uint4*>(&base.map)[lane % chunks];
    if constexpr (Shape::may_be_zeroed) {
      if (!__any_sync(~0u, (chunk_.x | chunk_.y | chunk_.z | chunk_.w) != 0)) write_zeroed_chunk(lane);
    }
  }

  /// Composes `count` maps (at most 32) in the stage: the template with the fields of
  /// `source(first + lane)`, or the safe empty map where `guard` refuses them. `source` is a device
  /// callable `std::uint64_t -> map_patch`. Only the template's fields of the patch are used.
  template <class Source, class Guard>
  __device__ void compose(const Source& source, std::uint64_t first, std::uint32_t count, const Guard& guard) {
    const std::uint32_t lane = lane_index();
    const patch_fields fields = Shape::fields(base_);
    tensor_spec spec = base_.spec;
    spec.rank = Shape::rank(base_);
    if (lane < count) spec = patched_spec(spec, fields, source(first + lane));
    for_each_chunk(count, [&](uint4& staged, std::uint32_t) { staged = chunk_; });
    map_status status;
    if (lane < count) status = guard.judge(spec, fields);
    __syncwarp();
    if (lane < count) write_map(device::ptx::keep_in_register(stage_.map(lane)), spec, status, guard.page);
    guard.report(first + lane, lane < count, status);
    __syncwarp();
  }

  /// Stores the composed maps with coalesced 16-byte stores. Afterwards the stage is free, but only
  /// `release`, which may follow many stores, publishes the maps.
  __device__ void store(tensor_map* slots, std::uint32_t count) {
    uint4* const target = reinterpret_cast<uint4*>(slots);
    for_each_chunk(count, [&](const uint4& staged, std::uint32_t at) { target[at] = staged; });
    __syncwarp();
  }

  /// Publishes what the warp stored. Afterwards any lane may acquire.
  static __device__ void release() {
    namespace ptx = cuda::ptx;
    ptx::fence_proxy_tensormap_generic(ptx::sem_release, ptx::scope_gpu);
    __syncwarp();
  }

  /// Copies composed map i to `slot_of(i)` and publishes it, for each i below `count`
  /// (`publish::copy_fence`). A null slot leaves its map out. Afterwards any lane may acquire, and
  /// the stage holds nothing of use.
  template <class SlotOf>
  __device__ void copy_fence(std::uint32_t count, const SlotOf& slot_of) {
    namespace ptx = cuda::ptx;
    tensor_map* const aligned = stage_.map(0);
    TMAP_KEEP_ROLLED
    for (std::uint32_t i = 0; i < count; ++i) {
      if (i != 0 && lane_index() < chunks) stage_.chunk(lane_index()) = stage_.chunk(i * chunks + lane_index());
      __syncwarp();
      tensor_map* const slot = slot_of(i);
      if (slot != nullptr) {
        ptx::tensormap_cp_fenceproxy(ptx::sem_release, ptx::scope_gpu, slot, aligned, ptx::n32_t<tensor_map_bytes>{});
      }
      __syncwarp();
    }
  }

  /// Writes the composed maps to `slots` and publishes them.
  __device__ void publish_in(tensor_map* slots, std::uint32_t count, publish how) {
    if (how == publish::copy_fence) {
      copy_fence(count, [&](std::uint32_t i) { return slots + i; });
    } else {
      store(slots, count);
      release();
    }
  }

 private:
  static constexpr std::uint32_t chunks = tensor_map_bytes / sizeof(uint4);

  /// Calls `use(staged, at)` for this lane's sixteen-byte pieces `at` of the first `count` maps.
  /// The loop stays rolled: a single map takes one turn, and code that runs once costs by its
  /// length.
  template <class Use>
  __device__ void for_each_chunk(std::uint32_t count, const Use& use) {
    constexpr std::uint32_t step = warp_lanes / chunks * warp_stage::stride_bytes / sizeof(uint4);
    uint4* staged = &stage_.chunk(lane_index());
    TMAP_KEEP_ROLLED
    for (std::uint32_t at = lane_index(); at < count * chunks; at += warp_lanes, staged += step) {
      use(*staged, at);
    }
  }

  /// Writes a template that is still zeroed: one lane writes it, and all take their part of it.
  __device__ void write_zeroed_chunk(std::uint32_t lane) {
    stage_.chunk(lane % chunks) = chunk_;
    __syncwarp();
    if (lane == 0) write_zeroed_map(device::ptx::keep_in_register(stage_.map(0)), base_.spec);
    __syncwarp();
    chunk_ = stage_.chunk(lane % chunks);
    __syncwarp();
  }

  __device__ void write_map(tensor_map* map, const tensor_spec& spec, map_status status, const guard_page* page) const {
    if (status.is_good()) {
      apply_patch(map, spec, Shape::fields(base_));
    } else {
      const tensor_spec safe = empty_spec(base_.spec, reinterpret_cast<std::uint64_t>(page));
      apply_patch(map, safe, patch_extents(Shape::rank(base_)));
    }
  }

  const map_template& base_;
  warp_stage& stage_;
  uint4 chunk_;  // this lane's sixteen bytes of the template
};

/// Encodes and publishes maps `first` to `first + count` (at most 32 of them) into
/// `slots[first...]`. A kernel of your own calls this one, with `map_guard{&page}` and a
/// `__device__ guard_page page` of its own. All 32 lanes call it together, converged. For shorter
/// code, a kernel that knows its template's rank and fields passes `fixed_shape<rank, fields>{}`
/// and a source that reads only those fields.
template <class Source, class Guard, class Shape = any_shape>
__device__ void encode_warp(const map_template& base, const Source& source, tensor_map* slots, std::uint64_t first,
                            std::uint32_t count, warp_stage& stage, const Guard& guard, Shape shape = {},
                            publish how = publish::stores) {
  warp_encoder encoder(base, stage, shape);
  encoder.compose(source, first, count, guard);
  encoder.publish_in(slots + first, count, how);
}

}  // namespace tmap::device
