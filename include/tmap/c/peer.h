// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/call.h>
#include <tmap/c/moe.h>
#include <tmap/c/spec.h>

/// @file
/// Groups of GPUs, their windows, and calls that all ranks make together. peer_group.hpp,
/// peer_memory.hpp, peer_exchange.hpp and expert_parallel.hpp describe what the functions do, who
/// owns what, and how they fail. The C interface adds `TMAP_INVALID_HANDLE` and `TMAP_GROUP_BUSY`.

#ifdef __cplusplus
extern "C" {
#endif

/// As nccl.h declares it: `ncclComm_t` is a pointer to it.
struct ncclComm;

#define TMAP_MAX_GROUP_RANKS 32

/// The bytes in front of the user's bytes in each window.
#define TMAP_PEER_HEADER_BYTES UINT64_C(262144)

/// A `tmap::peer_group`: one rank. Only one call at a time may use a group (`TMAP_GROUP_BUSY`);
/// calls with different groups may run at once. Windows may outlive their group.
typedef struct tmap_peer_group {
  uint64_t value;
} tmap_peer_group;

/// `tmap::peer_id`. Its layout never changes.
typedef struct tmap_peer_id {
  uint8_t bytes[128];
} tmap_peer_id;

/// `tmap::peer_start`.
typedef struct tmap_peer_start {
  uint32_t struct_size;
  uint32_t rank;
  uint32_t ranks;
  uint32_t skip_self_test;  ///< 0 or 1
  tmap_peer_id id;          ///< of `tmap_peer_new_id`; unused with `id_file`
  const char* id_file;      ///< a path that ends with 0, or null
  uint64_t run;             ///< a number that no earlier start with this `id_file` had
  uint64_t patience_ms;     ///< 0: the default of `tmap::peer_start`
} tmap_peer_start;

/// The bytes of `tmap::peer_memory_ref`, a kernel parameter, so without a size. The user's bytes of
/// rank r begin at `windows[r] + TMAP_PEER_HEADER_BYTES`, and those of this rank are those of rank
/// `rank`.
typedef struct tmap_peer_memory_ref {
  uint64_t windows[TMAP_MAX_GROUP_RANKS];  ///< addresses as the GPU of this rank sees them
  uint64_t bytes;                          ///< of the user, on each rank
  uint32_t rank;
  uint32_t ranks;
} tmap_peer_memory_ref;

/// Values of `tmap_exchange_problem::placed` (`tmap::row_placement`).
enum { TMAP_RANK_MAJOR = 0, TMAP_GROUP_MAJOR = 1 };

/// `tmap::exchange_problem` and the choices of `tmap::exchange_run`. Pointers are device memory
/// inside the user's bytes of this rank's window. `splits` and `out_splits` are [ranks, groups].
typedef struct tmap_exchange_problem {
  uint32_t struct_size;
  uint32_t row_bytes;  ///< the same on all ranks
  const void* rows;    ///< [sent_rows, row_bytes]
  uint64_t sent_rows;
  const uint32_t* splits;
  void* out;  ///< [capacity, row_bytes]
  uint64_t capacity;
  uint32_t* out_splits;
  uint32_t groups;  ///< of each rank; 0 stands for 1
  uint32_t placed;  ///< TMAP_RANK_MAJOR or TMAP_GROUP_MAJOR
  uint32_t blocks;  ///< of the kernel; 0: the default of `tmap::exchange_run`
  uint32_t reserved;
  uint64_t patience_ms;       ///< 0: the default of `tmap::exchange_run`
  uint64_t rows_pitch_bytes;  ///< from one row to the next; 0: `row_bytes`
  uint64_t out_pitch_bytes;   ///< the same of `out`, whose bytes between rows stay
} tmap_exchange_problem;

/// Values of `tmap_expert_shape::returned` (`tmap::expert_parallel::return_kind`).
enum { TMAP_RETURN_SUMS = 0, TMAP_RETURN_ROWS = 1 };

/// `tmap::expert_parallel::shape`: the sizes of a dispatch and its combine.
typedef struct tmap_expert_shape {
  uint32_t struct_size;
  uint32_t k;            ///< choices of each token
  uint64_t tokens;       ///< of this rank
  uint64_t arrivals;     ///< tokens of all ranks that this rank has room for
  uint64_t rows;         ///< that this rank has room for; 0: as many as its arrivals have at most
  uint64_t columns;      ///< of a result
  uint32_t experts;      ///< of all ranks together, a multiple of the ranks
  uint32_t alignment;    ///< of the first row of each expert; 0 stands for 1
  uint32_t row_bytes;    ///< of a token, a multiple of 16
  uint32_t scales;       ///< f32 that go with each row
  uint32_t result_type;  ///< TMAP_FLOAT_*
  uint32_t returned;     ///< TMAP_RETURN_*
} tmap_expert_shape;

/// `tmap::expert_parallel::dispatch_problem` and the choices of `tmap::expert_parallel::run`. Its
/// `sizes` has a `struct_size` of its own. Pointers are device memory of the caller. `x`, `out` and
/// `workspace` lie in the user's bytes of this rank's window. Results that are null are not wanted.
typedef struct tmap_peer_dispatch_problem {
  uint32_t struct_size;
  /// Counts the blocks of the kernels that move rows. With few tokens there is one more. 0 stands
  /// for the default of `tmap::expert_parallel::run`.
  uint32_t blocks;
  tmap_expert_shape sizes;
  tmap_matrix x;             ///< [tokens] rows
  const float* x_scales;     ///< [tokens, scales]
  uint64_t x_scale_pitch;    ///< elements from one token's scales to the next
  const int32_t* ids;        ///< [tokens, k]
  const float* weights;      ///< [tokens, k]; null: all are 1
  tmap_matrix out;           ///< [rows] rows, in the order by expert
  float* out_scales;         ///< [rows, scales]
  int32_t* counts;           ///< [experts of this rank]
  int32_t* begins;           ///< [experts of this rank + 1]
  int32_t* ends;             ///< [experts of this rank]
  float* weight_of_row;      ///< [rows]
  void* workspace;           ///< the same for a dispatch and its combine; aligned to 256 bytes
  uint64_t workspace_bytes;  ///< of `tmap_peer_workspace_bytes`, at least
  uint64_t patience_ms;      ///< of each kernel; 0: the default of `tmap::expert_parallel::run`
  /// Null, or [experts of this rank + 1]: lets a product begin while rows come
  /// (`tmap::expert_parallel::dispatch_problem::pending`).
  uint32_t* pending;
  tmap_event ready;  ///< null, or the event for a stream that runs such a product
} tmap_peer_dispatch_problem;

/// `tmap::expert_parallel::combine_problem` and the choices of `tmap::expert_parallel::run`. Its
/// `sizes` are those of the dispatch, and its `workspace` is the dispatch's.
typedef struct tmap_peer_combine_problem {
  uint32_t struct_size;
  uint32_t blocks;  ///< as in the dispatch
  tmap_expert_shape sizes;
  tmap_matrix values;    ///< [rows, columns]; with TMAP_RETURN_ROWS in the window
  const float* weights;  ///< [tokens, k]; only TMAP_RETURN_ROWS reads it here
  tmap_matrix base;      ///< [tokens, columns]; address 0 stands for zeros
  tmap_matrix out;       ///< [tokens, columns]
  void* workspace;
  uint64_t workspace_bytes;
  uint64_t patience_ms;
} tmap_peer_combine_problem;

/// Makes a group of memory that the caller has found: `windows` has `ranks` addresses, multiples of
/// 256, with `window_bytes` bytes each. The memory stays the caller's, and must be zero on all
/// ranks before any rank uses a window.
TMAP_API tmap_status tmap_peer_group_from_addresses(uint32_t rank, const uint64_t* windows, uint32_t ranks,
                                                    uint64_t window_bytes, tmap_peer_group* group);

/// Makes the groups of all ranks of this process: rank i is GPU `devices[i]`, and gets `groups[i]`.
TMAP_API tmap_status tmap_peer_group_of_process(const int32_t* devices, uint32_t ranks, tmap_peer_group* groups);

/// Makes a group of the ranks of an existing communicator, which stays the caller's and must
/// outlive the group and its windows. `patience_ms` 0 stands for the default of `tmap::peer_start`.
TMAP_API tmap_status tmap_peer_group_from_nccl(struct ncclComm* communicator, uint64_t patience_ms,
                                               tmap_peer_group* group);

/// Makes an id for `tmap_peer_group_create`. Call it on one rank.
TMAP_API tmap_status tmap_peer_new_id(tmap_peer_id* id);

/// Makes a group with a communicator of its own, on the current device. Waits for the other ranks.
TMAP_API tmap_status tmap_peer_group_create(const tmap_peer_start* start, tmap_peer_group* group);

TMAP_API tmap_status tmap_peer_group_query(tmap_peer_group group, uint32_t* rank, uint32_t* ranks);

/// Asks NCCL whether a peer was lost. Waits for nothing.
TMAP_API tmap_status tmap_peer_group_check(tmap_peer_group group);

/// Ends this rank of the group. Its windows stay.
TMAP_API tmap_status tmap_peer_group_destroy(tmap_peer_group group);

/// Makes a window of `bytes` bytes for each rank. All ranks must ask for the same sizes in the same
/// order, except that the first rank of `tmap_peer_group_of_process` makes it for all.
TMAP_API tmap_status tmap_peer_group_allocate(tmap_peer_group group, uint64_t bytes, tmap_peer_memory* window);

/// Makes a window for ranks that do not reach each other's memory, of a group of
/// `tmap_peer_group_create` or `tmap_peer_group_from_nccl` (`tmap::peer_group::allocate_local`).
/// `tmap_peer_exchange_rows`, `tmap_peer_await_pulls`, `tmap_peer_barrier` and
/// `tmap_peer_last_outcome` take it. No other thread may use the group or its communicator during
/// these calls.
TMAP_API tmap_status tmap_peer_group_allocate_local(tmap_peer_group group, uint64_t bytes, uint64_t pair_bytes,
                                                    tmap_peer_memory* window);

/// Returns the addresses, which are valid until the window is destroyed. Those of ranks that this
/// one does not reach are 0.
TMAP_API tmap_status tmap_peer_memory_query(tmap_peer_memory window, tmap_peer_memory_ref* ref);

/// Frees this rank's part of a window, once the calls in progress with it have returned. No kernel
/// of any rank may use the window any more.
TMAP_API tmap_status tmap_peer_memory_destroy(tmap_peer_memory window);

/// Returns the bytes of the workspace of a dispatch and its combine in a group of so many ranks, on
/// a rank with these sizes (`tmap::expert_parallel::workspace_bytes`). Calls no CUDA.
TMAP_API tmap_status tmap_peer_workspace_bytes(const tmap_expert_shape* sizes, uint32_t ranks, uint64_t* bytes);

/// Returns the rows of `out` and `values` that this rank has room for: `sizes->rows`, or as many as
/// its arrivals have at most (`tmap::expert_parallel::row_count`). Calls no CUDA.
TMAP_API tmap_status tmap_peer_expert_rows(const tmap_expert_shape* sizes, uint32_t ranks, uint64_t* rows);

// The calls below are collective, except for `tmap_peer_abort` and `tmap_peer_last_outcome`. The
// current device must be the GPU of this rank. `patience_ms` 0 stands for
// `tmap::default_peer_patience`.

/// `tmap::exchange_rows_async`.
TMAP_API tmap_status tmap_peer_exchange_rows(tmap_peer_memory window, const tmap_exchange_problem* problem,
                                             tmap_stream stream);

/// `tmap::expert_parallel::dispatch_async` and `combine_async`. Arrays, rows and the workspace stay
/// the caller's. They must live, inputs unchanged and outputs unread, until the work has run in
/// stream order. `x` may be overwritten after the combine, and `values` of TMAP_RETURN_ROWS after
/// `tmap_peer_await_pulls`. Outputs are undefined unless `tmap_peer_last_outcome` is a success; one
/// look after the combine is enough. Any thread may make the calls. All ranks make them in one
/// order, so threads with one window take turns.
TMAP_API tmap_status tmap_peer_dispatch(tmap_peer_memory window, const tmap_peer_dispatch_problem* problem,
                                        tmap_stream stream);
TMAP_API tmap_status tmap_peer_combine(tmap_peer_memory window, const tmap_peer_combine_problem* problem,
                                       tmap_stream stream);

/// `tmap::await_pulls_async`, `tmap::barrier_async` and `tmap::self_test_async`.
TMAP_API tmap_status tmap_peer_await_pulls(tmap_peer_memory window, uint64_t patience_ms, tmap_stream stream);
TMAP_API tmap_status tmap_peer_barrier(tmap_peer_memory window, uint64_t patience_ms, tmap_stream stream);
TMAP_API tmap_status tmap_peer_self_test(tmap_peer_memory window, uint64_t patience_ms, tmap_stream stream);

/// `tmap::abort_group`. Waits for copies to all ranks.
TMAP_API tmap_status tmap_peer_abort(tmap_peer_memory window);

/// Waits for the stream and returns how the last exchange or `tmap_peer_await_pulls` ended
/// (`tmap::last_outcome`).
TMAP_API tmap_status tmap_peer_last_outcome(tmap_peer_memory window, tmap_stream stream);

/// Describes the tensors at one place in the windows of all ranks as one tensor, whose last
/// coordinate is the rank (`tmap::all_ranks_spec`). `spec->struct_size` and `reserved` are set.
TMAP_API tmap_status tmap_all_ranks_spec(const tmap_tensor_spec* local, tmap_peer_memory window,
                                         tmap_tensor_spec* spec);

#ifdef __cplusplus
}
#endif
