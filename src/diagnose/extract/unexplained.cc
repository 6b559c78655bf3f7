#include "diagnose/extract/unexplained.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/units.h"
#include "diagnose/words.h"
#include "evidence/forms.h"
#include "evidence/surprise.h"
#include "kernel/syscalls.h"
#include "weights/weights.h"

namespace rose::diagnose {
namespace {

constexpr std::size_t kMostEnds = 2;   // guesses are made for at most this many ends, the last ones
constexpr std::size_t kMostFiles = 2;  // files that the node used before each end
constexpr std::int64_t kFewDescriptorsLeft = 16;
constexpr std::int64_t kLittle = 1 << 20;  // a memory limit in bytes that every node exceeds
constexpr std::int64_t kShort = 1;         // bytes that a partial write writes; almost any write has more

// What a node used within kUsedLast before it ended, the most recent first.
struct LastUsed {
  std::vector<std::string> files;  // as globs: files that it changed
  std::string peer;                // as a glob; "" if it connected to nothing
};

LastUsed last_used(const Given& given, int node, std::int64_t until) {
  LastUsed used;
  std::int64_t peer_ts = 0;
  std::vector<std::pair<std::int64_t, std::string>> files;
  for (std::size_t s = 0; s < given.inputs.sources.size(); ++s) {
    const evidence::Source& source = given.inputs.sources[s];
    for (auto event = source.observations.rbegin(); event != source.observations.rend(); ++event) {
      if (event->type != EventType::sys || event->ts_ns > until || given.nodes.of(s, *event) != node) continue;
      const kernel::SyscallInfo* info = kernel::find_syscall(event->syscall);
      if (info == nullptr || event->ts_ns < until - kUsedLast) continue;
      if (info->name == "connect" && event->peer != 0 && event->ts_ns > peer_ts) {
        if (const int port = parse_endpoint(source.str(event->peer)).port; port > 0) {
          used.peer = fmt::format("*:{}", port);
          peer_ts = event->ts_ns;
        }
      }
      const trace::StringId path = event->path2 != 0 ? event->path2 : event->path;
      if (path == 0 || info->name == "execve" || !file_path(source.str(path)) || system_path(source.str(path)))
        continue;
      if (std::string glob = path_glob(source.str(path), given.name(node)); !glob.empty())
        files.emplace_back(event->ts_ns, std::move(glob));
    }
  }
  std::stable_sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& [ts, glob] : files) {
    if (used.files.size() >= kMostFiles) break;
    if (std::find(used.files.begin(), used.files.end(), glob) == used.files.end()) used.files.push_back(glob);
  }
  return used;
}

// Makes the guesses for one end.
class Guesses {
 public:
  Guesses(const Given& given, const Facts& facts, const Candidate& end) : given_(given), end_(end) {
    const std::int64_t since = facts.times.workload != 0 ? end.first_ts - facts.times.workload : 0;
    // Arm the guessed faults after four fifths of the time from the start of the workload to the end of the node.
    if (since >= kSecond && since <= given.longest_ns) when_ = {elapsed(since - since / 5)};
  }

  void limit(FaultKind kind, std::string_view what, double plainness, Ids& ids, std::vector<Candidate>& into) const {
    Fault fault = of_node(kind, schedule::kind_name(kind), ids);
    if (kind == FaultKind::descriptors) fault.resource.limit = kFewDescriptorsLeft;
    if (kind == FaultKind::memory) fault.resource.limit = kLittle;
    fault.when = when_;
    into.push_back(guess(std::move(fault), what, plainness));
  }

