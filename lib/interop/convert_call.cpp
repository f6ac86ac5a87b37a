// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/convert_call.hpp"

#include <cstddef>

#include "lib/interop/convert.hpp"
#include "lib/interop/objects.hpp"

namespace tmap::interop {
namespace {

static_assert(mirrors(TMAP_CHECK_DEFAULT, fault_check::environment) && mirrors(TMAP_CHECK_OFF, fault_check::off));
static_assert(mirrors(TMAP_CHECK_SYNC, fault_check::sync));
static_assert(mirrors(TMAP_PUBLISH_STORES, publish::stores) && mirrors(TMAP_PUBLISH_COPY_FENCE, publish::copy_fence));
static_assert(mirrors(TMAP_ROUTE_TENSOR_MAP, route::tensor_map) && mirrors(TMAP_ROUTE_BULK, route::bulk));
static_assert(mirrors(TMAP_ROUTE_LDGSTS, route::ldgsts) && mirrors(TMAP_ROUTE_PLAIN, route::plain));
static_assert(mirrors(TMAP_POLICY_ENABLE - 1, route_policy::enable));
static_assert(mirrors(TMAP_POLICY_DISABLE - 1, route_policy::disable));
static_assert(mirrors(TMAP_POLICY_FORCE - 1, route_policy::force));

// The structs of both sides that the caller's memory holds are the same bytes.
static_assert(sizeof(map_status) == sizeof(std::uint64_t) && TMAP_EMPTY_MAP == map_status::empty_bit);
static_assert(sizeof(ragged::tensor_status) == sizeof(std::uint32_t));
static_assert(sizeof(gemm::group_status) == sizeof(std::uint32_t));
static_assert(sizeof(moe::choice_status) == sizeof(std::uint32_t));
static_assert(sizeof(tmap_batch_header) == sizeof(batch_header));
static_assert(offsetof(tmap_batch_header, first_bad) == offsetof(batch_header, first_bad));
static_assert(offsetof(tmap_batch_header, empty_count) == offsetof(batch_header, empty_count));
static_assert(sizeof(tmap_address_window) == sizeof(address_window));
static_assert(offsetof(tmap_address_window, end) == offsetof(address_window, end));

std::uint64_t number_of(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

on_stream stream_of(const tmap_call& call) {
  return {cuda::stream_ref{call.stream}, {call.workspace, call.workspace_bytes}};
}

/// Converts all but the choices.
template <class Run, class Where>
Run run_at(const Where& where, const tmap_call& call) {
  Run run{where};
  run.statuses = static_cast<decltype(run.statuses)>(call.statuses);
  run.header = reinterpret_cast<batch_header*>(call.header);
  run.windows = {reinterpret_cast<const address_window*>(call.windows), call.window_count};
  run.check = static_cast<fault_check>(call.check);
  return run;
}

}  // namespace

void check_call(arguments& all, const tmap_call& call, const uses& used) {
  const bool on_stream = !used.engine || call.engine == TMAP_ON_STREAM;
  const struct {
    const char* name;
    std::uint64_t value;
    bool is_used;
  } members[] = {{"engine", call.engine, used.engine},
                 {"stream", number_of(call.stream), on_stream},
                 {"workspace", number_of(call.workspace), used.workspace && on_stream},
                 {"workspace_bytes", call.workspace_bytes, used.workspace && on_stream},
                 {"statuses", number_of(call.statuses), used.statuses},
                 {"windows", number_of(call.windows) | call.window_count, used.windows},
                 {"policy", call.policy, used.routes},
                 {"allowed", call.allowed, used.routes},
                 {"trusted", call.trusted, used.maps},
                 {"publish", call.publish, used.maps},
                 {"plan", call.plan, used.product},
                 {"blocks", call.blocks, used.product},
                 {"owners", number_of(call.owners), used.maps},
                 {"owner_window", call.owner_window.value, used.maps}};
  const support::argument name{"call"};
  for (const auto& member : members) {
    if (member.is_used) continue;
    all.equal(member.value, 0, name.member(member.name), "is {found}; this call has no use for it: it must be 0");
  }
  all.enumerator(call.engine, TMAP_ON_HOST, name.member("engine"));
  all.enumerator(call.trusted, 1, name.member("trusted"));
  check_routes(all, call.policy, call.allowed, name.member("policy"), name.member("allowed"));
  if (call.owners != nullptr) {
    all.handle(peer_memories().find(call.owner_window.value) != nullptr, name.member("owner_window"));
  } else if (used.maps) {
    all.equal(call.owner_window.value, 0, name.member("owner_window"), "is {found:#x}; it must be 0 without owners");
  }
}

template <>
encode_run run_of(const tmap_call& call) {
  auto run = run_at<encode_run>(stream_of(call), call);
  run.choices = {.trusted = call.trusted != 0, .published_by = static_cast<publish>(call.publish)};
  run.choices.owners.ranks = call.owners;
  if (const auto window = peer_memories().find(call.owner_window.value)) run.choices.owners.memory = window->ref();
  return run;
}

template <>
ragged::run run_of(const tmap_call& call) {
  const engine where = call.engine == TMAP_ON_HOST ? engine{on_host{}} : engine{stream_of(call)};
  auto run = run_at<ragged::run>(where, call);
  run.choices = {.policy = policy_of(call.policy), .allowed = routes_of(call.allowed)};
  return run;
}

template <>
gemm::run run_of(const tmap_call& call) {
  auto run = run_at<gemm::run>(stream_of(call), call);
  if (call.plan != 0) run.choices.plan = call.plan - 1;
  if (call.blocks != 0) run.choices.blocks = call.blocks;
  return run;
}

template <>
moe::run run_of(const tmap_call& call) {
  return run_at<moe::run>(stream_of(call), call);
}

void check_routes(arguments& all, std::uint32_t policy, std::uint32_t allowed, const support::argument& policy_name,
                  const support::argument& allowed_name) {
  all.enumerator(policy, TMAP_POLICY_FORCE, policy_name);
  if ((allowed & ~all_routes.bits()) == 0) return;
  all.refuse(allowed_name, "is {found:#x}; it must have no other bits than {allowed:#x}, all routes", allowed,
             all_routes.bits());
}

std::optional<route_policy> policy_of(std::uint32_t policy) {
  if (policy == TMAP_POLICY_DEFAULT) return std::nullopt;
  return static_cast<route_policy>(policy - 1);
}

route_set routes_of(std::uint32_t allowed) {
  return allowed == 0 ? all_routes : route_set{allowed};
}

}  // namespace tmap::interop
