// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes what a dispatch exchanges: a *record* for each token and each rank that has some of its
// experts. The rank that gets records makes choices of them, which are sorted by expert. Functions
// work over a link and write the own window. Those that take records where they lie read windows of
// others, too.

#include "kernels/peer/protocol_eager.hpp"
#include "kernels/peer/protocol_fetch.hpp"
#include "kernels/peer/protocol_sums.hpp"

namespace tmap::kernels::peer {

/// Places the arrays of a dispatch. Offsets are bytes of the own window.
struct expert_arrays {
  std::uint32_t tokens;    ///< of this rank
  std::uint32_t k;         ///< choices of a token
  std::uint32_t experts;   ///< of each rank
  std::uint32_t scales;    ///< words that travel with each row
  std::uint32_t arrivals;  ///< records that this rank has room for
  /// [tokens, k]: the rank of each choice. -1: none, or an earlier choice of the token has it.
  std::uint64_t rank_of_choice;
  std::uint64_t record_of_choice;  ///< [tokens, k]: the record that goes to this rank, or -1
  std::uint64_t token_of_record;   ///< [departures], or -1
  std::uint64_t departing;         ///< [departures] records, in the order of ranks, then of tokens
  std::uint64_t arriving;          ///< [arrivals] records
  std::uint64_t arrived;           ///< [ranks]: how many records came from each
  std::uint64_t total;             ///< how many records came
  std::uint64_t ids;               ///< [arrivals, k]: experts of this rank, or -1; of many tokens alone
  std::uint64_t weights;           ///< [arrivals, k]
  std::uint64_t places;            ///< [arrivals, k]: the row of each choice, or -1
  std::uint64_t first_ids;         ///< [arrivals]: the first expert of each record that came, or -1
  /// [arrivals]: the number of each record in the order by first expert, in which rows are fetched
  std::uint64_t order;
  std::uint64_t list;        ///< [arrivals] entries
  std::uint32_t list_parts;  ///< blocks that take turns in the list
  pending_groups pending;    ///< experts of this rank

  // Of sums that come home.
  std::uint64_t returned;  ///< [departures] places: get the sum of each record that went
  sum_place place;
  std::uint64_t targets;  ///< [arrivals]: the place of the sum of each record that came, as `link.address`

  // Of results that come home one by one.
  std::uint64_t departed;         ///< [ranks]: how many records went to each
  std::uint64_t sent_places;      ///< [arrivals, `place_words`]: `places` of the records, to send
  std::uint64_t returned_places;  ///< [departures, `place_words`]: those of the records that went
  std::uint64_t return_list;      ///< [departures, k] entries of one place
  std::uint64_t return_count;     ///< how many entries these are
  std::uint64_t landed;           ///< [tokens, k]: the number of the choice if its result comes, or -1
};

/// Names the words of a record. The first ones are the token, where its sum goes in the window of
/// its rank, and that rank, which the receiver finds for itself: until then the word is what
/// `count_of` returned. Experts of the receiver follow, then weights, then scales.
namespace record {
inline constexpr std::uint32_t token = 0, sum_low = 1, sum_high = 2, source = 3, experts = 4;
}  // namespace record

/// Stands for no expert in a record, and for no place in a list.
inline constexpr std::uint32_t none = ~0u;

TMAP_HOST_DEVICE constexpr std::uint32_t record_words(std::uint32_t k, std::uint32_t scales) {
  return (record::experts + 2 * k + scales + 3) / 4 * 4;
}

/// Returns the words in which the places of a record travel.
TMAP_HOST_DEVICE constexpr std::uint32_t place_words(std::uint32_t k) {
  return (k + 3) / 4 * 4;
}

/// Returns the offset of a word of record `i`.
TMAP_HOST_DEVICE constexpr std::uint64_t record_word(const expert_arrays& at, std::uint64_t records, std::uint64_t i,
                                                     std::uint32_t word) {
  return word_at(records, i * record_words(at.k, at.scales) + word);
}

/// Points to the choices of this rank's tokens, and to what goes with their rows: f32 as words.
struct token_choices {
  const std::int32_t* ids;       ///< [tokens, k] experts of all ranks
  const std::uint32_t* weights;  ///< [tokens, k]; null: all are 1
  const std::uint32_t* scales;   ///< `scale_pitch` words from one token's to the next
  std::uint64_t scale_pitch;
};

/// Returns the rank of a choice of this rank's tokens. None: it has no expert, or an earlier choice
/// of its token goes to the same rank.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE std::uint32_t rank_of_choice(const Link& link, const expert_arrays& at,
                                                            const token_choices& given, std::uint32_t choice) {
  const auto expert_of = [&](std::uint32_t i) { return static_cast<std::uint32_t>(given.ids[i]); };
  const std::uint32_t rank = expert_of(choice) / at.experts;  // none is far above
  bool is_new = rank < link.ranks();
  TMAP_KEEP_ROLLED
  for (std::uint32_t i = choice - choice % at.k; i < choice; ++i) {
    is_new &= expert_of(i) - rank * at.experts >= at.experts;  // another division would take longer
  }
  return is_new ? rank : none;
}

