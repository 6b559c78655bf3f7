// Failed calls, limits, exceptions and wrong clocks that logs report.
#include <algorithm>
#include <cerrno>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "evidence/forms.h"
#include "evidence/logs/hint_reader.h"
#include "evidence/logs/throw_sites.h"
#include "kernel/syscalls.h"
#include "profile/profile.h"
#include "weights/weights.h"

namespace rose::evidence {
namespace {

using logs::Hint;
using logs::kNoTime;
using trace::Event;
using trace::EventType;

constexpr std::size_t kMostPaths = 6;  // at most this many files are tried for a message that names no file

bool takes_path(const kernel::SyscallInfo& info) { return info.path >= 0 || info.path2 >= 0 || info.fd >= 0; }
bool is_network_call(std::string_view call) {
  return call == "connect" || call.starts_with("accept") || call.starts_with("send") || call.starts_with("recv") ||
         call == "bind" || call == "listen" || call == "socket";
}
// True for errors with which connections fail or end. A read or write that returns such an error uses a socket.
bool ends_connection(int error) {
  switch (error) {
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case ETIMEDOUT:
    case ENOTCONN:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN: return true;
    default: return false;
  }
}
// True for errors that a write returns only if it writes to a file, and not to a socket, a pipe or an event counter.
bool only_of_files(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG || error == EROFS; }
bool is_process_call(std::string_view call) {
  return call.starts_with("clone") || call == "vfork" || call == "execve" || call == "mmap" || call == "brk";
}

}  // namespace

void HintReader::add_call(const Hint& hint, const std::string& node, double weight) {
  const std::int64_t ts = case_.time_of(hint);
  // number of calls added so far; each call gets a later time than the previous one, so that the most likely call comes
  // first
  std::int64_t later = 0;
  std::size_t left = 12;  // how many more calls may be added for this message
  // If the message names a call that creates processes or maps memory, this call does not use the file that the message
  // also names.
  const bool of_process = !hint.syscalls.empty() && is_process_call(hint.syscalls.front());
  for (const std::string_view call : hint.syscalls) {
    const kernel::SyscallInfo* info = kernel::find_syscall(call);
    if (info == nullptr || !case_.makes_call(node, call) || left == 0) continue;
    if (of_process && !hint.path.empty() && !is_process_call(call)) continue;
    // If the message names a file, a call that uses no file is not meant.
    const bool without_file = is_network_call(call) || is_process_call(call);
    if (!hint.path.empty() && without_file && !of_process && !ends_connection(hint.error)) continue;
    std::vector<std::string> paths;
    const bool of_connection = ends_connection(hint.error) && !is_network_call(call);  // a read or write of a socket
    if (of_connection && hint.peer.empty()) continue;
    if (!of_connection && !is_network_call(call) && !is_process_call(call) && takes_path(*info)) {
      if (!hint.path.empty()) paths.push_back(hint.path);
      else paths = files_near(node, ts, call);
      if (paths.empty()) {  // no file is known
        if (case_.control() == nullptr) ++without_file_;
        // A fault without a path also hits sockets and the output of the program. So leave out the path only if the
        // message names the call and sockets can return the error, too; otherwise use any file ("/*"). If the message
        // does not name the call, and the control run shows no file for it, the call is probably not meant: skip it.
        if (!hint.exact && case_.control() != nullptr) continue;
        paths.emplace_back(hint.exact && !only_of_files(hint.error) ? "" : "/*");
      }
    } else {
      paths.emplace_back();
    }
    for (const std::string& path : paths) {
      if (left == 0) break;
      --left;
      Observation failed = out_.observation(EventType::scf, node, ts + 1000 * later++);
      failed.syscall = static_cast<std::int16_t>(info->number);
      failed.err = static_cast<std::int16_t>(hint.error);
      if (!path.empty()) failed.path = out_.intern(path);
      if (!hint.peer.empty() && (of_connection || is_network_call(call))) failed.peer = out_.intern(hint.peer);
      failed.count = hint.count > 1 ? static_cast<std::uint32_t>(std::min<std::uint64_t>(hint.count - 1, 100'000)) : 1;
      // The failure is inferred in three cases: the message names no file, so `path` is only a file that the node uses;
      // the message names no failed call, so `call` is only a possible one; or the node continued as before.
      const bool inferred = (!path.empty() && hint.path.empty()) || hint.unnamed || hint.passing;
      out_.put(failed, origin_of(hint, weight, inferred));
      if (hint.count > 1) {
        failed.ts_ns = std::max(failed.ts_ns + 1, hint.until_ns != kNoTime ? hint.until_ns : ts);
        failed.count = 1;
        out_.put(failed, origin_of(hint, weight, inferred));
      }
      weight *= kNextCall;
    }
  }
  if (hint.weight >= kLeastHint) out_.cut_off(node, ts);
}

std::vector<std::string> HintReader::files_near(const std::string& node, std::int64_t ts, std::string_view call) const {
  std::vector<std::string> files;
  if (case_.control() == nullptr) return files;
  std::vector<std::pair<std::int64_t, std::string>> by_distance;
  for (const Event& control_event : case_.control()->events) {
    if (control_event.type != EventType::sys || control_event.path == 0 || case_.name_in_control(control_event) != node)
      continue;
    const std::string done = kernel::syscall_name(control_event.syscall);
    const bool makes_file = done.starts_with("open") || done == "creat" || done.find("sync") != std::string::npos ||
                            done.starts_with("rename") || done.find("truncate") != std::string::npos ||
                            done == "fallocate" || done == call;
    if (!makes_file || is_network_call(done) || done == "execve") continue;
    const std::string_view path = case_.control()->str(control_event.path);
    if (path.empty() || path[0] != '/' || path.starts_with("/proc/") || path.starts_with("/dev/") ||
        path.starts_with("/sys/"))
      continue;
    const std::int64_t apart = ts - case_.to_incident(node, control_event.ts_ns);
    by_distance.emplace_back(apart >= 0 ? apart : 10 * -apart, std::string(path));
  }
  std::stable_sort(by_distance.begin(), by_distance.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::set<std::string> patterns;
  for (const auto& [distance, path] : by_distance) {
    if (!patterns.insert(profile::path_pattern(path)).second) continue;
    files.push_back(path);
    if (files.size() == kMostPaths) break;
  }
  return files;
}

void HintReader::add_limit(const Hint& hint, const std::string& node, double weight) {
  const auto kind = [&] {
    switch (hint.limit) {
      case Hint::Limit::disk_full: return schedule::FaultKind::disk_full;
      case Hint::Limit::disk_slow: return schedule::FaultKind::disk_slow;
      case Hint::Limit::descriptors: return schedule::FaultKind::descriptors;
    }
    ROSE_BUG("a hint about an unknown kind of limit");
  }();
  inputs_.reported_limits.push_back({kind, node, std::max(case_.first(), case_.time_of(hint)), hint.took_ns, hint.count,
                                     weight, hint.words, hint.passing});
}

void HintReader::add_exception(const Hint& hint, const std::string& node) {
  const bool sent =
      std::any_of(hint.trace.begin(), hint.trace.end(), [](const logs::Thrown& thrown) { return thrown.elsewhere; });
  bool placed = false;
  for (const config::Node& other_node : inputs_.config->nodes) {
    const bool here = other_node.name == node;
    if (!here && !sent) continue;
    const double weight = (with_dumps_ ? hint.weight * kWithDump : hint.weight) * (here && sent ? kThrownByPeer : 1);
    ReportedException exception{other_node.name,
                                case_.time_of(hint),
                                hint.until_ns,
                                hint.count,
                                weight,
                                {},
                                throw_sites(hint.trace, other_node, !here)};
    if (exception.sites.empty()) continue;
    placed = true;
    exception.last_ts = std::max(exception.last_ts, exception.first_ts);
    exception.visits = visits(other_node.name, exception.sites[0].function, exception.first_ts);
    exception.words = fmt::format("{}, with {} in {}", hint.words, exception.sites[0].throws, exception.sites[0].frame);
    inputs_.exceptions.push_back(std::move(exception));
  }
  if (!placed && inputs_.config->find(node) != nullptr) ++without_method_;
}

std::uint64_t HintReader::visits(const std::string& node, const std::string& function, std::int64_t ts) const {
  if (case_.control() == nullptr) return 0;
  std::uint64_t visits = 0;
  for (const Event& control_event : case_.control()->events)
    if (control_event.type == EventType::af && case_.name_in_control(control_event) == node &&
        case_.control()->str(control_event.function) == function && case_.to_incident(node, control_event.ts_ns) <= ts)
      ++visits;
  return visits;
}

void HintReader::set_clock(const logs::ClockJump& jump) {
  const std::string node = case_.name_of(jump.log);
  if (inputs_.config->find(node) == nullptr) {
    ++without_node_;
    return;
  }
  inputs_.clock_steps.push_back({node, jump.at_ns, jump.until_ns == kNoTime ? 0 : jump.until_ns - jump.at_ns,
                                 jump.change_ns, jump.weight, jump.words, false, false, Known::inferred});
}

void HintReader::add_clock(const Hint& hint, const std::string& node) {
  const std::int64_t off = hint.clock.off_ns;
  const std::string by = fmt::format("{} {}", format_duration(rounded(std::abs(off))),
                                     hint.clock.either_way ? "off"
                                     : off < 0             ? "behind"
                                                           : "ahead");
  inputs_.clock_steps.push_back({node, case_.time_of(hint), 0, off, hint.weight,
                                 fmt::format("{}: the clock of {} is {}", hint.words, node, by), !hint.clock.stepped,
                                 hint.clock.either_way});
}

}  // namespace rose::evidence
