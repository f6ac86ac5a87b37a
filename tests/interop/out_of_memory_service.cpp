// SPDX-License-Identifier: Apache-2.0
// Tests services and batches of C++ over the fake machine.
#include <utility>

#include "interop/lending_scene.hpp"

namespace tmap::testing {
namespace {

/// Checks a call in the usual scene, and in one whose streams are captured.
template <class Call>
void check_in_both(const Call& call) {
  in<lending_scene>("not captured", call).check();
  in<captured_scene>("captured", call).check();
}

void check_encode() {
  check_in_both([](lending_scene& s) { return s.encode(s.base, s.tensors.source()); });
  check_in_both([](lending_scene& s) { return s.encode_counted(); });
  check_in_both([](lending_scene& s) { return s.encode_trusted(); });
  check_in_both([](lending_scene& s) { return s.encode(s.base, s.sources.columns()); });
  check_in_both([](lending_scene& s) { return s.encode(s.base, s.sources.compact()); });
  check_in_both([](lending_scene& s) { return s.encode(s.rows_base, s.sources.rows_32()); });
  check_in_both([](lending_scene& s) { return s.encode(s.rows_base, s.sources.rows_64()); });
}

/// Asks for more slots than are free, so that the pool grows.
void check_growth() {
  const auto grow = [](lending_scene& s) { return s.service->reserve(60, cuda::stream_ref{s.other}); };
  in<lending_scene>("growth", grow).check();
}

/// Asks for more slots than the limit.
void check_exhaustion() {
  check_in_both([](lending_scene& s) { return s.service->reserve(1000, cuda::stream_ref{s.home}); });
}

void check_update() {
  check_in_both([](lending_scene& s) { return s.update(s.few, s.tensors.source()); });
  check_in_both([](lending_scene& s) { return s.update(s.few, s.sources.columns()); });
  check_in_both([](lending_scene& s) { return s.update(s.few, s.sources.compact()); });
}

/// Changes so many maps that all of them move together.
void check_update_of_all() {
  check_in_both([](lending_scene& s) { return s.update(s.many, s.tensors.source()); });
}

void check_use_on() {
  check_in_both([](lending_scene& s) { return s.batch.use_on(cuda::stream_ref{s.other}); });
  check_in_both([](lending_scene& s) { return s.batch.use_on(cuda::stream_ref{s.home}); });
}

void check_release() {
  check_in_both([](lending_scene& s) { return s.batch.release(); });
}

/// Checks a call that ends an object. It must end completely, with or without memory.
template <class End>
public_call ending(const char* name, const End& end) {
  return {name, [end] {
            check_in_both([end](lending_scene& s) {
              end(s);
              return done{};
            });
          }};
}

/// Holds a machine without a service. Everything that was made must have ended before the machine
/// is checked.
struct bare_machine {
  static constexpr bool may_do_a_part = false;
  std::string state() { return machine.is_clean() ? "clean" : "something is left"; }
  std::string work() {
    const result<map_service> made = service::create_service({.capacity = 64}, fake_machine::calls());
    return text_of(made);
  }
  fake_machine machine;
};

void check_create() {
  in<bare_machine>("over the fake machine, to the standard error", [](bare_machine&) -> result<std::uint64_t> {
    const result<map_service> made = service::create_service({.capacity = 64}, fake_machine::calls());
    if (!made) return failure{made.error()};
    return made->statistics().slots.capacity;
  }).check();
  in<empty_scene>("over what is there", [](empty_scene&) -> result<std::uint64_t> {
    const result<map_service> made = map_service::create({.capacity = 64});
    if (!made) return failure{made.error()};
    return made->statistics().slots.capacity;
  }).check();
}

}  // namespace

std::vector<public_call> service_calls_of_cpp() {
  return {
      plain("tmap::service_memory_bytes", [] { return service_memory_bytes(10); }),
      {"tmap::map_service::create", &check_create},
      {"tmap::map_service::encode", &check_encode},
      {"tmap::map_service::update",
       [] {
         check_update();
         check_update_of_all();
       }},
      {"tmap::map_service::reserve",
       [] {
         check_in_both([](lending_scene& s) { return s.service->reserve(9, cuda::stream_ref{s.home}); });
         check_growth();
         check_exhaustion();
       }},
      {"tmap::map_service::statistics",
       [] { check_in_both([](lending_scene& s) { return s.service->statistics(); }); }},
      {"tmap::map_service::map_service",
       [] {
         check_in_both([](lending_scene& s) {
           map_service moved{std::move(*s.service)};
           s.service.emplace(std::move(moved));
           return done{};
         });
       },
       2},  // the other overload is the library's own
      ending("tmap::map_service::operator=",
             [](lending_scene& s) {
               map_service moved{std::move(*s.service)};
               *s.service = std::move(moved);
             }),
      ending("tmap::map_service::~map_service", [](lending_scene& s) { s.service.reset(); }),
      {"tmap::map_batch::use_on", &check_use_on},
      {"tmap::map_batch::release", &check_release},
      {"tmap::map_batch::map_batch",
       [] {
         check_in_both([](lending_scene& s) {
           map_batch moved{std::move(s.batch)};
           s.lent.emplace(std::move(moved));
           return done{};
         });
       },
       2},  // as above
      ending("tmap::map_batch::operator=", [](lending_scene& s) { s.batch = map_batch{}; }),
      {"tmap::map_batch::~map_batch",
       [] {
         ending("alone", [](lending_scene& s) { s.lent.reset(); }).check();
         ending("after its service", [](lending_scene& s) {
           s.service.reset();
           s.lent.reset();
         }).check();
       }},
  };
}

}  // namespace tmap::testing
