// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tmap::testing {

// The first call of a process, inside a capture of the global mode: nothing of the library was
// loaded before. Each returns 0 where the call, its capture and a replay went well and the replay
// wrote what it should.

int first_encode_child();
int first_copy_child();
int first_rows_child();
int first_product_child();

}  // namespace tmap::testing
