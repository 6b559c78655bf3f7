// Detects silences of TCP connections, and whether data was unanswered during them, from periodic samples of the state
// that the kernel keeps for each connection. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "bpf/tracer.h"

namespace rose::observe {

class TcpSilences {
 public:
  struct Options {
    std::int64_t delay_ns = 5'000'000'000;  // shortest silence that is reported
    std::int64_t tick_ns = 4'000'000;       // duration of a jiffy, the unit of ages in samples
    std::uint16_t ephemeral_low = 32768, ephemeral_high = 60999;
    std::size_t most_pairs = 65536;
  };
  explicit TcpSilences(const Options& options) : options_(options) {}
  TcpSilences() : TcpSilences(Options{}) {}

  // From begin_ns to end_ns, no packet from the pair's source arrived at the pair's destination on any of their
  // connections to the same service.
  struct Silence {
    rose_pair pair{};
    std::int64_t begin_ns = 0, end_ns = 0;
    // Data that was sent remained unanswered; false: the connections were idle.
    bool outstanding = false;
    // The cause of the silence began at most `begin_within_ns` after begin_ns, because the first data that remained
    // unanswered was sent then. It ended at most `end_within_ns` before end_ns. -1: unknown.
    std::int64_t begin_within_ns = -1, end_within_ns = -1;
    std::int64_t usual_ns = 0;  // longest silence in the normal use of the pair
    std::uint64_t packets = 0;  // number of packets that arrived before
  };

  // Processes a sample, which was taken at `now_ns`. `connections`: every TCP connection to which a file refers.
  // `closing`: the connections that this side has closed and whose end the peer has not answered. Returns the silences
  // that have ended.
  [[nodiscard]] std::vector<Silence> sample(std::span<const rose_tcp> connections,
                                            std::span<const rose_closing> closing, std::int64_t now_ns);
  // Silences that had not ended at the last sample; end_ns is the time of that sample.
  [[nodiscard]] std::vector<Silence> ongoing() const;
  [[nodiscard]] std::size_t pairs() const { return pairs_.size(); }
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }  // connections beyond most_pairs

 private:
  // Source, destination, node, port, and whether the service is at the source.
  using Key =
      std::tuple<std::array<std::uint8_t, 16>, std::array<std::uint8_t, 16>, std::uint32_t, std::uint16_t, bool>;
  struct Pair {
    std::int64_t first_ns = 0;
    std::int64_t last_ns = 0;  // time of the last arrival; 0: nothing arrived yet
    std::int64_t seen_ns = 0;  // time of the previous sample
    std::int64_t usual_ns = 0;
    std::int64_t unanswered_since_ns = 0;  // since when data has been unanswered in this silence; 0: none is unanswered
    std::uint64_t packets = 0;
    std::uint32_t open = 0;              // number of connections, including those that are ending
    std::int64_t fresh_ns = 0;           // last arrival according to this sample; 0: none
    std::int64_t unanswered_now_ns = 0;  // like unanswered_since_ns, but according to this sample alone
    std::int64_t closed_ns = 0;          // since when no connection has been open; 0: one is open
    // Attempts to connect. asking_since_ns: since when none has been answered (0: there was no attempt, or one was
    // answered). asked_ns: time of the last sample that contained an attempt.
    std::int64_t asking_since_ns = 0, asked_ns = 0;
    std::uint32_t attempts = 0;  // number of attempts
    std::uint32_t quiet = 0;     // number of samples since the last sample that contained an attempt
    bool asked_now = false;      // this sample contains an attempt
  };
  struct Connection {
    Key key;
    rose_connection ends{};
    std::uint32_t segments = 0;
    std::int64_t received_ns = 0;
    std::int64_t waiting_ns = 0;  // since when bytes have been unanswered; 0: none are
    std::int64_t probing_ns = 0;
    bool overdue = false;      // at the last sample, data had been unanswered for too long
    bool closing = false;      // this side has closed it, and the peer has not answered its end
    bool missing = false;      // it was missing in the last sample
    std::uint64_t sample = 0;  // the last sample that contained it
  };

  [[nodiscard]] Key key_of(const rose_tcp& tcp) const;
  [[nodiscard]] bool is_ephemeral(std::uint16_t port) const {
    return port >= options_.ephemeral_low && port <= options_.ephemeral_high;
  }
  [[nodiscard]] static rose_pair pair_of(const Key& key);
  void take(const rose_tcp& tcp);
  void take_closed(std::span<const rose_closing> closing, std::int64_t now_ns);
  [[nodiscard]] bool is_reported(const Pair& pair, std::int64_t end_ns, Silence& out) const;
  [[nodiscard]] bool is_asked_in_vain(const Pair& pair, std::int64_t end_ns, Silence& out) const;
  [[nodiscard]] bool end_asking(Pair& pair, std::int64_t now_ns, Silence& out) const;

  Options options_;
  std::uint64_t sample_ = 0;
  std::int64_t now_ns_ = 0, before_ns_ = 0;  // times of this sample and the previous one
  std::uint64_t left_out_ = 0;
  std::map<Key, Pair> pairs_;
  std::unordered_map<std::uint64_t, Connection> connections_;   // by socket
  std::set<std::pair<std::uint32_t, std::uint16_t>> services_;  // nodes with the ports on which they listen
};

}  // namespace rose::observe
