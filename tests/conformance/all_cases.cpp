// SPDX-License-Identifier: Apache-2.0
#include "conformance/case_source.hpp"

namespace tmap::conformance {
namespace {

constexpr std::uint64_t seed = 20261121;
constexpr int extra_cases = 4000;

void add_loads(case_class wanted, case_source& source, std::vector<tile_case>& cases) {
  wanted.kind = copy_kind::load;
  for (const auto fill : {oob_fill::zero, oob_fill::nan}) {
    if (fill == oob_fill::nan && !is_floating_point(wanted.type)) continue;
    wanted.fill = fill;
    for (const auto where : {place::inside, place::low, place::high, place::outside, place::far, place::anywhere}) {
      wanted.where = where;
      cases.push_back(source.draw(wanted));
    }
  }
}

void add_stores(case_class wanted, case_source& source, std::vector<tile_case>& cases) {
  for (const auto where : {place::inside, place::high, place::outside, place::anywhere, place::far}) {
    wanted.where = where;
    wanted.kind = copy_kind::store;
    cases.push_back(source.draw(wanted));
    wanted.kind = copy_kind::reduce;
    for (std::uint32_t op = 0; op < 8; ++op) {
      wanted.operation = static_cast<reduction>(op);
      const bool exists = reductions_of(wanted.type).contains(wanted.operation);
      if (exists && where != place::far) cases.push_back(source.draw(wanted));
    }
  }
}

}  // namespace

std::vector<tile_case> all_cases() {
  std::vector<tile_case> cases;
  const std::vector<case_class> layouts = all_layouts();
  case_source source{seed};
  for (case_class wanted : layouts) {
    for (const bool has_steps : {false, true}) {
      wanted.has_steps = has_steps;
      add_loads(wanted, source, cases);
      add_stores(wanted, source, cases);
    }
  }
  testing::random_source random{seed + 1};
  for (int i = 0; i < extra_cases; ++i) {
    case_class wanted = layouts[random.below(layouts.size())];
    wanted.kind = random.one_in(3) ? copy_kind::store : copy_kind::load;
    wanted.where = place::anywhere;
    wanted.has_steps = random.one_in(3);
    if (wanted.kind == copy_kind::load && is_floating_point(wanted.type) && random.one_in(2)) {
      wanted.fill = oob_fill::nan;
    }
    cases.push_back(source.draw(wanted));
  }
  return cases;
}

}  // namespace tmap::conformance
