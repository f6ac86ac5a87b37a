// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// tmap for C99 and for languages that call C. The C++ header of the same name describes what a
/// function does. The C headers describe what C adds.
///
/// - Every function returns a `tmap_status`, except those that return a name or a number. A
///   function that fails does not change what its pointers point to, unless its comment states
///   otherwise. `tmap_last_message` has the reason in words.
/// - A struct begins with its size: set `struct_size` to its `sizeof`, and `reserved` and all
///   unused members to 0.
/// - Pointers are checked for null and alignment, enums and flags (0 or 1) for their range. The
///   device judges what device pointers point to.
/// - Handles name objects of the library. They are checked at each use and never name another
///   object later; 0 names none. A call in progress keeps what it uses alive, so any thread may
///   destroy an object at any time.
/// - Text goes to the caller's buffer of `capacity` bytes, cut to fit and ended by 0. `length` (may
///   be null) is the whole length without that 0, also with `TMAP_BUFFER_TOO_SMALL`. With
///   `capacity` 0 a call succeeds and returns only the length.
/// - A `tmap_call`, or a stream alone, comes last. Functions that take one enqueue and return, as
///   in C++.
/// - All functions may be called from any thread. No C++ exception leaves them.
/// - Names and layouts stay within a major version; from 1.0.0 on, structs grow at their end only.

#include <tmap/c/batch.h>
#include <tmap/c/call.h>
#include <tmap/c/faults.h>
#include <tmap/c/gemm.h>
#include <tmap/c/moe.h>
#include <tmap/c/peer.h>
#include <tmap/c/ragged.h>
#include <tmap/c/service.h>
#include <tmap/c/simulator.h>
#include <tmap/c/spec.h>
#include <tmap/c/status.h>
#include <tmap/c/xla.h>
