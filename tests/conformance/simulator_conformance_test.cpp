// SPDX-License-Identifier: Apache-2.0
#include "conformance/tile_contract.hpp"

namespace tmap::conformance {

INSTANTIATE_TEST_SUITE_P(simulator, tile_contract, ::testing::Values(&make_simulator_engine));

}  // namespace tmap::conformance
