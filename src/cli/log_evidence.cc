#include "cli/log_evidence.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "evidence/logs/from_logs.h"
#include "evidence/logs/hosts.h"
#include "logs/quote.h"
#include "replay/run_logs.h"

namespace rose::cli {
namespace {

constexpr std::size_t kMostReported = 12;
constexpr const char* kGrowthFile = "log-growth.txt";  // growth of the logs over time in the run without faults
constexpr std::size_t kMostGrowth = 64 << 20;          // limit in bytes
constexpr std::size_t kMostBeside = 200;  // runs whose logs are kept for comparison with those of the failure

Result<logs::Input> input_of(const std::string& entry, const config::Config& config,
                             const std::map<std::string, std::string>& host_to_node) {
  const std::size_t equals = entry.find('=');
  std::error_code ignored;
  if (equals != std::string::npos && equals != 0 && entry.find('/') > equals &&
      !std::filesystem::exists(entry, ignored)) {
    std::string node = entry.substr(0, equals);
    if (const auto mapped = host_to_node.find(node); mapped != host_to_node.end()) node = mapped->second;
    if (config.find(node) == nullptr)
      return fail(
          ErrorKind::usage, fmt::format("--log: there is no node '{}' in {}", node, config.file.string()),
          fmt::format("its nodes are {}; --map HOST=NODE maps other names", fmt::join(config.node_names(), ", ")));
    return logs::Input{entry.substr(equals + 1), node};
  }
  logs::Input input{entry, ""};
  if (config.nodes.size() == 1) {
    input.node = config.nodes[0].name;
    return input;
  }
  input.node = diagnose::node_of_path(input.path, config, host_to_node);
  return input;
}

}  // namespace

Result<std::unique_ptr<LogEvidence>> LogEvidence::read(const std::vector<std::string>& entries,
                                                       const config::Config& config,
                                                       const std::map<std::string, std::string>& host_to_node) {
  std::unique_ptr<LogEvidence> made(new LogEvidence(config, host_to_node));
  std::vector<logs::Input> inputs;
  for (const std::string& entry : entries) {
    ROSE_TRY(inputs.emplace_back(), input_of(entry, config, host_to_node));
  }
  logs::ReadOptions how = made->how_;
  how.node_of = [&, &hosts = made->hosts_, &mutex = made->mutex_](std::string_view host) {
    {
      std::lock_guard lock(mutex);
      hosts.emplace(host);
    }
    return diagnose::node_of_host(host, config, host_to_node);
  };
  ROSE_TRY(made->evidence_.failure, logs::read_logs(inputs, how, made->kinds_));
  std::uint64_t messages = 0;
  for (const logs::Source& source : made->evidence_.failure.sources) {
    messages += source.messages;
    log::info("{}", logs::words(source));
    if (!source.node.empty()) continue;
    if (!source.unknown_hosts.empty())
      log::warning("{}: its lines name hosts that are not nodes ({}): --map {}=NODE maps one to a node",
                   source.path.string(), fmt::join(source.unknown_hosts, ", "), source.unknown_hosts.front());
    else
      log::warning("{}: its node is unknown, because neither its lines nor its path name one: use --log NODE={}",
                   source.path.string(), source.path.string());
  }
  if (messages == 0)
    return fail(
        ErrorKind::input,
        fmt::format("the logs contain no message: {}", logs::words(made->evidence_.failure.sources.front())),
        "a log is text with one message per line or one JSON object per line; gzip, xz, zstd and bzip2 are unpacked");
  return made;
}

std::vector<logs::Input> LogEvidence::logs_of(const std::filesystem::path& run_dir) const {
  std::vector<logs::Input> found;
  for (replay::NodeLogFile& file : replay::run_logs(config_, run_dir))
    found.push_back({std::move(file.path), std::move(file.node), std::move(file.folder)});
  return found;
}

void LogEvidence::begin(const std::filesystem::path& run_dir) {
  std::lock_guard lock(mutex_);
  std::erase_if(watches_, [](const auto& one) {  // removes the watches of runs that could not be made
    std::error_code ignored;
    return !std::filesystem::exists(one.first, ignored);
  });
  watches_[run_dir] = std::make_unique<logs::Watch>([this, run_dir] { return logs_of(run_dir); });
}

void LogEvidence::seen(const std::filesystem::path& run_dir, logs::Watch::Growth growth) {
  std::lock_guard lock(mutex_);
  watches_[run_dir] = std::make_unique<logs::Watch>(std::move(growth));
}

void LogEvidence::look(const std::filesystem::path& run_dir, schedule::RunResult& result) {
  std::unique_ptr<logs::Watch> watch;
  {
    std::lock_guard lock(mutex_);
    if (auto known = watches_.extract(run_dir)) watch = std::move(known.mapped());
  }
  if (watch != nullptr) watch->stop();
  if (matcher_ != nullptr) {
    const std::vector<logs::Input> files = logs_of(run_dir);
    const std::set<std::string> observed = matcher_->observed_in(files);
    result.messages_seen.assign(observed.begin(), observed.end());
    if (result.verdict != schedule::Verdict::reproduced) return;
    std::vector<logs::SideBySide> both = matcher_->side_by_side(files, watch.get());
    std::lock_guard lock(mutex_);
    if (beside_.size() < kMostBeside) beside_.emplace(result.number, std::move(both));
    return;
  }
  Result<logs::Logs> normal = logs::read_logs(logs_of(run_dir), how_, kinds_);
  if (!normal) {
    log::warning("the logs of the run without faults can't be read: {}", normal.error().message);
    return;
  }
  evidence_.normal = *std::move(normal);
  // Stored with the run's logs, because --resume needs the same times.
  const std::filesystem::path kept = run_dir / kGrowthFile;
  if (watch == nullptr) {
    if (const Result<std::string> text = read_file(kept, kMostGrowth))
      watch = std::make_unique<logs::Watch>(logs::growth_of_text(*text, run_dir));
  } else if (const Result<void> written = write_file(kept, logs::growth_text(watch->growth(), run_dir), 0600);
             !written) {
    log::warning("{}", written.error().message);
  }
  if (watch != nullptr) watch->apply(evidence_.normal);
}

std::vector<logs::SideBySide> LogEvidence::beside(int run) const {
  const auto known = beside_.find(run);
  return known == beside_.end() ? std::vector<logs::SideBySide>{} : known->second;
}

void LogEvidence::add_to(diagnose::Inputs& inputs, const trace::Trace* control) {
  evidence_.difference = logs::compare(evidence_.failure, evidence_.normal, kinds_);
  if (control != nullptr) logs::align(evidence_.failure, evidence_.normal, evidence_.difference, control->meta.end_ns);
  evidence_.hints = logs::find_hints(evidence_.failure, evidence_.normal, evidence_.difference,
                                     diagnose::node_names_in_logs(config_, host_to_node_));
  matcher_ = std::make_unique<logs::ObservableMatcher>(evidence_, kinds_, how_);
  for (const evidence::Source& dump : inputs.sources) {
    dump_hosts_.insert(dump.meta.host);
    for (const std::string& name : evidence::node_names(dump)) dump_hosts_.insert(name);
  }
  diagnose::add_logs(inputs, evidence_, control);
  for (std::string& one : notes()) inputs.log_notes.push_back(std::move(one));
}

std::vector<std::string> LogEvidence::notes() const {
  std::vector<std::string> out;
  std::vector<const logs::Observed*> heaviest;
  for (const logs::Observed& one : evidence_.difference.observed) heaviest.push_back(&one);
  std::stable_sort(heaviest.begin(), heaviest.end(),
                   [](const logs::Observed* a, const logs::Observed* b) { return a->weight > b->weight; });
  const bool compared = !evidence_.normal.nodes.empty();
  for (std::size_t i = 0; i < std::min(heaviest.size(), kMostReported); ++i) {
    const logs::Observed& one = *heaviest[i];
    const std::string message =
        quote(evidence_.failure, one.node, evidence_.failure.nodes[one.node].messages[one.first]);
    out.push_back(fmt::format("{}: {}{}",
                              !compared         ? "the log says"
                              : one.normal == 0 ? "only in the failure's logs"
                                                : "far more frequent in the failure's logs",
                              message, one.count > 1 ? fmt::format(", {} times", one.count) : ""));
  }
  if (heaviest.size() > kMostReported)
    out.push_back(
        fmt::format("{} more kinds of messages that only the failure's logs contain", heaviest.size() - kMostReported));
  std::set<std::string> unknown;
  for (const logs::Hint& hint : evidence_.hints) {
    const std::string address = hint.peer.substr(0, hint.peer.rfind(':'));
    if (hint.kind != logs::Hint::Kind::call || address.empty() || address.starts_with("127.") ||
        config_.nodes.size() < 2)
      continue;
    if (diagnose::node_of_host(address, config_, host_to_node_).empty()) unknown.insert(address);
  }
  if (!unknown.empty())
    out.push_back(fmt::format(
        "messages report failed calls to addresses of no known node: {}; if {} a node of the incident, name "
        "the node with --map {}=NODE",
        fmt::join(unknown, ", "), unknown.size() == 1 ? "it is" : "one of them is", *unknown.begin()));
  for (const auto& [host, node] : host_to_node_) {
    const auto names_host = [&](std::string_view text) { return text.find(host) != std::string_view::npos; };
    if (std::any_of(hosts_.begin(), hosts_.end(), names_host) || dump_hosts_.contains(host)) continue;
    // the host's name is an address, and the events in the dumps refer to the node by this address
    if (!dump_hosts_.empty() && is_digit(host.front())) continue;
    if (std::any_of(evidence_.hints.begin(), evidence_.hints.end(), [&](const logs::Hint& hint) {
          return hint.node == node || hint.peer == node || names_host(hint.peer);
        }))
      continue;
    const auto& nodes = evidence_.failure.nodes;
    if (std::any_of(nodes.begin(), nodes.end(), [&](const logs::NodeLog& log) {
          return std::any_of(log.messages.begin(), log.messages.end(),
                             [&](const logs::Message& one) { return names_host(evidence_.failure.text(one)); });
        }))
      continue;
    out.push_back(fmt::format("--map {}={}: neither a line nor a finding of the logs names '{}'", host, node, host));
  }
  if (heaviest.empty() && compared)
    out.emplace_back("the failure's logs contain no message that the run without faults does not contain");
  return out;
}

}  // namespace rose::cli
