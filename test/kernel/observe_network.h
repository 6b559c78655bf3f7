// Connections and network namespaces for the tests of silences.
#pragma once

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>

#include "observe_support.h"

namespace rose::observe::test {

inline constexpr auto kDelay = 300ms;

inline TracerOptions quick() {
  TracerOptions options;
  options.network_delay_ns = 300'000'000;
  return options;
}

inline Fd connect_to(int family, int type, int port) {
  Fd fd(::socket(family, type | SOCK_CLOEXEC, 0));
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(static_cast<std::uint16_t>(port));
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = v4.sin_port;
  v6.sin6_addr = in6addr_loopback;
  REQUIRE((family == AF_INET ? ::connect(fd.get(), reinterpret_cast<sockaddr*>(&v4), sizeof v4)
                             : ::connect(fd.get(), reinterpret_cast<sockaddr*>(&v6), sizeof v6)) == 0);
  return fd;
}

// Sends on its own connection, and records its longest unintended pause. On a busy machine, the scheduler causes such
// pauses, and the tracer reports them as silences.
class Sender {
 public:
  Sender(int family, int type, int port) : port_(port), fd_(connect_to(family, type, port)) {}

  void send(int times) {
    for (int i = 0; i < times; ++i) {
      const std::int64_t begin = monotonic_ns();
      REQUIRE(::send(fd_.get(), "x", 1, MSG_NOSIGNAL) == 1);
      note_pause();
      last_ns_ = begin;
      ++packets_;
      std::this_thread::sleep_for(10ms);
    }
  }
  // Call this before an intended pause. The time until the next packet then does not count as an unintended pause.
  void fall_silent() { last_ns_ = 0; }
  // Records the time since the last packet as an unintended pause. Call this at the end of the connection, because the
  // scheduler may have delayed that end.
  void note_pause() {
    if (last_ns_ != 0) longest_ns_ = std::max(longest_ns_, monotonic_ns() - last_ns_);
  }
  // Sends for as long as a pair must be active before its silence is reported, without any pause that could count as a
  // silence. It sends for several times as long, because the tracer samples a few times per second, and less often if a
  // sample is expensive.
  void send_steadily() {
    const std::int64_t enough = std::chrono::nanoseconds(kDelay).count(), started = monotonic_ns();
    for (bool steady = false; !steady || monotonic_ns() - started < 5 * enough;) {
      const std::int64_t begin = monotonic_ns(), before = std::exchange(longest_ns_, 0);
      while (monotonic_ns() - begin < enough) send(1);
      steady = longest_ns_ <= enough / 4;
      longest_ns_ = std::max(longest_ns_, before);
    }
  }
  void close() {
    fd_.reset();
    note_pause();
  }

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] std::uint32_t packets() const { return packets_; }
  [[nodiscard]] int fd() const { return fd_.get(); }
  // True if a pause of this sender explains the silence. If the tracer sampled the connection late, packets that
  // arrived before the sample count as part of the silence. They arrived within its last `end_within_ms`.
  [[nodiscard]] bool explains(const trace::Event& silence) const {
    constexpr std::int64_t kRounding = 10'000'000;  // the kernel's times of packets are whole jiffies
    const std::int64_t certain_ms = silence.duration_ms - std::max(silence.end_within_ms, 0);
    return certain_ms * 1'000'000 <= longest_ns_ + kRounding;
  }

 private:
  int port_;
  Fd fd_;
  std::int64_t last_ns_ = 0, longest_ns_ = 0;
  std::uint32_t packets_ = 0;
};

// Moves this thread, and the victims that it starts, to a network namespace that has only a loopback interface.
class OwnNetwork {
 public:
  OwnNetwork() : before_(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) {
    REQUIRE(before_);
    REQUIRE(::unshare(CLONE_NEWNET) == 0);
    loopback(true);
  }
  ~OwnNetwork() { (void)::setns(before_.get(), CLONE_NEWNET); }
  OwnNetwork(const OwnNetwork&) = delete;
  OwnNetwork& operator=(const OwnNetwork&) = delete;

  void loopback(bool up) const {
    const Fd any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    REQUIRE(::ioctl(any.get(), SIOCGIFFLAGS, &request) == 0);
    request.ifr_flags = static_cast<short>(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
    REQUIRE(::ioctl(any.get(), SIOCSIFFLAGS, &request) == 0);
  }

 private:
  Fd before_;
};

inline std::vector<trace::Event> silences(const trace::Trace& trace, int port) {
  std::vector<trace::Event> found;
  for (const auto& event : trace.events) {
    if (event.type == trace::EventType::nd && (event.dport == port || event.sport == port)) found.push_back(event);
  }
  return found;
}
// The silences of the sender's connection. Those that the sender's own pauses explain are left out.
inline std::vector<trace::Event> silences(const trace::Trace& trace, const Sender& sender) {
  auto found = silences(trace, sender.port());
  std::erase_if(found, [&](const auto& event) { return sender.explains(event); });
  return found;
}

// The silences for which the kernel reports that something was unanswered, or that this is unknown.
inline std::vector<trace::Event> not_idle(std::vector<trace::Event> events) {
  std::erase_if(events, [](const auto& event) { return (event.flags & trace::kIdle) != 0; });
  return events;
}

// Waits until the tracer reports a silence of this sender, and no other silence. Returns the tracer's trace so far.
inline trace::Trace until_missed(Tracer& tracer, const Sender& sender) {
  trace::Trace trace;
  const bool missed = eventually([&] {
    trace = snapshot(tracer);
    const auto found = silences(trace, sender);
    return std::count_if(found.begin(), found.end(), is_open) == 1;
  });
  INFO(describe(trace));
  REQUIRE(missed);
  return trace;
}

// Waits until the silence of the sender, which sends again, has ended. Packets are recorded when they are received. On
// a busy machine, this may be some time after they were sent.
inline trace::Trace until_silence_ended(Tracer& tracer, const Sender& sender) {
  trace::Trace trace;
  const bool ended = eventually([&] {
    trace = snapshot(tracer);
    const auto found = silences(trace, sender);
    return !found.empty() && std::none_of(found.begin(), found.end(), is_open);
  });
  INFO(describe(trace));
  REQUIRE(ended);
  return trace;
}

}  // namespace rose::observe::test
