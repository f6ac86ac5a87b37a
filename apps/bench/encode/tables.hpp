// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tables of encode_bench, one per file. Each function measures and prints.

#include "apps/support/timing.hpp"

namespace tmap::apps::bench {

/// Compares a batch with an empty kernel and its floor, and checks the goals.
void print_goals(const timer& clock);

/// Compares the formats of patches.
void print_formats(const timer& clock);

/// Compares the ways to make maps without tmap.
void print_peers(const timer& clock);

/// Measures the cost of validation and of its reports.
void print_judging(const timer& clock);

/// Compares consumers of maps that were made earlier, just before, or by the consumer itself.
void print_fused(const timer& clock);

/// Measures the host time of the service.
void print_service(const timer& clock);

}  // namespace tmap::apps::bench
