#include "inject/link.h"

#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/units.h"
#include "kernel/netlink.h"

namespace rose::inject {
namespace {

constexpr const char* kHoldName = "rosehold";
constexpr std::size_t kLargestFrame = 65535 + 64;
constexpr std::int64_t kLongestQueueNs = 300'000'000;
// A packet that waits for less than this because of a limited rate counts as not slowed down. Without any rate, passing
// the interface takes 0.05 ms, and 0.4 ms for one packet in a hundred; programs notice neither.
constexpr std::int64_t kUnnoticedNs = 1'000'000;
constexpr std::uint64_t kMostHeldBytes = std::uint64_t{256} << 20;
constexpr std::size_t kFlows = 4096;
constexpr int kTransmitQueue = 10'000;
constexpr std::size_t kEthernet = 14;
constexpr std::size_t kTagged = 18;

// The VLAN tag that the BPF program added to the frame; 0: none.
unsigned tag_of(std::string_view frame) {
  if (frame.size() < kTagged || static_cast<unsigned char>(frame[12]) != 0x81 || frame[13] != 0) return 0;
  return static_cast<unsigned>(static_cast<unsigned char>(frame[14])) << 8 | static_cast<unsigned char>(frame[15]);
}

std::uint64_t mix(std::uint64_t hash, std::string_view bytes) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// Identifies a packet's connection within a rule: a hash of addresses, protocol and ports of the frame.
std::uint64_t flow_of(std::string_view frame, unsigned tag) {
  std::uint64_t hash = mix(0xcbf29ce484222325, {reinterpret_cast<const char*>(&tag), sizeof tag});
  const std::string_view ip = frame.substr(kTagged);
  if (ip.empty()) return hash;
  const unsigned version = static_cast<unsigned char>(ip[0]) >> 4;
  const std::size_t header = version == 4 ? std::size_t{4} * (static_cast<unsigned char>(ip[0]) & 15) : 40;
  if (ip.size() < header + 4 || header < 20) return hash;
  hash = version == 4 ? mix(mix(hash, ip.substr(9, 1)), ip.substr(12, 8))
                      : mix(mix(hash, ip.substr(6, 1)), ip.substr(8, 32));
  return mix(hash, ip.substr(header, 4));
}

bool later(const HoldQueue::Packet& a, const HoldQueue::Packet& b) {
  return a.due_ns != b.due_ns ? a.due_ns > b.due_ns : a.number > b.number;
}

}  // namespace

// Scheduling

HoldQueue::HoldQueue(std::vector<HoldRule> rules) : rules_(std::move(rules)), states_(rules_.size()), flows_(kFlows) {}

bool HoldQueue::take(std::string frame, std::int64_t now_ns) {
  const unsigned tag = tag_of(frame);
  const std::size_t index = ROSE_TAG_RULE(tag);
  if (tag == 0 || index >= rules_.size()) return false;
  const HoldRule& rule = rules_[index];
  State& state = states_[index];
  const std::uint64_t number = ++state.counts.held;
  std::int64_t due = now_ns;
  if (rule.rate > 0) {
    // The tag that rose added to the frame does not count for its size on the link.
    std::int64_t& free = state.free_ns[ROSE_TAG_TO_SIDE(tag)];
    const auto takes = static_cast<std::int64_t>(static_cast<double>(frame.size() - kTagged + kEthernet) * 8e9 /
                                                 static_cast<double>(rule.rate));
    due = std::max(due, free);
    if (due - now_ns > kLongestQueueNs || bytes_ + frame.size() > kMostHeldBytes) {
      ++state.counts.overflown;
      return false;
    }
    free = due += takes;
  } else if (bytes_ + frame.size() > kMostHeldBytes) {
    ++state.counts.overflown;
    return false;
  }
  if (rule.reorder > 0 && rose_draw(rule.seed, number, ROSE_DRAW_REORDER) < rule.reorder) {
    ++state.counts.ahead;
  } else if (rule.delay_ns > 0) {
    due += rule.delay_ns;
    if (rule.jitter_ns > 0) {
      const double draw = static_cast<double>(rose_draw(rule.seed, number, ROSE_DRAW_JITTER)) / 4294967295.0;
      due += static_cast<std::int64_t>((2 * draw - 1) * static_cast<double>(rule.jitter_ns));
    }
    // Delays vary, but packets of a connection keep their order.
    const std::uint64_t key = flow_of(frame, tag);
    Flow& flow = flows_[key % kFlows];
    if (flow.key == key) due = std::max(due, flow.due_ns);
    flow = {key, due};
  }
  if (rule.delay_ns == 0 && due - now_ns < kUnnoticedNs) ++state.counts.at_once;
  bytes_ += frame.size();
  heap_.push_back({due, ++numbers_, std::move(frame)});
  std::push_heap(heap_.begin(), heap_.end(), later);
  return true;
}

void HoldQueue::pop() {
  std::pop_heap(heap_.begin(), heap_.end(), later);
  bytes_ -= heap_.back().bytes.size();
  heap_.pop_back();
}

HoldCounts HoldQueue::counts(std::size_t rule) const { return states_.at(rule).counts; }

// The interface

namespace {

class TapHold final : public PacketHold {
 public:
  explicit TapHold(std::vector<HoldRule> rules) : queue_(std::move(rules)) {}

