// SPDX-License-Identifier: Apache-2.0
#include "service/fake_service.hpp"

#include <tmap/decode.hpp>

#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "lib/codec/layout.hpp"
#include "lib/encode/encode_arguments.hpp"
#include "lib/encode/encode_batch.hpp"
#include "lib/support/check.hpp"
#include "service/fake_encoder.hpp"
#include "support/failing_new.hpp"

namespace tmap::testing {
namespace {

fake_machine* the_machine{};
thread_local std::uint64_t thread_context{};

}  // namespace

/// Implements the table's functions, as a friend of the machine.
struct fake_calls {
  static fake_machine& machine() { return *the_machine; }
  static cudaError_t enter() { return machine().enter(); }

  /// Does `what` unless the call is to fail.
  template <class What>
  static cudaError_t code_of(const What& what) {
    const uncounted_allocations exempt;
    const cudaError_t code = enter();
    if (code == cudaSuccess) what();
    return code;
  }
  template <class What>
  static auto result_of(const What& what) -> decltype(what()) {
    const uncounted_allocations exempt;
    if (const cudaError_t code = enter(); code != cudaSuccess) return failure{support::runtime_error(code)};
    return what();
  }

  // Does the same for work that needs a context in the calling thread: the fake binds none
  // implicitly.
  template <class What>
  static cudaError_t code_of_work(const What& what) {
    return thread_context == 0 ? cudaErrorDeviceUninitialized : code_of(what);
  }
  // Does the same for a kernel on a stream; on a captured stream, the kernel becomes a node of the
  // graph.
  template <class What>
  static cudaError_t code_of_kernel(cudaStream_t stream, const What& what) {
    return code_of_work([&] {
      what();
      machine().streams.note_work(stream);
    });
  }
  template <class What>
  static result<void> result_of_kernel(cudaStream_t stream, const What& what) {
    if (thread_context == 0) return failure{support::runtime_error(cudaErrorDeviceUninitialized)};
    return result_of([&] {
      const result<void> done = what();
      if (done) machine().streams.note_work(stream);
      return done;
    });
  }

  static bool is_exiting() { return machine().is_exiting; }
  static result<void> check_machine() {
    return result_of([] { return machine().machine; });
  }

  static cudaError_t current_context(std::uint64_t* id) {
    return code_of([&] { *id = thread_context; });
  }
  static cudaError_t primary_context(int, std::uint64_t* id) {
    return code_of([&] { *id = machine().primary; });
  }
  static cudaError_t current_device(int* device) {
    return code_of([&] { *device = machine().device; });
  }
  static cudaError_t bind_primary_context(int) {
    return code_of([] {
      if (machine().primary == 0) machine().primary = fake_machine::new_context();
      thread_context = machine().primary;
    });
  }

  static cudaError_t allocate_host(void** data, std::size_t bytes) {
    const cudaError_t refused = machine().streams.call_unless_captured("allocate_host");
    return refused != cudaSuccess ? refused : code_of([&] {
      *data = std::calloc(1, bytes);
      const std::lock_guard lock{machine().mutex_};
      machine().host_blocks_[*data] = bytes;
    });
  }
  // A call that ends an object ends it even if it fails, as CUDA's calls do when they report an
  // earlier error.
  static cudaError_t free_host(void* data) {
    const uncounted_allocations exempt;
    static_cast<void>(machine().streams.call_unless_captured("free_host"));
    {
      const std::lock_guard lock{machine().mutex_};
      machine().host_blocks_.erase(data);
    }
    std::free(data);
    return enter();
  }
  static cudaError_t open_stream(cudaStream_t* stream) {
    return code_of_work([&] {
      *stream = machine().streams.open_stream();
      ++machine().private_streams;
    });
  }
  static cudaError_t close_stream(cudaStream_t stream) {
    const uncounted_allocations exempt;
    machine().streams.close_stream(stream);
    --machine().private_streams;
    return enter();
  }
  static cudaError_t clear(void* data, std::size_t bytes, cudaStream_t) {
    return code_of_work([&] { std::memset(data, 0, bytes); });
  }
  /// One side is host memory. If it is not pinned, CUDA may copy through the legacy stream.
  static cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaStream_t) {
    if (!machine().is_pinned(to) && !machine().is_pinned(from)) {
      const cudaError_t refused = machine().streams.call_on_legacy_stream("a copy of pageable memory");
      if (refused != cudaSuccess) return refused;
    }
    return code_of_work([&] {
      const std::lock_guard lock{machine().mutex_};
      std::memcpy(to, from, bytes);
    });
  }
  static cudaError_t wait(cudaStream_t) {
    const cudaError_t refused = machine().streams.call_unless_captured("wait");
    return refused != cudaSuccess ? refused : code_of_work([] {});
  }