/// Writes the rank of a choice.
template <class Link>
TMAP_HOST_DEVICE void write_rank(Link& link, const expert_arrays& at, const token_choices& given,
                                 std::uint32_t choice) {
  link.store(link.rank(), word_at(at.rank_of_choice, choice), rank_of_choice(link, at, given, choice));
}

/// Returns the rank whose part of some records has record `i`. `counts` has the records of each
/// rank.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE std::uint32_t rank_of_record(Link& link, std::uint64_t counts, std::uint64_t i) {
  std::uint32_t rank = 0;
  TMAP_KEEP_ROLLED
  for (std::uint64_t end = 0; rank + 1 < link.ranks(); ++rank) {
    end += link.load(link.rank(), word_at(counts, rank));
    if (i < end) break;
  }
  return rank;
}

/// Returns how many records all ranks have together.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE std::uint32_t sum_of_counts(Link& link, std::uint64_t counts) {
  std::uint32_t sum = 0;
  TMAP_KEEP_ROLLED
  for (std::uint32_t rank = 0; rank < link.ranks(); ++rank) sum += link.load(link.rank(), word_at(counts, rank));
  return sum;
}

/// Names record `i`: its token, and the rank that it goes to.
struct departing_record {
  std::uint32_t token;
  std::uint32_t rank;
  std::uint32_t eager;  ///< its number among those of this rank if they are eager, or -1
};

/// Makes the words of records.
class record_maker {
 public:
  TMAP_HOST_DEVICE record_maker(const expert_arrays& at, const token_choices& given)
      : at_(at), given_(given), weights_(record::experts + at.k), scales_(weights_ + at.k) {}

  /// Returns what word `word` of record `i`, of a token, is made of.
  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t load(Link& link, std::uint32_t i, std::uint32_t token,
                                                    std::uint32_t word) const {
    constexpr std::uint32_t one = 0x3f800000;
    if (word == record::source && at_.place.bytes != 0) return count_of(link, at_.place, sum_of(i));
    const std::uint64_t choice = std::uint64_t{token} * at_.k;
    const std::uint32_t* from = nullptr;
    if (word >= scales_) {
      if (word < scales_ + at_.scales) from = given_.scales + token * given_.scale_pitch + (word - scales_);
    } else if (word >= weights_) {
      if (given_.weights != nullptr) from = given_.weights + choice + (word - weights_);
    } else if (word >= record::experts) {
      from = reinterpret_cast<const std::uint32_t*>(given_.ids) + choice + (word - record::experts);
    }
    return from != nullptr ? *from : one;
  }
  /// Returns the word of record `i`. Only one thread calls it for each word.
  template <class Link>
  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t finish(Link& link, std::uint32_t i, const departing_record& record,
                                                      std::uint32_t word, std::uint32_t loaded) const {
    if (word >= weights_) return loaded;
    const std::uint32_t expert = loaded - record.rank * at_.experts;
    if (word >= record::experts) return expert < at_.experts ? expert : none;
    if (word == record::token) return record.token;
    if (word == record::source) {
      if (at_.place.bytes != 0) keep_count(link, at_.place, sum_of(i), loaded);
      return loaded;
    }
    return static_cast<std::uint32_t>(word == record::sum_high ? sum_of(i) >> 32 : sum_of(i));
  }

 private:
  /// Returns the offset of the place of a sum.
  [[nodiscard]] TMAP_HOST_DEVICE std::uint64_t sum_of(std::uint32_t i) const {
    return at_.returned + std::uint64_t{i} * at_.place.pitch();
  }
  const expert_arrays& at_;
  const token_choices& given_;
  std::uint32_t weights_;  ///< where they begin
  std::uint32_t scales_;
};

/// Writes the records, unless the last verdict in the window is a failure: others may then still
/// read those that are there. Each warp writes a record, a word with each lane.
template <class Link>
TMAP_HOST_DEVICE void write_records(Link& link, const expert_arrays& at, const token_choices& given,
                                    std::uint64_t departures, const word_worker& mine) {
  const std::uint32_t me = link.rank();
  if (!is_success(link, offsetof(window_header, verdict))) return;
  const record_maker made(at, given);
  share(mine.warp, departures, [&](std::uint64_t i) {
    const std::uint32_t token = link.load(me, word_at(at.token_of_record, i));
    if (token >= at.tokens) return;  // no record
    const departing_record of{token, rank_of_record(link, at.departed, i), none};
    const auto record = static_cast<std::uint32_t>(i);
    share(mine.lane, record_words(at.k, at.scales), [&](std::uint64_t number) {
      const auto word = static_cast<std::uint32_t>(number);
      const std::uint32_t value = made.finish(link, record, of, word, made.load(link, record, of.token, word));
      link.store(me, record_word(at, at.departing, i, word), value);
    });
  });
}