  ~TapHold() override { stop(); }

  void stop() override {
    if (!thread_.joinable()) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(stop_.get(), &one, sizeof one);
    thread_.join();
  }

  Result<void> begin(int bridge) {
    tap_ = Fd(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
    if (!tap_) return fail_errno(ErrorKind::environment, "packets cannot be delayed: cannot open /dev/net/tun", errno);
    ifreq request{};
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    std::strncpy(request.ifr_name, kHoldName, sizeof request.ifr_name - 1);
    if (::ioctl(tap_.get(), TUNSETIFF, &request) != 0)
      return fail_errno(ErrorKind::environment,
                        fmt::format("packets cannot be delayed: cannot create the interface {}", kHoldName), errno);
    interface_ = static_cast<int>(::if_nametoindex(kHoldName));
    // The queue is long, because bursts wait in it until they are read.
    const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    request.ifr_qlen = kTransmitQueue;
    if (::ioctl(socket.get(), SIOCSIFTXQLEN, &request) != 0)
      log::debug("{} keeps its short queue: {}", kHoldName, std::strerror(errno));
    kernel::Netlink netlink;
    int err = bridge > 0 ? netlink.quiet_port(interface_, bridge) : 0;
    if (err == 0) err = netlink.up(interface_);
    if (err != 0)
      return fail_errno(ErrorKind::environment, fmt::format("cannot set up the interface {}", kHoldName), err);
    stop_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!stop_) return fail_errno(ErrorKind::environment, "cannot create an event descriptor", errno);
    thread_ = std::thread([this] { run(); });
    return {};
  }

  int interface() const override { return interface_; }
  HoldCounts counts(std::size_t rule) const override {
    const std::lock_guard lock(mutex_);
    return queue_.counts(rule);
  }

 private:
  void run() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
    ::prctl(PR_SET_TIMERSLACK, 1UL);
    const RunsAhead ahead;
    if (ahead.error() != 0)
      log::debug("delayed packets may be late on a busy machine: no real-time priority ({})",
                 std::strerror(ahead.error()));
    std::string frame(kLargestFrame, '\0');
    for (;;) {
      pollfd watched[2] = {{tap_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
      timespec limit{};
      const bool timed = next_due(limit);
      (void)::ppoll(watched, 2, timed ? &limit : nullptr, nullptr);
      if (watched[1].revents != 0) break;
      take_in(frame);
      send_due(monotonic_ns());
    }
    send_due(INT64_MAX);
  }

  bool next_due(timespec& limit) const {
    const HoldQueue::Packet* first = queue_.first();
    if (first == nullptr) return false;
    const std::int64_t left = std::max<std::int64_t>(first->due_ns - monotonic_ns(), 0);
    limit = {left / kSecond, left % kSecond};
    return true;
  }

  void take_in(std::string& frame) {
    // The number of reads is bounded, so that packets that are due do not wait until a flood ends.
    for (int i = 0; i < 256; ++i) {
      const auto size = ::read(tap_.get(), frame.data(), frame.size());
      if (size <= 0) return;
      const std::lock_guard lock(mutex_);
      (void)queue_.take(frame.substr(0, static_cast<std::size_t>(size)), monotonic_ns());
      if (const auto* first = queue_.first(); first != nullptr && first->due_ns <= monotonic_ns()) return;
    }
  }

  void send_due(std::int64_t now_ns) {
    for (const HoldQueue::Packet* first = queue_.first(); first != nullptr && first->due_ns <= now_ns;
         first = queue_.first()) {
      if (::write(tap_.get(), first->bytes.data(), first->bytes.size()) < 0 && errno == EAGAIN) ::sched_yield();
      const std::lock_guard lock(mutex_);
      queue_.pop();
    }
  }

  mutable std::mutex mutex_;  // protects the queue, which its thread changes while other threads read counts
  HoldQueue queue_;
  Fd tap_;
  Fd stop_;
  int interface_ = 0;
  std::thread thread_;
};

void set_feature(int socket, const std::string& interface, std::uint32_t command) {
  ethtool_value off{};
  off.cmd = command;
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), sizeof request.ifr_name - 1);
  request.ifr_data = reinterpret_cast<char*>(&off);
  if (::ioctl(socket, SIOCETHTOOL, &request) != 0 && errno != EOPNOTSUPP)
    log::debug("{} keeps a feature of its link ({}): {}", interface, command, std::strerror(errno));
}

}  // namespace

Result<std::unique_ptr<PacketHold>> PacketHold::create(std::vector<HoldRule> rules, int bridge) {
  auto hold = std::make_unique<TapHold>(std::move(rules));
  ROSE_CHECK(hold->begin(bridge));
  return hold;
}

void make_plain(const std::string& interface) {
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  for (const std::uint32_t command : {ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_STXCSUM})
    set_feature(socket.get(), interface, command);
}

}  // namespace rose::inject