  static result<tensor_map> driver_map(const tensor_spec& spec) {
    result<tensor_map> map = result_of([&] { return encode_bits(spec); });
    if (map && machine().is_blackwell) codec::write(*map, codec::row("large_tensor"), 1);
    return map;
  }
  static result<map_template> driver_template(const tensor_spec& spec, patch_fields fields) {
    return result_of([&] { return codec_template(spec, fields); });
  }

  static void spoil(tensor_map& map) {
    if (machine().wrong_map != 0 && --machine().wrong_map == 0) map.words[3] ^= 1;
  }

  /// Refuses what the real encoder refuses.
  static result<void> check(const map_template& base, const tensor_source& source, const encode_run& run) {
    support::arguments given;
    check_template(given, base);
    if (given) check_source(given, base, source);
    check_encode_run(given, run);
    const bool cannot_begin = machine().is_blackwell && base.map == tensor_map{};
    if (cannot_begin) return failure{error{.code = status::unsupported, .argument = "base.map"}};
    return given.outcome();
  }

  static result<void> encode(const map_template& base, const tensor_source& source, tensor_map* slots,
                             std::uint64_t count, const encode_run& run, kernels::batch_totals* totals) {
    return result_of_kernel(run.where.stream.get(), [&]() -> result<void> {
      if (const result<void> checked = check(base, source, run); !checked) return checked;
      support::arguments given;
      given.pointer(slots, "slots");
      if (!given) return given.outcome();
      const std::lock_guard lock{machine().mutex_};
      encode_all(base, source, slots, count, terms_of(run, totals));
      for (std::uint64_t i = 0; i < count; ++i) spoil(slots[i]);
      return {};
    });
  }

  static result<void> update(const map_template& base, const tensor_source& source,
                             const kernels::update_target& target, const encode_run& run,
                             kernels::batch_totals* totals) {
    return result_of_kernel(run.where.stream.get(), [&]() -> result<void> {
      const std::lock_guard lock{machine().mutex_};
      encode_changed(base, source, target, terms_of(run, totals));
      return {};
    });
  }

  static cudaError_t share(const map_batch_ref& from, std::uint32_t offset, std::uint32_t* table, cudaStream_t stream) {
    return code_of_kernel(stream, [&] {
      for (std::uint32_t i = 0; i < from.count; ++i) table[i] = offset + from.slot_index(i);
    });
  }
  static cudaError_t gather(const map_batch_ref& from, tensor_map* slots, map_status* statuses, cudaStream_t stream) {
    return code_of_kernel(stream, [&] {
      for (std::uint32_t i = 0; i < from.count; ++i) {
        slots[i] = *from.slot(i);
        if (statuses != nullptr) statuses[i] = from.status(i);
      }
    });
  }
  static cudaError_t open_slots(slot_record* records, std::uint64_t count, std::uint32_t generation, hazard_log* log,
                                cudaStream_t stream) {
    return code_of_kernel(stream, [&] {
      for (std::uint64_t i = 0; i < count; ++i) records[i] = {generation, 0, log};
    });
  }
  static cudaError_t publish_slots(slot_record* records, std::uint64_t count, std::uint32_t, cudaStream_t stream) {
    return code_of_kernel(stream, [&] {
      for (std::uint64_t i = 0; i < count; ++i) records[i].edition |= edition_published;
    });
  }

  static service::service_calls table() {
    return {&fake_streams::calls(),
            is_exiting,
            [] { return static_cast<int>(getpid()); },
            check_machine,
            current_context,
            primary_context,
            current_device,
            bind_primary_context,
            allocate_host,
            free_host,
            open_stream,
            close_stream,
            clear,
            copy,
            wait,
            driver_map,
            driver_template,
            encode,
            update,
            share,
            gather,
            open_slots,
            publish_slots};
  }
};

const service::service_calls& fake_machine::calls() {
  static const service::service_calls table = fake_calls::table();
  return table;
}

fake_machine& fake_machine::current() {
  return *the_machine;
}

fake_machine::fake_machine() : primary{new_context()} {
  the_machine = this;
  thread_context = primary;
}

fake_machine::~fake_machine() {
  for (const auto& [block, bytes] : host_blocks_) std::free(const_cast<void*>(block));
  the_machine = nullptr;
}

void fake_machine::reset_device() {
  if (thread_context == primary) thread_context = 0;
  primary = 0;
}

std::uint64_t fake_machine::push_context() {
  return thread_context = new_context();
}

void fake_machine::pop_context() {
  thread_context = primary;
}

void fake_machine::unbind_thread() {
  thread_context = 0;
}

}  // namespace tmap::testing