  void call(CallMatch call, int err, std::string_view what, double plainness, Ids& ids, std::vector<Candidate>& into,
            bool part = false) const {
    Fault fault = of_node(FaultKind::syscall, "use", ids);
    fault.call = std::move(call);
    if (part) {
      fault.result = kShort;
      fault.effect = schedule::Effect::bytes;
      fault.effect_bytes = kShort;
    } else {
      fault.error = err;
      if (lasting_error(err)) fault.times = -1;
    }
    Fault any_time = fault;
    fault.when = when_;
    Candidate c = guess(std::move(fault), what, plainness);
    if (!when_.empty()) c.alternatives.push_back(std::move(any_time));
    c.syscall = c.fault.call.syscall;
    c.error = part ? "" : kernel::errno_name(err);
    c.path = c.fault.call.path.value_or("");
    c.peer = c.fault.call.peer.value_or("");
    into.push_back(std::move(c));
  }

 private:
  Fault of_node(FaultKind kind, std::string_view name, Ids& ids) const {
    Fault fault;
    fault.kind = kind;
    fault.node = end_.node;
    fault.id = ids.next(fmt::format("perhaps-{}-{}", name, end_.node));
    return fault;
  }
  Candidate guess(Fault fault, std::string_view what, double plainness) const {
    Candidate c = candidate_of(std::move(fault), 0, end_.first_ts);
    c.plainness = plainness;
    c.known = Known::inferred;
    c.assumed = true;
    c.why = fmt::format("{} ended itself and nothing in the dump explains it; {}", end_.node, what);
    return c;
  }

  const Given& given_;
  const Candidate& end_;
  std::vector<Condition> when_;
};

CallMatch on_path(std::string syscall, const std::string& path) {
  CallMatch call;
  call.syscall = std::move(syscall);
  call.path = path;
  return call;
}

}  // namespace

Extracted suspect_last_used(const Given& given, const Facts& facts, const std::vector<Candidate>& ends) {
  Extracted extracted;
  if (!given.inputs.recorded() || given.inputs.without.contains("unexplained")) return extracted;
  std::vector<const Candidate*> unexplained;
  for (const Candidate& c : ends)
    if (c.kind == FaultKind::crash && c.own_end && !c.symptom && !c.partly && !c.out_of_memory && c.plainness >= 1)
      unexplained.push_back(&c);
  std::stable_sort(unexplained.begin(), unexplained.end(),
                   [](const Candidate* a, const Candidate* b) { return a->last_ts > b->last_ts; });
  if (unexplained.size() > kMostEnds) unexplained.resize(kMostEnds);
  Ids ids;
  for (const Candidate* end : unexplained) {
    const Guesses guesses(given, facts, *end);
    const LastUsed used = last_used(given, given.nodes.of_address(end->node), end->first_ts);
    if (used.files.empty() && used.peer.empty()) continue;
    std::vector<Candidate>& into = extracted.candidates;
    if (!used.files.empty())
      guesses.limit(FaultKind::disk_full,
                    fmt::format("its disk may have been full: it had just used {}", used.files[0]), kSuspectDisk, ids,
                    into);
    for (const std::string& file : used.files) {
      guesses.call(on_path("*write*", file), ENOSPC, "it wrote this file last; the disk may have been full",
                   kSuspectFile, ids, into);
      guesses.call(on_path("*write*", file), EIO, "it wrote this file last; the disk may have failed", kSuspectFile,
                   ids, into);
      guesses.call(on_path("f*sync", file), EIO, "it wrote this file last; the disk may have failed", kSuspectFile, ids,
                   into);
      guesses.call(on_path("*write*", file), 0, "it wrote this file last; the write may have been partial",
                   kSuspectFile, ids, into, true);
    }
    if (!used.peer.empty()) {
      CallMatch from_peer;
      from_peer.syscall = "re*";  // read, readv, recvfrom, recvmsg
      from_peer.peer = used.peer;
      guesses.call(std::move(from_peer), ECONNRESET, "its peer may have reset their connection", kSuspectOther, ids,
                   into);
    }
    guesses.limit(FaultKind::descriptors, "it may have had no descriptors left", kSuspectOther, ids, into);
    guesses.limit(FaultKind::memory, "it may have had no memory left", kSuspectOther, ids, into);
  }
  return extracted;
}

}  // namespace rose::diagnose
