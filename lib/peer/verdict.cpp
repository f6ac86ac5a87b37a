// SPDX-License-Identifier: Apache-2.0
#include "lib/peer/verdict.hpp"

namespace tmap::peer {
namespace {

const char* reason_of_timeout(protocol_step step) {
  switch (step) {
    case protocol_step::barrier: return "rank {found} did not come to the barrier before the deadline";
    case protocol_step::put: return "rank {found} did not return a piece before the deadline";
    case protocol_step::take_put: return "rank {found} did not send a piece before the deadline";
    case protocol_step::credit: return "rank {found} did not pull its rows before the deadline";
    case protocol_step::announcement: return "rank {found} did not announce its rows before the deadline";
    case protocol_step::workers: return "the blocks of rank {found}, this one, did not end before the deadline";
    case protocol_step::rows: return "rank {found} did not send its rows before the deadline";
    case protocol_step::sums: return "rank {found} did not send its sums before the deadline";
    case protocol_step::none: break;
  }
  return "rank {found} did not come before the deadline";
}

failure refused(const argument_name& argument, std::uint64_t found, const char* reason) {
  return failure{error{.code = status::invalid_argument, .found = found, .argument = argument, .reason = reason}};
}

result<void> outcome_of(const peer_verdict& verdict) {
  const auto failed = [&](status code, const char* reason) {
    return failure{error{.code = code, .found = verdict.peer, .reason = reason}};
  };
  switch (verdict.status) {
    case peer_status::ok: return {};
    case peer_status::timeout: return failed(status::peer_timeout, reason_of_timeout(verdict.step));
    case peer_status::broken: return failure{error{status::group_broken}};
    case peer_status::mismatch: return failed(status::peer_mismatch, "rank {found} of the group made another call");
    case peer_status::overflow:
      return failed(status::peer_overflow, "rank {found} would get more rows than it has room for; nothing was moved");
    case peer_status::bad_counts:
      return refused("splits", verdict.peer, "of rank {found} name more rows than it has; nothing was moved");
    case peer_status::wrong_bytes:
      return failed(status::self_test_failed, "bytes to or from rank {found} of the group came wrong");
    case peer_status::no_dispatch:
      return refused("run.scratch", 0,
                     "has had no dispatch of these sizes since its last combine; make one before each combine");
    case peer_status::refused:
      return refused("groups", 0, "are too many for the header of a window; nothing was announced");
  }
  return failed(status::group_broken, "the header of this rank's window was overwritten");
}

}  // namespace

result<void> outcome_of(std::uint32_t verdict, std::uint32_t fault) {
  const peer_verdict last = detail::peer::verdict_of(verdict);
  return outcome_of(last.status == peer_status::broken && fault != 0 ? detail::peer::verdict_of(fault) : last);
}

}  // namespace tmap::peer
