// SPDX-License-Identifier: Apache-2.0
#pragma once

// tmap for C99 and everything that speaks to C. What a function does is said in the C++ header of
// the same name; here stands what C adds.
//
// - Every function answers with a `tmap_status` (but for names and numbers). One that fails changes
//   nothing: what its pointers point to is as before, unless its comment says otherwise.
//   `tmap_last_message` has the reason in words.
// - A struct begins with its size: set `struct_size` to `sizeof` it, `reserved` and all that is not
//   used to 0.
// - Pointers are checked for null and alignment, enums and flags (0 or 1) for their range. What
//   device pointers point to is judged on the device.
// - Handles name objects of the library. They are checked at each use and never name another object
//   later; 0 names none. A call in progress keeps what it uses alive, so any thread may destroy an
//   object at any time.
// - Texts go to the caller's buffer of `capacity` bytes, cut and ended by 0. `length` (may be null)
//   is the whole length without that 0, also with `TMAP_BUFFER_TOO_SMALL`; with `capacity` 0 a call
//   only tells the length, and is no error.
// - A `tmap_call`, or a stream alone, comes last. Functions that take one enqueue and return, as
//   their C++ headers say.
// - All functions may be called from any thread. No C++ exception leaves them.
// - Names and layouts stay within a major version; from 1.0.0 on, structs grow at their end only.

#include <tmap/c/batch.h>
#include <tmap/c/call.h>
#include <tmap/c/faults.h>
#include <tmap/c/gemm.h>
#include <tmap/c/ragged.h>
#include <tmap/c/service.h>
#include <tmap/c/simulator.h>
#include <tmap/c/spec.h>
#include <tmap/c/status.h>
