// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes what a dispatch exchanges: a *record* for each token and each rank that has some of its
// experts. The rank that gets records makes choices of them, which are sorted by expert. Functions
// work over a link and write the own window. Those that take records where they lie read windows of
// others, too.

#include "kernels/peer/protocol_eager.hpp"
#include "kernels/peer/protocol_fetch.hpp"

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
  std::uint64_t ids;               ///< [arrivals, k]: experts of this rank, or -1
  std::uint64_t weights;           ///< [arrivals, k]
  std::uint64_t places;            ///< [arrivals, k]: the row of each choice, or -1
  std::uint64_t first_ids;         ///< [arrivals]: the first expert of each record that came, or -1
  /// [arrivals]: the number of each record in the order by first expert, in which rows are fetched
  std::uint64_t order;
  std::uint64_t list;        ///< [arrivals] entries
  std::uint32_t list_parts;  ///< blocks that take turns in the list
  pending_groups pending;    ///< experts of this rank

  // Of sums that come home.
  std::uint64_t returned;   ///< [departures] rows: gets the sum of each record that went
  std::uint64_t sum_bytes;  ///< of such a row; 0: no sums come home
  std::uint64_t targets;    ///< [arrivals]: where the sum of each record that came goes, as `link.address`

  // Of results that come home one by one.
  std::uint64_t departed;         ///< [ranks]: how many records went to each
  std::uint64_t sent_places;      ///< [arrivals, `place_words`]: `places` of the records, to send
  std::uint64_t returned_places;  ///< [departures, `place_words`]: those of the records that went
  std::uint64_t return_list;      ///< [departures, k] entries of one place
  std::uint64_t return_count;     ///< how many entries these are
  std::uint64_t landed;           ///< [tokens, k]: the number of the choice if its result comes, or -1
};

/// Names the words of a record. The first ones are the token, where its sum goes in the window of
/// its rank, and that rank, which the receiver finds for itself. Experts of the receiver follow,
/// then weights, then scales.
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
                                                            const token_choices& given, std::uint64_t choice) {
  const auto rank_of = [&](std::uint64_t i) {
    return static_cast<std::uint32_t>(given.ids[i]) / at.experts;  // none is far above
  };
  const std::uint32_t rank = rank_of(choice);
  bool is_new = rank < link.ranks();
  TMAP_KEEP_ROLLED
  for (std::uint64_t i = choice / at.k * at.k; i < choice; ++i) is_new &= rank_of(i) != rank;
  return is_new ? rank : none;
}

