// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/map_template.hpp>
#include <tmap/peer_memory_ref.hpp>

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/moe_launch.hpp"
#include "kernels/peer/map_test_area.hpp"
#include "kernels/peer/protocol_parcels.hpp"
#include "kernels/peer/protocol_record_fetch.hpp"
#include "kernels/peer/protocol_sums.hpp"

// The kernels of groups of GPUs as plain functions.

namespace tmap::kernels {

/// Returns the version of the NCCL headers that `launch_ask_window` was built with: 22809 for
/// 2.28.9, and 0 if there were none. NCCL before 2.31 promises nothing for other versions.
int ask_window_version();

/// Writes where a window of NCCL (ncclWindow_t) lies on each rank, as this GPU sees it, to device
/// memory. If the ranks do not all reach each other, a rank finds zeros, but not every rank does.
/// One thread.
cudaError_t launch_ask_window(const void* window, std::uint32_t ranks, std::uint64_t* addresses, cudaStream_t stream);

// `patience` is the nanoseconds after which a kernel gives up. Each writes its verdict into the
// window of this rank, and none traps.

/// Loads all kernels that wait for peers. CUDA may wait for the device when it loads one. If a rank
/// of the same GPU waited for this one then, neither would go on.
cudaError_t load_peer_kernels();

/// Exchanges rows by `request.blocks` blocks. The launch sets `request.block`.
cudaError_t launch_exchange(const peer_memory_ref& window, const peer::exchange_request& request,
                            std::uint64_t patience, cudaStream_t stream);

/// Does the same. It announces the call after it, too, if that `is_announced`.
cudaError_t launch_exchange_and_announce(const peer_memory_ref& window, const peer::exchange_request& request,
                                         const peer::exchange_request& next, std::uint64_t patience,
                                         cudaStream_t stream);

/// Packs the parcels of an exchange by `request.blocks` blocks. The launch sets `request.block`.
cudaError_t launch_pack_parcels(const peer_memory_ref& window, const peer::exchange_request& request,
                                const peer::parcel_layout& at, cudaStream_t stream);
/// Delivers the announcements of parcels that came. The exchange comes next, and takes the image
/// for the windows of other ranks.
cudaError_t launch_deliver_parcels(const peer_memory_ref& window, const peer::exchange_request& request,
                                   const peer::parcel_layout& at, cudaStream_t stream);

/// Describes the parts of a dispatch, or of its return, that touch this rank's window alone.
struct dispatch_call {
  const peer_memory_ref& window;
  peer::expert_arrays at;
  peer::token_choices given;
  std::uint64_t departures;  ///< records that may go
  float* row_scales;         ///< [rows, scales]: gets the scales that came; null without scales
  cudaStream_t stream;
};
/// Writes the rank of each choice. There is at least one token, as for records.
cudaError_t launch_write_ranks(const dispatch_call& call);
/// Writes the records, unless the last verdict in the window is a failure: others may then still
/// read those that are there.
cudaError_t launch_write_records(const dispatch_call& call);
/// Makes choices of the records that came. There is room for at least one, as for the list.
cudaError_t launch_write_choices(const dispatch_call& call);
/// Makes the list of rows to fetch, and puts scales to their rows.
cudaError_t launch_write_list(const dispatch_call& call);
/// Puts scales to the rows of the records that came.
cudaError_t launch_put_scales(const dispatch_call& call);

/// Describes a dispatch of few tokens. Its route is that of given choices, of at most
/// `most_prepared_choices`.
struct few_tokens_call {
  const peer_memory_ref& window;
  peer::preparation work;
  const route_call& by_expert;
  std::uint64_t patience;
};
/// Runs a dispatch by `work.rows.call.blocks` blocks, of which one prepares it. It puts no scales.
cudaError_t launch_dispatch_few(const few_tokens_call& call);

/// Makes the list of results to fetch home. It needs only `window`, `at` and `stream`.
cudaError_t launch_write_returns(const dispatch_call& call);

/// Fetches rows by `request.call.blocks` blocks. The launch sets `request.call.block`.
cudaError_t launch_fetch(const peer_memory_ref& window, const peer::fetch_request& request, std::uint64_t patience,
                         cudaStream_t stream);

/// Describes weighted sums of the rows of each token's choices, in their order: they have the bits
/// of `moe::combine`. Most choices may have no row.
struct weighted_rows {
  std::uint32_t k;
  std::uint64_t columns;
  moe::float_type type;
  std::uint64_t rows;
  gemm::matrix values;                ///< [rows, columns]
  const std::int32_t* row_of_choice;  ///< [tokens, k]; -1: none
  const float* weights;               ///< [tokens, k]; null: all are 1
};
/// Describes those of this rank's tokens, at least one.
struct home_sums : weighted_rows {
  std::uint64_t tokens;
  gemm::matrix base;  ///< [tokens, columns]; address 0: zeros
  gemm::matrix out;   ///< [tokens, columns]
};
/// Adds up this rank's tokens, unless the last verdict in the window is a failure.
cudaError_t launch_home_sums(const peer_memory_ref& window, const home_sums& of, std::uint32_t multiprocessors,
                             cudaStream_t stream);
/// Loads the kernel for a type now, instead of at its first launch.
cudaError_t load_home_sums(moe::float_type type);

/// Describes a combine of sums.
struct combine_work {
  weighted_rows came;                    ///< of the records that came
  std::uint64_t arrivals;                ///< how many of these there may be
  std::uint64_t arrived;                 ///< offset in the own window: [ranks]: how many came from each
  const std::uint64_t* targets;          ///< [arrivals]: the place of each sum; one outside all windows gets none
  std::uint64_t tokens;                  ///< of this rank
  std::uint64_t departed;                ///< offset: [ranks]: how many records went to each
  const std::int32_t* record_of_choice;  ///< [tokens, k]: the record that went for it, or -1
  std::uint64_t returned;                ///< offset: [departures] places
  gemm::matrix base;                     ///< [tokens, columns]; address 0: zeros
  gemm::matrix out;                      ///< [tokens, columns]
  peer::sums_request request;            ///< the launch sets `blocks`
  std::uint32_t senders{};               ///< of these blocks; the launch sets it
};
/// Adds up the results of each token at the rank that has them, and the sums of ranks at home.
/// Blocks that wait for other ranks leave a quarter of the multiprocessors to those that do not.
cudaError_t launch_combine(const peer_memory_ref& window, const combine_work& work, std::uint32_t multiprocessors,
                           std::uint64_t patience, cudaStream_t stream);
/// Loads the kernel for a type now, instead of at its first launch.
cudaError_t load_combine(moe::float_type type);

/// Waits until all ranks have pulled what this rank sent.
cudaError_t launch_await_credits(const peer_memory_ref& window, std::uint64_t patience, cudaStream_t stream);

/// Tests the way to every rank and back. `base` is the template of `peer::map_test_spec` whose maps
/// differ in their addresses.
cudaError_t launch_peer_self_test(const peer_memory_ref& window, const map_template& base, std::uint64_t patience,
                                  cudaStream_t stream);

/// Waits until all ranks have come here.
cudaError_t launch_peer_barrier(const peer_memory_ref& window, std::uint64_t patience, cudaStream_t stream);

}  // namespace tmap::kernels
