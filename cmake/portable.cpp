// SPDX-License-Identifier: Apache-2.0
// Holds what `libtmap.so` of the wheel needs of newer systems.

extern "C" {
/// Replaces a variable of glibc 2.32, which headers of the C++ library read. Zero means that the
/// process may have other threads.
extern char __libc_single_threaded;
char __libc_single_threaded = 0;
}