/// Writes the rank of a choice.
template <class Link>
TMAP_HOST_DEVICE void write_rank(Link& link, const expert_arrays& at, const token_choices& given,
                                 std::uint64_t choice) {
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

/// Makes one of the words of records.
class record_field {
 public:
  TMAP_HOST_DEVICE record_field(const expert_arrays& at, const token_choices& given, std::uint32_t word)
      : at_(at), word_(word) {
    constexpr std::uint32_t one = 0x3f800000;
    const std::uint32_t weights = record::experts + at.k, scales = weights + at.k;
    is_expert_ = record::experts <= word && word < weights;
    const bool is_weight = weights <= word && word < scales;
    if (is_expert_) take_from(reinterpret_cast<const std::uint32_t*>(given.ids) + (word - record::experts), at.k);
    if (is_weight && given.weights != nullptr) take_from(given.weights + (word - weights), at.k);
    if (scales <= word && word < scales + at.scales) take_from(given.scales + (word - scales), given.scale_pitch);
    if (is_weight) value_ = one;
    if (from_ == nullptr) from_ = reinterpret_cast<const std::uint32_t*>(given.ids);  // some word, to be left
  }

  /// Returns what the word of a record with this token is made of.
  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t load(std::uint32_t token) const { return from_[token * step_]; }
  /// Returns the word of record `i`.
  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t finish(std::uint32_t i, const departing_record& record,
                                                      std::uint32_t loaded) const {
    const std::uint32_t expert = loaded - record.rank * at_.experts;
    const std::uint64_t sum = at_.returned + i * at_.sum_bytes;
    std::uint32_t made = is_loaded_ ? loaded : value_;
    if (is_expert_) made = expert < at_.experts ? expert : none;
    if (word_ == record::token) made = record.token;
    if (word_ == record::sum_low) made = static_cast<std::uint32_t>(sum);
    if (word_ == record::sum_high) made = static_cast<std::uint32_t>(sum >> 32);
    return made;
  }

 private:
  TMAP_HOST_DEVICE void take_from(const std::uint32_t* from, std::uint64_t step) {
    from_ = from;
    step_ = step;
    is_loaded_ = true;
  }

  const expert_arrays& at_;
  std::uint32_t word_;
  const std::uint32_t* from_{nullptr};
  std::uint64_t step_{0};   ///< words from one token's to the next
  std::uint32_t value_{0};  ///< if no array has the word
  bool is_loaded_{false};
  bool is_expert_{false};
};

/// Writes the records, unless the last verdict in the window is a failure: others may then still
/// read those that are there. Each warp writes a record, a word with each lane.
template <class Link>
TMAP_HOST_DEVICE void write_records(Link& link, const expert_arrays& at, const token_choices& given,
                                    std::uint64_t departures, const word_worker& mine) {
  const std::uint32_t me = link.rank();
  if (!is_success(link, offsetof(window_header, verdict))) return;
  share(mine.warp, departures, [&](std::uint64_t i) {
    const std::uint32_t token = link.load(me, word_at(at.token_of_record, i));
    if (token >= at.tokens) return;  // no record
    const departing_record of{token, rank_of_record(link, at.departed, i), none};
    share(mine.lane, record_words(at.k, at.scales), [&](std::uint64_t word) {
      const record_field field(at, given, static_cast<std::uint32_t>(word));
      const std::uint32_t value = field.finish(static_cast<std::uint32_t>(i), of, field.load(of.token));
      link.store(me, record_word(at, at.departing, i, static_cast<std::uint32_t>(word)), value);
    });
  });
}

/// Names the records of a source.
struct coming_records {
  std::uint64_t offset;  ///< in its window
  bool is_eager;
  std::uint32_t count;
  std::uint32_t first;  ///< the number of the first one here
};

/// Takes one of the words of the records of a source, and makes choices of it.
template <class Link>
class taken_field {
 public:
  TMAP_HOST_DEVICE taken_field(Link& link, const expert_arrays& at, const eager_source<Link>& source,
                               const coming_records& from, std::uint32_t word)
      : link_(link), at_(at), source_(source), from_(from), word_(word) {
    const std::uint32_t weights = record::experts + at.k, scales = weights + at.k;
    is_expert_ = record::experts <= word && word < weights;
    is_choice_ = record::experts <= word && word < scales;
    choice_ = is_expert_ ? word_at(at.ids, word - record::experts) : word_at(at.weights, word - weights);
  }

  [[nodiscard]] TMAP_HOST_DEVICE tagged_word load(std::uint32_t i) const {
    if (from_.is_eager) return source_.look(eager_word(i));
    return {link_.load(source_.rank(), record_word(at_, from_.offset, i, word_)), 0};
  }
  TMAP_HOST_DEVICE void use(std::uint32_t i, tagged_word found) {
    is_late_ = is_late_ || (from_.is_eager && !source_.wait(eager_word(i), found));
    if (is_late_) return;
    const std::uint32_t me = link_.rank(), number = from_.first + i;
    std::uint32_t value = word_ == record::source ? source_.rank() : found.word;
    link_.store(me, record_word(at_, at_.arriving, number, word_), value);
    if (is_expert_ && value >= at_.experts) value = none;
    if (is_choice_) link_.store(me, word_at(choice_, std::uint64_t{number} * at_.k), value);
  }
  /// Returns whether some word did not come.
  [[nodiscard]] TMAP_HOST_DEVICE bool is_late() const { return is_late_; }

 private:
  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t eager_word(std::uint32_t i) const {
    return i * record_words(at_.k, at_.scales) + word_;
  }

  Link& link_;
  const expert_arrays& at_;
  const eager_source<Link>& source_;
  coming_records from_;
  std::uint32_t word_;
  bool is_expert_;
  bool is_choice_;
  bool is_late_{false};
  std::uint64_t choice_;  ///< the word of the first choice here
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
