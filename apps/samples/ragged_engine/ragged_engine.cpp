// SPDX-License-Identifier: Apache-2.0
#include "apps/samples/ragged_engine/ragged_engine.hpp"

#include "apps/support/stopwatch.hpp"
#include "apps/tmap/pad/engine_option.hpp"
#include "apps/tmap/pad/gpu_outcome.hpp"

#include <cstring>

namespace tmap::tool {

void described_batch::add(std::uint64_t address, std::initializer_list<std::uint64_t> dims) {
  map_patch patch{};
  patch.global_address = address;
  std::uint64_t stride = element_bytes_;
  std::uint32_t axis = 0;
  for (const std::uint64_t dim : dims) {
    patch.global_dim[axis] = dim;
    stride *= dim;
    if (++axis < max_rank) patch.global_stride_bytes[axis - 1] = stride;
  }
  patches_.push_back(patch);
}

tensor_batch described_batch::get() const {
  tensor_batch batch;
  batch.tensors = patch_array{patches_.data()};
  batch.count = patches_.size();
  batch.element_bytes = element_bytes_;
  batch.rank = rank_;
  batch.side = array_side::host;
  return batch;
}

outcome<ragged_engine> ragged_engine::create(engine_request request) {
  const auto chosen = choose_engine(request);
  if (!chosen) return refusal{chosen.error()};
  ragged_engine made;
  made.description_ = fmt::format("engine: {} ({})", chosen->name == "gpu" ? chosen->device : "host", chosen->reason);
  if (chosen->name != "gpu") return made;
  auto stream = told("making a stream", apps::timed_stream::create());
  if (!stream) return refusal{stream.error()};
  made.stream_ = std::make_unique<apps::timed_stream>(std::move(*stream));
  return made;
}

outcome<working_memory> ragged_engine::allocate(std::uint64_t bytes) const {
  working_memory memory;
  if (!is_gpu()) {
    memory.on_host_ = std::make_unique<std::byte[]>(bytes + 1);  // never null
    return memory;
  }
  auto allocated = told(fmt::format("taking {} bytes of its memory", bytes), apps::device_memory::allocate(bytes + 1));
  if (!allocated) return refusal{allocated.error()};
  memory.on_gpu_ = std::move(*allocated);
  return memory;
}

outcome<working_memory> ragged_engine::upload(std::span<const std::byte> bytes) const {
  auto memory = allocate(bytes.size());
  if (!memory) return memory;
  if (!is_gpu()) std::memcpy(memory->as<std::byte>(), bytes.data(), bytes.size());
  if (!is_gpu()) return memory;
  const auto copied = told("uploading", apps::copy_bytes(memory->as<void>(), bytes.data(), bytes.size()));
  return copied ? std::move(memory) : refusal{copied.error()};
}

outcome<void> ragged_engine::download(const working_memory& from, std::span<std::byte> to) const {
  if (is_gpu()) return told("downloading", apps::copy_bytes(to.data(), from.as<void>(), to.size()));
  std::memcpy(to.data(), from.as<std::byte>(), to.size());
  return {};
}

/// Calls `operate(run)` and returns its time in seconds.
template <class Operate>
run_time ragged_engine::run(const char* action, const tensor_batch& batch, const Operate& operate) const {
  const auto place = allocate(sizeof(batch_header));
  if (!place) return refusal{place.error()};
  ragged::run with{.where = on_host{}, .header = place->as<batch_header>()};
  double seconds = 0;
  if (is_gpu()) {
    const auto needed = ragged::workspace_bytes(batch.count, batch.rank);
    if (!needed) return refuse("{}: {}", action, to_string(needed.error()));
    const auto scratch = allocate(*needed);
    if (!scratch) return refusal{scratch.error()};
    with.where = on_stream{cuda::stream_ref{stream_->get()}, {scratch->template as<void>(), *needed}};
    const auto timed = told(action, stream_->milliseconds([&] { return operate(with); }));
    if (!timed) return timed;
    seconds = *timed / 1000;
  } else {
    apps::stopwatch watch;
    const auto done = operate(with);
    if (!done) return refuse("{}: {}", action, to_string(done.error()));
    seconds = watch.lap();
  }
  batch_header header;
  const auto fetched = download(*place, std::as_writable_bytes(std::span{&header, 1}));
  if (!fetched) return refusal{fetched.error()};
  if (header.bad_count == 0 || batch.count == 0) return seconds;
  return refuse("{}: {} of {} tensors are bad, the first is {}", action, header.bad_count, batch.count,
                header.first_bad);
}

run_time ragged_engine::copy(const tensor_batch& source, const tensor_batch& destination) const {
  return run("copying", source, [&](auto& with) { return ragged::copy(source, destination, with); });
}

// [pad]
run_time ragged_engine::pad(const tensor_batch& source, const dense_batch& destination,
                            const ragged::fill_value& fill) const {
  return run("padding", source, [&](auto& with) { return ragged::pad(source, destination, fill, with); });
}
// [pad]

run_time ragged_engine::unpad(const dense_batch& source, const tensor_batch& destination) const {
  return run("unpadding", destination, [&](auto& with) { return ragged::unpad(source, destination, with); });
}

run_time ragged_engine::transpose(const tensor_batch& source, const tensor_batch& destination) const {
  return run("transposing", source, [&](auto& with) { return ragged::transpose(source, destination, with); });
}

run_time ragged_engine::cast(const tensor_batch& source, const tensor_batch& destination,
                             const ragged::cast_values& values) const {
  return run("casting", source, [&](auto& with) { return ragged::cast(source, destination, values, with); });
}

run_time ragged_engine::saxpy(float a, const tensor_batch& x, const tensor_batch& y) const {
  return run("saxpy", x, [&](auto& with) { return ragged::saxpy(a, x, y, with); });
}

run_time ragged_engine::max_pool_1d(const tensor_batch& source, const tensor_batch& destination,
                                    std::uint32_t radius) const {
  return run("pooling", source, [&](auto& with) { return ragged::max_pool_1d(source, destination, radius, with); });
}

run_time ragged_engine::largest_of_rows(const tensor_batch& source, const tensor_batch& destination) const {
  constexpr auto type = ragged::value_type::f32;
  constexpr auto reduction = ragged::row_reduction::max;
  return run("reducing rows", source,
             [&](auto& with) { return ragged::reduce_rows(source, type, reduction, destination, with); });
}

void add_engine_option(CLI::App& app, engine_request& request) {
  add_engine_option(app, request, "Runs the operations on the GPU or the host", "host");
}

}  // namespace tmap::tool
