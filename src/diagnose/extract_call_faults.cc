// A failed call as a candidate: what it can be matched by, and the shapes in which it may be tried.
#include "diagnose/extractor.h"
#include "diagnose/failed_calls.h"
#include "diagnose/surprise.h"
#include "diagnose/thresholds.h"
#include "kernel/syscalls.h"

namespace rose::diagnose {
namespace {

constexpr std::int64_t kMostTimes = 1000;
constexpr std::uint64_t kFew = 3;  // failures that need not mean that it failed for good

// What a call can be matched by; other tools may note more than that.
bool matches_path(const kernel::SyscallInfo* info) { return info != nullptr && (info->path >= 0 || info->path2 >= 0 || info->fd >= 0); }
bool matches_peer(const kernel::SyscallInfo* info) { return info != nullptr && (info->sockaddr >= 0 || info->fd >= 0); }

}  // namespace

std::string Extractor::peer_glob(const ScfGroup& group) const {
  const Peer& peer = group.peer;
  if (group.key.peer == 0 || peer.address.starts_with("unix:")) return "";
  std::string host = peer.node >= 0 && !nodes_.test_address(peer.node).empty() ? nodes_.test_address(peer.node) : "*";
  if (host.find(':') != std::string::npos) host = fmt::format("[{}]", host);
  if (peer.port == 0) return host == "*" ? std::string{} : host + ":*";
  return fmt::format("{}:{}", host, peer.port);
}

bool Extractor::hot(int node, const std::string& syscall) const {
  if (inputs_.profile && inputs_.profile->seconds > 0) {
    const auto counts = inputs_.profile->syscalls.find(name(node));
    if (counts != inputs_.profile->syscalls.end()) {
      const auto count = counts->second.find(syscall);
      return count != counts->second.end() && static_cast<double>(count->second) >= inputs_.profile->seconds;
    }
  }
  return hot_call(syscall);
}

void Extractor::add_call(const Failure& failure, const std::string& pattern, bool with_shapes) {
  const ScfGroup& group = *failure.group;
  const Fault fault = call_fault(failure);
  std::vector<Fault> shapes = call_shapes(failure, fault, with_shapes);
  Fault first = std::move(shapes.front());
  shapes.erase(shapes.begin());

  Candidate& c = add(FaultKind::syscall, group.key.node, std::move(first), group.count, group.first_ts);
  c.alternatives = std::move(shapes);
  c.last_ts = group.last_ts;
  c.syscall = failure.syscall;
  c.error = kernel::errno_name(group.key.err);
  c.path = fault.call.path.value_or(pattern);
  if (matches_peer(kernel::find_syscall(group.key.syscall))) c.peer = peer_glob(group);
  c.profiled = failure.far_more;
  c.ordinariness = failure.ordinariness;
  call_words(failure, c);
  if (group.key.explained && group.cause != nullptr) c.symptom = true;
  if (!failure.follows.empty()) {
    c.symptom = true;
    followers_.insert(plan_.candidates.size() - 1);
  }
}

Fault Extractor::call_fault(const Failure& failure) {
  const ScfGroup& group = *failure.group;
  const std::string& node = name(group.key.node);
  Fault fault;
  fault.kind = FaultKind::syscall;
  fault.node = node;
  fault.id = unique_id(fmt::format("fail-{}-{}", failure.syscall, node));
  fault.call.syscall = failure.syscall;
  fault.error = group.key.err;
  const kernel::SyscallInfo* info = kernel::find_syscall(group.key.syscall);
  if (!group.nameless && matches_path(info))
    if (std::string glob = path_glob(group.trace->str(group.first->path), node); !glob.empty()) fault.call.path = std::move(glob);
  if (matches_peer(info) && kernel::names_own_address(failure.syscall)) {
    // Nobody has come yet: what the dump notes is the address that the node itself listens at.
    if (group.key.peer != 0 && group.peer.port != 0) fault.call.local = fmt::format(":{}", group.peer.port);
  } else if (matches_peer(info)) {
    if (std::string peer = peer_glob(group); !peer.empty()) fault.call.peer = std::move(peer);
  }
  // As it was seen: once, so many times, or for good. A full disk fails every call until the end.
  // (A dump that is over soon after says less; of a few failures it is tried that they were all.)
  if (group.count > 1)
    fault.times = for_good(failure) && group.count > kFew ? -1 : static_cast<std::int64_t>(std::min<std::uint64_t>(group.count, kMostTimes));
  return fault;
}

bool Extractor::for_good(const Failure& failure) const {
  const ScfGroup& group = *failure.group;
  const std::int64_t length = plan_.end_ts - plan_.begin_ts;
  const std::int64_t near_end = std::max(std::min(2 * kSecond, length / 4), length / 10);
  return group.count > 1 && !failure.recovered && plan_.end_ts - group.last_ts <= near_end;
}

std::vector<Fault> Extractor::call_shapes(const Failure& failure, const Fault& fault, bool with_shapes) const {
  const ScfGroup& group = *failure.group;
  std::vector<Fault> shapes;
  std::int64_t since = plan_.workload_ts != 0 ? group.first_ts - plan_.workload_ts : kSecond / 2;
  if (since > longest_ns_) since = longest_ns_ / 2;  // production runs for days, the test's workload does not
  const auto shape = [&](std::int64_t times, bool timed) {
    if (timed && since < kSecond / 2) return;
    Fault f = fault;
    f.times = times;
    // Somewhat early: armed too late, it would miss the call in half of the runs.
    if (timed) f.when = {elapsed(since - since / 5)};
    shapes.push_back(std::move(f));
  };
  // The first call of a kind made all the time comes with the start and tells nothing; the first call
  // of a rare kind, or on a file made meanwhile, is likely the one that failed, whenever it comes.
  const bool often = !failure.newborn && hot(group.key.node, failure.syscall);
  // Seen from the node's start on, the dump says which one it was.
  if (failure.nth > 1 && failure.nth <= static_cast<std::uint64_t>(std::max(1, config_.diagnose.syscall_attempts))) {
    shape(fault.times, false);
    shapes.back().count = static_cast<int>(failure.nth);
  }
  shape(fault.times, often);
  if (with_shapes || shapes.empty()) shape(fault.times, !often);
  if (!with_shapes) return shapes;
  // A message tells of one failed call; of what lasts in practice, others may have failed with nobody to tell of them.
  if (fault.times == 1 && said(*group.first) != nullptr && lasting_error(group.key.err)) shape(-1, true);
  if (fault.times != 1) {
    shape(1, often);
    shape(1, !often);
  }
  if (for_good(failure) && fault.times > 0) shape(-1, often);
  if (!fault.call.path) return shapes;
  if (std::string wide = path_glob(group.trace->str(group.first->path), name(group.key.node), true); wide != *fault.call.path) {
    Fault f = shapes.front();
    f.call.path = std::move(wide);
    shapes.push_back(std::move(f));
  }
  return shapes;
}

void Extractor::call_words(const Failure& failure, Candidate& c) {
  const ScfGroup& group = *failure.group;
  const std::string times = group.count == 1 ? "once" : fmt::format("{} times", group.count);
  c.why = fmt::format("failed {}, first {}; ", times, at(group.first_ts));
  if (said(*group.first) != nullptr)
    from_log(c, *group.first);
  else if (failure.far_more)
    c.why += fmt::format("the profile has it too, but only {:.1f} times a run", failure.normal);
  else if (inputs_.profile)
    c.why += "the profile never shows it";
  else
    c.why += "no profile says whether it is normal";
  if (c.ordinariness == 0) c.why += "; an error of a disk or resource";
  if (!strict_resource_error(group.key.err) && all_the_time(group.times)) {
    usual_.emplace(c.fault.id, kOddsUsual);
    c.why += "; it fails like that all the time";
  }
  if (c.ordinariness == 3) c.why += "; of a kind that healthy programs see all the time";
  if (group.key.explained && group.cause != nullptr) c.why += fmt::format("; {} explains it", group.cause->words);
  if (!failure.follows.empty()) c.why += fmt::format("; it always follows {}", failure.follows);
}

}  // namespace rose::diagnose