/// Takes the packets of the records of a source, and their weights.
template <class Link>
class record_taker {
 public:
  /// The first record of the source gets the number `first` here.
  TMAP_HOST_DEVICE record_taker(Link& link, const expert_arrays& at, std::uint32_t source, std::uint32_t first)
      : link_(link),
        at_(at),
        source_(source),
        first_(first),
        weights_(record::experts + at.k),
        scales_(weights_ + at.k),
        words_(record_words(at.k, at.scales)),
        packets_(packets_of(words_)) {}

  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t packets(std::uint32_t records) const { return records * packets_; }
  /// Pulls a packet of records that lie at an offset of their window.
  [[nodiscard]] TMAP_HOST_DEVICE packet pull(std::uint64_t records, std::uint32_t i) const {
    const std::uint32_t number = i / packets_, first = (i - number * packets_) * packet_words;
    packet found{};
    for (std::uint32_t j = 0; j < packet_words; ++j) {
      if (first + j < words_) found.words[j] = link_.load(source_, record_word(at_, records, number, first + j));
    }
    return found;
  }
  TMAP_HOST_DEVICE void take(std::uint32_t i, const packet& found) const {
    const std::uint32_t number = i / packets_, first = (i - number * packets_) * packet_words;
    for (std::uint32_t j = 0; j < packet_words; ++j) take_word(first_ + number, first + j, found.words[j]);
  }

 private:
  TMAP_HOST_DEVICE void take_word(std::uint32_t number, std::uint32_t word, std::uint32_t value) const {
    if (word >= words_) return;
    const std::uint32_t me = link_.rank();
    link_.store(me, record_word(at_, at_.arriving, number, word), word == record::source ? source_ : value);
    if (word < weights_ || word >= scales_) return;
    link_.store(me, word_at(at_.weights, std::uint64_t{number} * at_.k + (word - weights_)), value);
  }

  Link& link_;
  const expert_arrays& at_;
  std::uint32_t source_;
  std::uint32_t first_;
  std::uint32_t weights_;  ///< where they begin
  std::uint32_t scales_;
  std::uint32_t words_;  ///< of a record
  std::uint32_t packets_;
};

/// Returns how many records came: none unless the exchange of records ended well.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE std::uint32_t count_arrived(Link& link, const expert_arrays& at) {
  return is_success(link, offsetof(window_header, verdict)) ? sum_of_counts(link, at.arrived) : 0;
}

/// Writes the expert and the weight of choice `choice` of the arrivals, of which there are `total`.
template <class Link>
TMAP_HOST_DEVICE void write_choice(Link& link, const expert_arrays& at, std::uint64_t choice, std::uint32_t total) {
  const std::uint32_t me = link.rank();
  const std::uint64_t i = choice / at.k;
  const std::uint32_t word = record::experts + static_cast<std::uint32_t>(choice % at.k);
  std::uint32_t id = none;
  if (i < total) {
    id = link.load(me, record_word(at, at.arriving, i, word));
    link.store(me, word_at(at.weights, choice), link.load(me, record_word(at, at.arriving, i, word + at.k)));
  }
  link.store(me, word_at(at.ids, choice), id < at.experts ? id : none);
}

/// Returns the first expert of record `i` of those that came. A record without one, which no rank
/// should send, goes with the last expert, so that each has its number.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE std::uint32_t first_expert(Link& link, const expert_arrays& at, std::uint64_t i) {
  std::uint32_t first = at.experts - 1;
  TMAP_KEEP_ROLLED
  for (std::uint32_t j = 0; j < at.k; ++j) {
    const std::uint32_t id = link.load(link.rank(), record_word(at, at.arriving, i, record::experts + j));
    if (id < first) first = id;
  }
  return first;
}

/// Makes choices of the records that came, and finds where each is from.
template <class Link>
TMAP_HOST_DEVICE void write_choices(Link& link, const expert_arrays& at, const worker& thread) {
  const std::uint32_t total = count_arrived(link, at);
  if (thread.number == 0) link.store(link.rank(), at.total, total);
  share(thread, std::uint64_t{at.arrivals} * at.k, [&](std::uint64_t i) { write_choice(link, at, i, total); });
  share(thread, at.arrivals, [&](std::uint64_t i) {
    link.store(link.rank(), word_at(at.first_ids, i), i < total ? first_expert(link, at, i) : none);
    if (i < total)
      link.store(link.rank(), record_word(at, at.arriving, i, record::source), rank_of_record(link, at.arrived, i));
  });
}

}  // namespace tmap::kernels::peer
