#include "evidence/unanswered.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/units.h"
#include "kernel/syscalls.h"
#include "weights/weights.h"

namespace rose::evidence {
namespace {

// Clocks of hosts differ, and a connect in progress is recorded when it returns, so an accept may seem to precede its
// connect.
constexpr std::int64_t kSeemsEarlier = 50 * kMillisecond;

bool is_accept(const Event& event) {
  return event.type == EventType::sys && kernel::syscall_name(event.syscall).starts_with("accept");
}

}  // namespace

std::vector<Contact> unanswered(std::vector<Contact> begun, const std::vector<Contact>& contacts,
                                const Services& services) {
  if (begun.empty()) return {};
  const auto by_time = [](const Contact& a, const Contact& b) { return a.event->ts_ns < b.event->ts_ns; };
  std::stable_sort(begun.begin(), begun.end(), by_time);
  std::map<std::pair<int, int>, std::vector<std::size_t>> attempts;  // by nodes: indexes into `begun`
  for (std::size_t i = 0; i < begun.size(); ++i) attempts[{begun[i].from, begun[i].to}].push_back(i);
  std::vector<Contact> accepts;
  for (const Contact& contact : contacts)
    if (is_accept(*contact.event)) accepts.push_back(contact);
  std::stable_sort(accepts.begin(), accepts.end(), by_time);
  std::vector<bool> answered(begun.size(), false);
  std::map<int, std::int64_t> first_accept;                 // by node
  std::map<std::pair<int, int>, std::int64_t> last_accept;  // by the two nodes, the smaller first
  for (const Contact& accept : accepts) {
    first_accept.try_emplace(accept.from, accept.event->ts_ns);
    last_accept[std::minmax(accept.from, accept.to)] = accept.event->ts_ns;
    const auto known = attempts.find({accept.to, accept.from});
    if (known == attempts.end()) continue;
    const auto before = [&](std::size_t i) { return begun[i].event->ts_ns <= accept.event->ts_ns + kSeemsEarlier; };
    const auto latest = std::find_if(known->second.rbegin(), known->second.rend(),
                                     [&](std::size_t i) { return !answered[i] && before(i); });
    if (latest != known->second.rend()) answered[*latest] = true;
  }
  std::vector<Contact> lost;
  std::map<std::tuple<int, int, int>, bool> accepted_before;  // by nodes and port of the service
  for (std::size_t i = 0; i < begun.size(); ++i) {
    const Contact& attempt = begun[i];
    const std::int64_t ts = attempt.event->ts_ns;
    bool& accepted = accepted_before[{attempt.from, attempt.to, attempt.port}];
    accepted = accepted || answered[i];
    const auto service = services.listening.find({attempt.to, attempt.port});
    const auto accepts_since = first_accept.find(attempt.to);
    const bool listens = service != services.listening.end() && service->second < ts &&
                         accepts_since != first_accept.end() && accepts_since->second < ts;
    const auto healed = last_accept.find(std::minmax(attempt.from, attempt.to));
    if (answered[i] || !(accepted || listens) || healed == last_accept.end() || healed->second <= ts) continue;
    if (const auto last = services.last_seen.find(attempt.to); last == services.last_seen.end() || last->second <= ts)
      continue;
    begun[i].unseen = true;
    begun[i].plain = kLikelyPartition;
    lost.push_back(begun[i]);
  }
  return lost;
}

}  // namespace rose::evidence
