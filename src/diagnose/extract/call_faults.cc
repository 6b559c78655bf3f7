#include "diagnose/extract/call_faults.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>
#include <vector>

#include "base/units.h"
#include "diagnose/thresholds.h"
#include "diagnose/words.h"
#include "evidence/forms.h"
#include "evidence/surprise.h"
#include "evidence/usual.h"
#include "kernel/syscalls.h"

namespace rose::diagnose {
namespace {

constexpr std::int64_t kMostTimes = 1000;  // one fault makes at most this many calls fail, or all of them

// True if a schedule can match the call by its path, or by its peer. Imported dumps may also have paths and peers for
// calls that a schedule cannot match in this way.
bool matches_path(const kernel::SyscallInfo* info) {
  return info != nullptr && (info->path >= 0 || info->path2 >= 0 || info->fd >= 0);
}
bool matches_peer(const kernel::SyscallInfo* info) { return info != nullptr && (info->sockaddr >= 0 || info->fd >= 0); }

// A glob for the peer's address in the test deployment; "" if it is unknown.
std::string peer_glob(const Peer& peer, const NodeMap& nodes) {
  if (peer.id == 0 || peer.address.starts_with("unix:")) return "";
  std::string host = peer.node >= 0 && !nodes.test_address(peer.node).empty() ? nodes.test_address(peer.node) : "*";
  if (host.find(':') != std::string::npos) host = fmt::format("[{}]", host);
  if (peer.port == 0) return host == "*" ? std::string{} : host + ":*";
  return fmt::format("{}:{}", host, peer.port);
}

// True if the node makes this call so often that its first occurrence means nothing.
bool hot(const Given& given, int node, const std::string& syscall) {
  const std::optional<profile::Profile>& profile = given.inputs.profile;
  if (profile && profile->seconds > 0) {
    const auto counts = profile->syscalls.find(given.name(node));
    if (counts != profile->syscalls.end()) {
      const auto count = counts->second.find(syscall);
      return count != counts->second.end() && static_cast<double>(count->second) >= profile->seconds;
    }
  }
  return hot_call(syscall);
}

// True if the call continued to fail until the end of the dump.
bool failed_until_end(const FailedCall& group, const Times& times) {
  const std::int64_t length = times.end - times.begin;
  std::int64_t near_end = std::max(std::min(2 * kSecond, length / 4), length / 10);
  // Programs retry at growing intervals, so the last failure because of a full disk may precede the end by as much as
  // twice the time from the first failure to the last one.
  if (lasting_error(group.err)) near_end = std::max(near_end, 2 * (group.last_ts - group.first_ts));
  return group.count > 1 && !group.recovered && times.end - group.last_ts <= near_end;
}

Fault call_fault(const Given& given, const Times& times, const Failure& failure, Ids& ids) {
  const FailedCall& group = *failure.group;
  const std::string& node = given.name(group.node);
  Fault fault;
  fault.kind = FaultKind::syscall;
  fault.node = node;
  fault.id = ids.next(fmt::format("fail-{}-{}", failure.syscall, node));
  fault.call.syscall = failure.syscall;
  fault.error = group.err;
  if (group.err == 0) {
    // A short transfer: the call transfers as many bytes as observed. Effect::bytes needs at least one byte.
    fault.result = group.done;
    fault.effect = group.done > 0 ? schedule::Effect::bytes : schedule::Effect::none;
    fault.effect_bytes = group.done;
  }
  const kernel::SyscallInfo* info = kernel::find_syscall(group.syscall);
  if (!group.without_name && matches_path(info))
    if (std::string glob = path_glob(group.source->str(group.first->path), node); !glob.empty())
      fault.call.path = std::move(glob);
  if (matches_peer(info) && kernel::names_own_address(failure.syscall)) {
    // For bind, listen and accept the address is that of the node itself. The port of a bind is never ephemeral,
    // however high it is, because the program has chosen it.
    const int port =
        failure.syscall == "bind" ? parse_endpoint(group.source->str(group.first->peer)).port : group.peer.port;
    if (group.peer.id != 0 && port != 0) fault.call.local = fmt::format(":{}", port);
  } else if (matches_peer(info)) {
    if (std::string peer = peer_glob(group.peer, given.nodes); !peer.empty()) fault.call.peer = std::move(peer);
  }
  // Fail as many calls as observed. If more than kFewFailures failed and none succeeded until the end of the dump, all
  // later calls fail, as with a full disk, because the dump may have ended before it could show more.
  if (group.count > 1)
    fault.times = failed_until_end(group, times) && group.count > kFewFailures
                      ? -1
                      : static_cast<std::int64_t>(std::min<std::uint64_t>(group.count, kMostTimes));
  return fault;
}

// The forms in which the call is tried, most likely first.
std::vector<Fault> call_shapes(const Given& given, const Times& times, const Failure& failure, const Fault& fault,
                               bool with_shapes) {
  const FailedCall& group = *failure.group;
  std::vector<Fault> shapes;
  std::int64_t since = times.workload != 0 ? group.first_ts - times.workload : kSecond / 2;
  if (since > given.longest_ns)
    // production runs for days, so the failure may come at a time that the test's workload does not reach
    since = given.longest_ns / 2;
  bool torn = false;
  const auto shape = [&](std::int64_t in_a_row, bool timed) {
    if (timed && since < kSecond / 2) return;
    Fault f = fault;
    f.times = in_a_row;
    // After a short write, the program tried to write the rest of the data and failed. This form of the fault makes
    // both calls end as they did.
    if (torn) {
      f.effect = schedule::Effect::bytes;
      f.result = f.effect_bytes = failure.torn;
    }
    // Arm the fault a fifth earlier than observed: one that is armed at the observed time would miss the call in about
    // half of the runs.
    if (timed) f.when = {elapsed(since - since / 5)};
    shapes.push_back(std::move(f));
  };
  // The first call of a frequent kind is made at the start and means nothing, so arm the fault at the observed time.
  // The first call of a rare kind, or on a file that was created after the workload began, is probably the one that
  // failed, no matter when it is made.
  const bool often = !group.on_new_file && hot(given, group.node, failure.syscall);
  if (failure.torn > 0) {
    torn = true;
    shape(fault.times, often);
    torn = false;
  }
  // If the ordinal of the failed call is known, make that call fail.
  if (group.nth > 1 && group.nth <= static_cast<std::uint64_t>(std::max(1, given.config().diagnose.syscall_attempts))) {
    shape(fault.times, false);
    shapes.back().count = static_cast<int>(group.nth);
  }
  shape(fault.times, often);
  if (with_shapes || shapes.empty()) shape(fault.times, !often);
  if (!with_shapes) return shapes;
  // A message reports one failed call. If the error usually lasts, other calls may have failed without a message.
  if (fault.times == 1 && !group.first->seen() && lasting_error(group.err)) shape(-1, true);
  if (fault.times != 1) {
    shape(1, often);
    shape(1, !often);
  }
  // The error may have lasted after the end of the dump. This is not assumed for calls from logs, because logs do not
  // show later successes.
  const bool lasts = group.first->seen() && !group.recovered && (lasting_error(group.err) || group.err == EACCES);
  if ((failed_until_end(group, times) || lasts) && fault.times > 0) shape(-1, often);
  if (!fault.call.path) return shapes;
  if (std::string wide = path_glob(group.source->str(group.first->path), given.name(group.node), true);
      wide != *fault.call.path) {
    Fault f = shapes.front();
    f.call.path = std::move(wide);
    shapes.push_back(std::move(f));
  }
  return shapes;
}

// Sets Candidate::why.
void set_why(Candidate& c, const Given& given, const Times& times, const Failure& failure) {
  const FailedCall& group = *failure.group;
  if (group.err == 0) c.why = fmt::format("{} ({}), ", failure.syscall, how_failed(group));
  c.why += fmt::format("failed {}, first {}; ", group.count == 1 ? "once" : fmt::format("{} times", group.count),
                       times.at(group.first_ts));
  if (!group.first->seen()) set_origin(c, group.first->how());
  else if (failure.far_more)
    c.why += fmt::format("the profile contains it too, but only {:.1f} times a run", failure.normal);
  else if (given.inputs.profile) c.why += "the profile does not contain it";
  else c.why += "without a profile it is unknown whether it is normal";
  if (c.ordinariness == 0) c.why += "; an error of a disk or resource";
  if (failure.torn > 0) c.why += fmt::format("; right after {} bytes of the data had been written", failure.torn);
  if (c.usual < 1) c.why += "; it fails like this all the time";
  if (c.ordinariness == 3) c.why += "; healthy programs see such errors all the time";
  if (group.cause != nullptr) c.why += fmt::format("; {} explains it", group.cause->words);
  if (c.follows) c.why += fmt::format("; it always follows {}", failure.follows);
}

// The evidence for a full disk on one node.
struct Shortage {
  const Failure* first = nullptr;
  std::int64_t last_ts = 0;
  std::uint64_t count = 0;
  bool symptom = true;  // all its failures are symptoms
};

}  // namespace

std::string how_failed(const FailedCall& group) {
  if (group.err != 0) return fmt::format("failing with {}", kernel::errno_name(group.err));
  if (group.requested == 0) return "ending in SIGBUS";
  return fmt::format("doing only {} of {} bytes", group.done, group.requested);
}

std::vector<Candidate> full_disks(const Given& given, const Times& times, const std::vector<Failure>& failures) {
  std::map<int, Shortage> nodes;
  for (const Failure& failure : failures) {
    const FailedCall& group = *failure.group;
    // Use only writes, because a short read has other reasons than a full disk.
    const bool write = failure.syscall.find("write") != std::string::npos && file_path(group.pattern);
    if (group.err != 0 || (!write && !failure.of_mapping())) continue;
    Shortage& of = nodes[group.node];
    if (of.first == nullptr || group.first_ts < of.first->group->first_ts) of.first = &failure;
    of.last_ts = std::max(of.last_ts, group.last_ts);
    if (failure.of_mapping()) of.count += group.count;
    of.symptom = of.symptom && failure.symptom();
  }
  std::vector<Candidate> disks;
  Ids ids;
  for (const auto& [node, of] : nodes) {
    const FailedCall& group = *of.first->group;
    Fault fault;
    fault.kind = FaultKind::disk_full;
    fault.node = given.name(node);
    fault.id = ids.next(fmt::format("{}-{}", schedule::kind_name(fault.kind), fault.node));
    // Failed calls are candidates of their own, which already count these events.
    Candidate c = candidate_of(std::move(fault), of.count, group.first_ts);
    c.last_ts = of.last_ts;
    c.known = Known::inferred;
    c.symptom = of.symptom;
    c.why = fmt::format("{} of {} {}, first {}: its disk may be full", of.first->syscall, group.pattern,
                        how_failed(group), times.at(group.first_ts));
    disks.push_back(std::move(c));
  }
  return disks;
}

Candidate call_candidate(const Given& given, const Times& times, const Failure& failure, bool with_shapes, Ids& ids) {
  const FailedCall& group = *failure.group;
  const Fault fault = call_fault(given, times, failure, ids);
  std::vector<Fault> shapes = call_shapes(given, times, failure, fault, with_shapes);
  Fault first = std::move(shapes.front());
  shapes.erase(shapes.begin());

  Candidate c = candidate_of(std::move(first), group.count, group.first_ts);
  c.alternatives = std::move(shapes);
  c.last_ts = group.last_ts;
  c.again = incidents_of(group.times, given.longest_ns);
  c.again.erase(c.again.begin());
  c.syscall = failure.syscall;
  if (group.err != 0) c.error = kernel::errno_name(group.err);
  c.path = fault.call.path.value_or(group.pattern);
  if (matches_peer(kernel::find_syscall(group.syscall))) c.peer = peer_glob(group.peer, given.nodes);
  c.profiled = failure.far_more;
  c.ordinariness = failure.ordinariness;
  // A connection is mostly reset because the process at the other end has ended, but a device between the two may reset
  // it, too. If only messages suggest that the process has ended (perhaps the same messages that report the call), the
  // end may explain the call, but the call remains a candidate.
  const bool reset = group.err == ECONNRESET || group.err == ECONNABORTED || group.err == EPIPE;
  c.perhaps_symptom =
      reset && failure.follows.empty() && group.cause != nullptr && group.cause->plainness < 1 && !group.first->seen();
  c.symptom = failure.symptom() && !c.perhaps_symptom;
  c.follows = !failure.follows.empty();
  c.foreign = group.foreign;
  if (!kernel::resource_error(group.err) && all_the_time(group.times, given.longest_ns)) c.usual = kOddsUsual;
  set_why(c, given, times, failure);
  return c;
}

}  // namespace rose::diagnose
