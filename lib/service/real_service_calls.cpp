// SPDX-License-Identifier: Apache-2.0
#include <tmap/encode.hpp>

#include <cstring>

#include "lib/driver/context_id.hpp"
#include "lib/driver/map_driver.hpp"
#include "lib/encode/device.hpp"
#include "lib/encode/encode_batch.hpp"
#include "lib/encode/update_batch.hpp"
#include "lib/service/service_calls.hpp"
#include "lib/support/check.hpp"
#include "lib/support/process.hpp"

namespace tmap::service {
namespace {

driver::entry_points& functions() {
  return driver::process_driver().functions();
}

result<void> check_functions() {
  result<void> found = support::without_value(functions().encode_tiled());
  if (found) found = support::without_value(functions().context_id());
  if (found) found = support::without_value(functions().get_device());
  if (found) found = support::without_value(functions().primary_state());
  if (found) found = support::without_value(functions().primary_retain());
  if (found) found = support::without_value(functions().primary_release());
  if (found) found = support::without_value(functions().event_query());
  return found;
}

result<void> check_machine() {
  if (const result<void> has_kernels = require_kernels(); !has_kernels) return has_kernels;
  const result<device_limits> limits = driver::process_driver().usable_limits();
  if (!limits) return failure{limits.error()};
  if (const result<void> found = check_functions(); !found) return found;
  TMAP_TRY_CUDA(kernels::load_encode_kernels());
  TMAP_TRY_CUDA(kernels::load_update_kernels());
  return {};
}

/// The runtime and the driver use the same numbers for the errors that both have.
cudaError_t as_runtime_code(CUresult code) {
  return static_cast<cudaError_t>(code);
}

/// Asks only about a context that exists, so that the query does not make one.
cudaError_t primary_context(int device, std::uint64_t* id) {
  *id = 0;
  CUdevice handle = 0;
  unsigned int flags = 0;
  int active = 0;
  CUcontext context = nullptr;
  CUresult code = functions().get_device().value()(&handle, device);
  if (code == CUDA_SUCCESS) code = functions().primary_state().value()(handle, &flags, &active);
  if (code != CUDA_SUCCESS || active == 0) return as_runtime_code(code);
  code = functions().primary_retain().value()(&context, handle);
  if (code != CUDA_SUCCESS) return as_runtime_code(code);
  const cudaError_t asked = driver::context_id(context, id);
  code = functions().primary_release().value()(handle);
  return asked == cudaSuccess ? as_runtime_code(code) : asked;
}

cudaError_t allocate_host(void** data, std::size_t bytes) {
  const cudaError_t code = cudaHostAlloc(data, bytes, cudaHostAllocMapped | cudaHostAllocPortable);
  if (code == cudaSuccess) std::memset(*data, 0, bytes);
  return code;
}

result<void> encode_maps(const map_template& base, const tensor_source& source, tensor_map* slots, std::uint64_t count,
                         const encode_run& run, kernels::batch_totals* totals) {
  return encode_batch(batch_call::service_encode, base, source, slots, count, run, totals);
}

service_calls make_calls() {
  return {
      .pool = &pool::real_pool_calls(),
      .is_exiting = support::is_exiting,
      .process_id = support::process_id,
      .check_machine = check_machine,
      .current_context = driver::current_context,
      .primary_context = primary_context,
      .current_device = [](int* device) { return cudaGetDevice(device); },
      .bind_primary_context = [](int device) { return cudaSetDevice(device); },
      .allocate_host = allocate_host,
      .free_host = [](void* data) { return cudaFreeHost(data); },
      .open_stream = [](cudaStream_t* s) { return cudaStreamCreateWithFlags(s, cudaStreamNonBlocking); },
      .close_stream = [](cudaStream_t stream) { return cudaStreamDestroy(stream); },
      .clear = [](void* data, std::size_t bytes, cudaStream_t s) { return cudaMemsetAsync(data, 0, bytes, s); },
      .copy = [](void* to, const void* from, std::size_t bytes,
                 cudaStream_t s) { return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, s); },
      .wait = [](cudaStream_t stream) { return cudaStreamSynchronize(stream); },
      .driver_map = [](const tensor_spec& spec) { return encode(spec); },
      .driver_template = make_template,
      .encode = encode_maps,
      .update = tmap::update_batch,
      .share = kernels::launch_share,
      .gather = kernels::launch_gather,
      .open_slots = kernels::launch_open_slots,
      .publish_slots = kernels::launch_publish_slots,
  };
}

}  // namespace

const service_calls& real_service_calls() {
  static const service_calls calls = make_calls();
  return calls;
}

}  // namespace tmap::service
