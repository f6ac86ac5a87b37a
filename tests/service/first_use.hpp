// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tmap::testing {

// Make the first call of a process inside a capture of the global mode, before anything of the
// library is loaded. Each returns 0 if the call, its capture and a replay succeed and the replay
// writes the right results.

int first_encode_child();
int first_copy_child();
int first_rows_child();
int first_product_child();

}  // namespace tmap::testing
