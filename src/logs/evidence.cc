#include "logs/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <unordered_map>

#include "base/ascii.h"
#include "base/units.h"
#include "kernel/syscalls.h"
#include "logs/line/header.h"

namespace rose::logs {
namespace {

constexpr std::size_t kReadForIds = 5'000;                // messages of a node, for what it calls itself
constexpr std::size_t kLeastId = 6;                       // characters: shorter ones stand for much else
constexpr std::size_t kLeastHexId = 8;                    // of hexadecimal digits only
constexpr std::size_t kQuoted = 140;                      // characters of a message
constexpr std::size_t kLooked = 30;                       // lines of a message, for the one that names the error
constexpr std::uint64_t kMostRead = 500;                  // messages of one kind that are read one by one
constexpr std::size_t kBannerLines = 12;                 // within so many lines a program says that it begins
constexpr std::size_t kMostFolded = 1'000;                // failures of a node that are compared by their paths
constexpr std::size_t kTail = 6;                          // messages before a restart that may tell why
constexpr std::int64_t kLeastGap = kSecond;               // of a node that is said to have stood still
constexpr std::int64_t kEarly = 3 * kSecond;              // a log that ends so long before the others' ends early
constexpr std::int64_t kGapFactor = 4;                    // times the longest gap that is usual
constexpr std::size_t kRhythm = 3;                        // so many gaps of a node are how it speaks now: what counts is longer by far
constexpr std::int64_t kOffBeat = 2;                      // times as long

constexpr double kPlain = 1.0;      // the failure's own message names the error, or the signal
constexpr double kRestarted = 0.9;  // it began again, and nothing says why
constexpr double kNeverUp = 0.3;    // times this: it only said that it begins, and began again: it cannot, which mostly comes of what was before
constexpr double kPanicked = 0.6;   // it ended itself: why is told by something else, mostly
constexpr double kSilent = 0.5;     // it says nothing any more
constexpr double kStood = 0.35;     // a gap
constexpr double kHushed = 0.3;     // times this: a silence of all nodes, or one that began after the failure's cause was told
constexpr double kTogether = 0.8;   // of a silence, in one piece, that others share
constexpr double kSaysItStood = 0.6;  // it tells of a pause of its own
constexpr double kSpokenOf = 0.6;   // others miss it
constexpr double kStoodOrCut = 0.75;  // times this: and it may have stood still rather than have been cut off
constexpr std::int64_t kNoticed = 8 * kSecond;  // at most so long after a node stood still others say that they miss it,
constexpr std::int64_t kNoticedSoon = 2 * kSecond;  // and mostly so soon: what it said last may be from long before
constexpr std::int64_t kTogetherMissed = kSecond;   // two sides of a cut notice it within that of each other
constexpr double kRefused = 0.6;    // nobody listens there any more, and the machine answers: mostly the process is gone,
constexpr double kRefusedByCut = 0.25;  // a rule of a firewall may say so, too
constexpr double kFailedSomehow = 0.28;    // something with a file failed, and why is not said
constexpr std::size_t kErrorAlone = 60;  // characters of a message that says nothing but how the one before it failed
constexpr double kNobodyNamed = 0.4;     // times this: of two nodes one misses somebody; it may be a client
constexpr double kNextError = 0.5;  // of what is believed of the likeliest error has the next one
constexpr double kEcho = 0.3;        // times this: it says once more, and less plainly, what another message said
constexpr std::int64_t kEchoed = kSecond;  // so soon
constexpr double kInPassing = 0.5;  // times this: it is said at a level at which nobody is to look
constexpr std::size_t kOpening = 3; // messages in a row that tell a new life where no run without faults does
constexpr std::uint64_t kMostLives = 20;  // whose opening comes more often does a round of work
constexpr double kLostRole = 0.28;  // somebody else has its role: that says that something happened to it, not what
constexpr std::size_t kMostMoves = 6;  // messages of a role: what is said more often is none
constexpr double kThrown = 0.6;      // an exception that no failed call brings about
constexpr double kThrownOfCall = 0.1;      // one that a failed call brings about, which is likelier: the call is a hint of its own
constexpr double kThrownByPeers = 0.25;    // of a connection: mostly it tells of somebody else's end
constexpr double kThrownByProgram = 0.2;   // the program's own mistake: something else came before
constexpr double kThrownInStopping = 0.1;
constexpr std::uint64_t kTracesOfKind = 4;  // of messages of one kind: they may come from several places
constexpr double kUsual = 0.1;      // times this: runs without faults say so, too
constexpr double kOutweighs = 3;      // of two messages of one thing, so much more weight has the one that counts

std::size_t end_of(const NodeLog& node) { return node.messages.size(); }

bool timed(const NodeLog& node) { return !node.messages.empty() && node.messages.front().ts_ns != kNoTime && !node.aligned; }

// Longest silence between two messages of a node.
std::int64_t longest_gap(const NodeLog& node) {
  std::int64_t longest = 0;
  for (std::size_t i = 1; i < node.messages.size(); ++i)
    if (node.messages[i - 1].ts_ns != kNoTime) longest = std::max(longest, node.messages[i].ts_ns - node.messages[i - 1].ts_ns);
  return longest;
}

class Finder {
 public:
  Finder(const Logs& failure, const Logs& normal, const Difference& difference, const std::vector<NodeName>& names)
      : failure_(failure), normal_(normal), difference_(difference), names_(names) {}

  std::vector<Hint> find() {
    for (const NodeLog& node : normal_.nodes)
      for (const Message& message : node.messages)
        if (normal_.text(message).find('\n') != std::string_view::npos) with_lines_behind_.insert(message.kind);
    observed_.resize(failure_.nodes.size());
    for (const Observed& one : difference_.observed) observed_[one.node].emplace(one.kind, &one);
    learn_ids();
    for (const NodeLog& node : failure_.nodes)
      if (timed(node)) last_ = std::max(last_, node.messages.back().ts_ns);
    for (const NodeLog& node : normal_.nodes)
      if (timed(node)) normal_last_ = std::max(normal_last_, node.messages.back().ts_ns);
    for (std::size_t n = 0; n < failure_.nodes.size(); ++n) {
      ends(n);
      gaps(n);
    }
    for (std::size_t n = 0; n < failure_.nodes.size(); ++n) {
      sayings(n);
      throwings(n);
    }
    stood_while_missed();
    roles();
    echoes();
    hush();
    std::stable_sort(hints_.begin(), hints_.end(), [](const Hint& a, const Hint& b) { return a.weight > b.weight; });
    if (hints_.size() > kMostHints) hints_.resize(kMostHints);
    return std::move(hints_);
  }

 private:
  [[nodiscard]] const NodeLog& node(std::size_t n) const { return failure_.nodes[n]; }
  [[nodiscard]] const NodeLog* usual(std::size_t n) const {
    return difference_.nodes[n].normal == kNoNode ? nullptr : &normal_.nodes[difference_.nodes[n].normal];
  }
  Meaning meaning(const Message& message) const { return read_meaning(failure_.text(message)); }

  Hint& add(Hint::Kind kind, std::size_t n, const Message& message, double weight) {
    Hint& hint = hints_.emplace_back();
    hint.kind = kind;
    hint.node = node(n).node;
    hint.ts_ns = message.ts_ns;
    hint.weight = weight;
    hint.log = n;
    hint.message = static_cast<std::uint32_t>(&message - node(n).messages.data());
    hint.words = quote(failure_, n, message);
    return hint;
  }

  // --- a program that begins again, or says nothing any more

  // What a program says once, when it begins: kinds that stand once in a run without faults, near its beginning.
  std::set<TemplateId> banner(std::size_t n) const {
    std::set<TemplateId> kinds;
    const NodeLog* other = usual(n);
    const NodeLog& from = other != nullptr ? *other : node(n);
    for (std::size_t i = 0; i < from.messages.size() && i < kBannerLines && kinds.size() < 3; ++i) {
      const TemplateId kind = from.messages[i].kind;
      if (other != nullptr ? from.counts[kind] == 1 : i < 3) kinds.insert(kind);
    }
    return kinds;
  }

  // Of a banner, what comes first of all.
  TemplateId first_of(const std::set<TemplateId>& banner, std::size_t n) const {
    const NodeLog* other = usual(n);
    for (const Message& one : (other != nullptr ? *other : node(n)).messages)
      if (banner.contains(one.kind)) return one.kind;
    return 0;
  }

  // A single line of a banner may be said again for other reasons ("member 2 leads"); its first one is there, too, when a program begins.
  // `first`: where it stands for the first time.
  static bool begins_again(const NodeLog& here, std::size_t i, TemplateId opening, std::size_t first) {
    for (std::size_t k = std::max(first + 1, i - std::min(i, kBannerLines)); k < std::min(here.messages.size(), i + kBannerLines); ++k)
      if (here.messages[k].kind == opening) return true;
    return false;
  }

  // The log's first messages once more, in a row, as of a program that begins: whatever its words for that.
  [[nodiscard]] bool opens_again(const NodeLog& here, std::size_t i) const {
    if (here.messages.size() < i + kOpening || here.counts[here.messages[0].kind] > kMostLives) return false;
    std::set<TemplateId> kinds;
    for (std::size_t k = 0; k < kOpening; ++k) {
      if (here.messages[k].kind != here.messages[i + k].kind) return false;
      kinds.insert(here.messages[k].kind);
    }
    if (kinds.size() < kOpening) return false;
    for (std::size_t k = i; k < std::min(here.messages.size(), i + kBannerLines); ++k) {
      const std::string low = lower_case(failure_.text(here.messages[k]));
      for (const std::string_view word : {"start", "listen", "boot", "ready", "loaded", "initiali", "running"})
        if (low.find(word) != std::string::npos) return true;
    }
    return false;
  }

  void ends(std::size_t n) {
    const NodeLog& here = node(n);
    const std::set<TemplateId> begin = banner(n);
    std::size_t since = 0;  // where the life began that is looked at
    std::set<TemplateId> said;
    std::map<TemplateId, bool> starting;
    const TemplateId opening = first_of(begin, n);
    const auto first = static_cast<std::size_t>(
        std::find_if(here.messages.begin(), here.messages.end(), [&](const Message& one) { return one.kind == opening; }) - here.messages.begin());
    for (std::size_t i = 0; i < end_of(here); ++i) {
      const TemplateId kind = here.messages[i].kind;
      if (!begin.contains(kind) || said.insert(kind).second || !begins_again(here, i, opening, first)) continue;
      if (usual(n) == nullptr) {  // messages of one kind begin alike
        const auto [known, fresh] = starting.try_emplace(kind, false);
        if (fresh) known->second = meaning(here.messages[i]).starting;
        if (!known->second && !opens_again(here, i)) continue;
      }
      said = {kind};
      life_ended(n, since, i);
      since = i;
    }
    if (end_of(here) == 0) return;
    const Message& last = here.messages.back();
    for (std::size_t i = end_of(here) - std::min(end_of(here) - since, kTail); i < end_of(here); ++i) {
      const auto observed = observed_[n].find(here.messages[i].kind);
      if (!dies_of(here, i, end_of(here)) || (observed == observed_[n].end() && !normal_.nodes.empty())) continue;
      Hint& hint = add(Hint::Kind::end, n, here.messages[i], kPanicked);
      hint.itself = true;
      hint.signal = SIGABRT;
      return;
    }
    if (!timed(here)) return;
    // Some have said all when they have begun, and are well.
    std::int64_t gap = usual(n) != nullptr ? longest_gap(*usual(n)) : longest_gap(here);
    if (usual(n) != nullptr && timed(*usual(n))) gap = std::max(gap, normal_last_ - usual(n)->messages.back().ts_ns);
    const std::int64_t silent = last_ - last.ts_ns;
    if (stopped_in_order(n, since, end_of(here))) return;
    if (silent < (missed_the_stop(n) ? kEarly : std::max({kEarly, kGapFactor * gap, beat(here)}))) return;
    Hint& end = end_hint(n, since, end_of(here), kSilent);
    end.words += ", and then nothing any more, while others go on";
    end.fell_silent = true;
    silences_.push_back(hints_.size() - 1);
  }

  // Those that were there when all were stopped said so, as this one did when nothing was wrong.
  bool missed_the_stop(std::size_t n) const {
    const NodeLog* before = usual(n);
    const auto stopping = [](const Logs& logs, const NodeLog& node) { return stops_by(logs, node, 0, end_of(node)); };
    if (before == nullptr || !stopping(normal_, *before)) return false;
    return std::any_of(failure_.nodes.begin(), failure_.nodes.end(), [&](const NodeLog& other) { return &other != &node(n) && !other.node.empty() && stopping(failure_, other); });
  }

  // How long a node is silent again and again: of its gaps the third longest. What is no longer says nothing of it.
  static std::int64_t beat(const NodeLog& node) {
    std::vector<std::int64_t> gaps;
    for (std::size_t i = 1; i < node.messages.size(); ++i) gaps.push_back(node.messages[i].ts_ns - node.messages[i - 1].ts_ns);
    if (gaps.size() < kRhythm) return 0;
    std::nth_element(gaps.begin(), gaps.begin() + (kRhythm - 1), gaps.end(), std::greater<>());
    return gaps[kRhythm - 1];
  }

  // "I/O error" is what programs call any failure of a disk: right beside a message that names the error and its file, it is that one.
  void echoes() {
    for (Hint& hint : hints_) {
      if (hint.kind != Hint::Kind::call || hint.error != EIO || !hint.path.empty() || hint.ts_ns == kNoTime) continue;
      const bool named = std::any_of(hints_.begin(), hints_.end(), [&](const Hint& other) {
        return other.kind == Hint::Kind::call && other.log == hint.log && other.error != EIO && kernel::resource_error(other.error) && !other.path.empty() &&
               other.ts_ns != kNoTime && std::abs(other.ts_ns - hint.ts_ns) <= kEchoed;
      });
      if (named) hint.weight *= kEcho;
    }
  }

  // Where a message names the cause plainly, who says less from then on mostly has less to say.
  void hush() {
    std::int64_t told = kNoTime;
    for (const Hint& hint : hints_)
      if (hint.kind == Hint::Kind::call && hint.weight >= kInPassing && kernel::resource_error(hint.error) && hint.ts_ns != kNoTime && (told == kNoTime || hint.ts_ns < told))
        told = hint.ts_ns;
    if (told == kNoTime) return;
    for (const std::size_t one : silences_)
      if (hints_[one].ts_ns >= told) hints_[one].weight *= kHushed;
  }

  // A panic, or an exception that nobody caught: who logs one goes on, and says so as an error.
  bool dies_of(const NodeLog& here, std::size_t i, std::size_t end) const {
    const Message& message = here.messages[i];
    const Meaning& said = meaning(message);
    return said.panic || said.gave_up || (said.traceback && i + 1 == end && message.level != Level::error && message.level != Level::warning);
  }

  bool stopped_in_order(std::size_t n, std::size_t begin, std::size_t end) const { return stops_by(failure_, node(n), begin, end); }
  // Whether the last of these messages tell of an orderly stop.
  static bool stops_by(const Logs& logs, const NodeLog& node, std::size_t begin, std::size_t end) {
    for (std::size_t i = end - std::min(end - begin, kTail); i < end; ++i)
      if (read_meaning(logs.text(node.messages[i])).stopping) return true;
    return false;
  }

  Hint& end_hint(std::size_t n, std::size_t begin, std::size_t end, double weight) {
    std::size_t at = end - 1;  // what is quoted says something
    while (at > begin && failure_.text(node(n).messages[at]).find_first_not_of(" \t\r\n*") == std::string_view::npos) --at;
    const Message& last = node(n).messages[at];
    bool itself = false;
    for (std::size_t i = end - std::min(end - begin, kTail); i < end; ++i) itself = itself || dies_of(node(n), i, end) || node(n).messages[i].level == Level::fatal;
    Hint& hint = add(Hint::Kind::end, n, last, itself ? weight * 0.7 : weight);
    hint.itself = itself;
    hint.signal = itself ? SIGABRT : SIGKILL;
    return hint;
  }

  void life_ended(std::size_t n, std::size_t begin, std::size_t i) {
    if (i == begin) return;
    const bool ordered = stopped_in_order(n, begin, i), never_up = begin != 0 && i - begin < kOpening;
    Hint& hint = end_hint(n, begin, i, (ordered ? kStood : kRestarted) * (never_up ? kNeverUp : 1));
    if (ordered && !hint.itself) hint.signal = SIGTERM;
    hint.until_ns = node(n).messages[i].ts_ns;
    hint.words += fmt::format(" is the last before it begins again{}", ordered ? " (it was stopped in order)" : "");
  }

  // --- a node that stands still

  void gaps(std::size_t n) {
    const NodeLog& here = node(n);
    const NodeLog* other = usual(n);
    if (!timed(here) || other == nullptr || other->messages.size() < 4) return;
    const std::int64_t usually = std::max(kLeastGap, kGapFactor * longest_gap(*other)), again = beat(here);
    const std::int64_t most = again >= usually ? kOffBeat * again : usually;
    for (std::size_t i = 1; i < end_of(here); ++i) {
      const Message& before = here.messages[i - 1];
      const std::int64_t gap = here.messages[i].ts_ns - before.ts_ns;
      if (gap < most || is_end(here.node, before.ts_ns)) continue;
      const bool together = all_silent(n, before.ts_ns, here.messages[i].ts_ns);
      Hint& hint = add(Hint::Kind::stop, n, before, together ? kStood * kHushed : kStood);
      hint.until_ns = here.messages[i].ts_ns;
      hint.words += fmt::format(", and then nothing for {}{}", format_duration(gap / 1'000'000 * 1'000'000), together ? ", as from all others" : "");
      silences_.push_back(hints_.size() - 1);
    }
  }

  // Was nothing said by the others either, for most of that time? Then there was nothing to say, rather than that all stood still.
  bool all_silent(std::size_t n, std::int64_t begin, std::int64_t end) const {
    bool others = false;
    for (std::size_t other = 0; other < failure_.nodes.size(); ++other) {
      if (other == n || !timed(node(other))) continue;
      others = true;
      const std::vector<Message>& all = node(other).messages;
      std::int64_t longest = 0, since = begin;
      for (auto next = std::lower_bound(all.begin(), all.end(), begin, [](const Message& one, std::int64_t ts) { return one.ts_ns < ts; });
           next != all.end() && next->ts_ns < end; ++next) {
        longest = std::max(longest, next->ts_ns - since);
        since = next->ts_ns;
      }
      if (static_cast<double>(std::max(longest, end - since)) < kTogether * static_cast<double>(end - begin)) return false;
    }
    return others;
  }

  bool is_end(const std::string& name, std::int64_t ts) const {
    return std::any_of(hints_.begin(), hints_.end(), [&](const Hint& hint) { return hint.kind == Hint::Kind::end && hint.node == name && hint.ts_ns == ts; });
  }

  // --- a role that went from one node to another: "leader of term 2". Why it lost it, nobody may say.

  struct Saying {
    std::size_t node = 0;
    std::uint32_t message = 0;
    std::vector<std::uint64_t> numbers;  // in its text, where no times tell which was first
  };

  void roles() {
    if (normal_.nodes.size() < 2 || failure_.nodes.size() < 2) return;
    std::map<TemplateId, std::vector<Saying>> by_kind;
    for (std::size_t n = 0; n < failure_.nodes.size(); ++n)
      for (std::uint32_t i = 0; i < end_of(node(n)); ++i) {
        std::vector<Saying>& all = by_kind[node(n).messages[i].kind];
        if (all.size() <= kMostMoves) all.push_back({n, i, numbers_of(failure_.text(node(n).messages[i]))});
      }
    for (auto& [kind, all] : by_kind) {
      std::uint64_t usually = 0;
      std::vector<std::string> players;  // who said so in the run without faults
      for (const NodeLog& other : normal_.nodes)
        if (const std::uint64_t count = kind < other.counts.size() ? other.counts[kind] : 0; count != 0) {
          usually += count;
          players.push_back(other.node);
        }
      if (players.size() != 1 || usually > kMostMoves || all.size() <= usually || all.size() > kMostMoves) continue;
      const bool by_time = std::all_of(all.begin(), all.end(), [&](const Saying& one) { return timed(node(one.node)); });
      std::stable_sort(all.begin(), all.end(), [&](const Saying& a, const Saying& b) {
        return by_time ? ts_of(a) < ts_of(b) : a.numbers < b.numbers;
      });
      const auto next = std::find_if(all.begin(), all.end(), [&](const Saying& one) { return one.node != all.front().node; });
      if (next == all.end()) continue;
      lost_role(by_time ? node(all.front().node).node : players.front(), *next);
    }
  }

  [[nodiscard]] std::int64_t ts_of(const Saying& one) const { return node(one.node).messages[one.message].ts_ns; }

  static std::vector<std::uint64_t> numbers_of(std::string_view text) {
    std::vector<std::uint64_t> numbers;
    for (std::size_t i = 0; i < text.size() && numbers.size() < 8; ++i) {
      if (text[i] < '0' || text[i] > '9') continue;
      std::uint64_t number = 0;
      for (int digits = 0; i < text.size() && text[i] >= '0' && text[i] <= '9' && digits < 18; ++i, ++digits) number = number * 10 + static_cast<std::uint64_t>(text[i] - '0');
      numbers.push_back(number);
    }
    return numbers;
  }

  void lost_role(const std::string& loser, const Saying& next) {
    if (loser.empty()) return;
    const Message& message = node(next.node).messages[next.message];
    const std::int64_t began = message.ts_ns == kNoTime ? kNoTime : message.ts_ns - kEarly;
    const auto suspect = [&](Hint::Kind kind, double weight) -> Hint& {
      Hint& hint = add(kind, next.node, message, weight);
      hint.node = loser;
      hint.ts_ns = began;
      hint.words += fmt::format(", which {} says in a run without faults: it may have lost its role", loser);
      return hint;
    };
    suspect(Hint::Kind::end, kLostRole).signal = SIGKILL;
    if (began != kNoTime) suspect(Hint::Kind::stop, kLostRole).until_ns = message.ts_ns;
    for (const NodeLog& other : failure_.nodes)
      if (other.node != loser && !other.node.empty()) suspect(Hint::Kind::silence, kLostRole).peer = other.node;
  }

  // --- what messages say

  struct Said {
    const Message* first = nullptr;
    const Message* last = nullptr;
    std::uint64_t count = 0;
    Meaning meaning;
    double weight = 0;
  };

  using Calls = std::map<std::tuple<int, std::string, std::string>, Said>;  // by error, path, peer

  // What messages of one kind say.
  struct Read {
    std::uint64_t times = 0;
    bool says = false;
    Meaning meaning;    // of the last one that was read
    std::string other;  // the node it speaks of
  };

  // As a word of its own.
  static bool names(std::string_view text, std::string_view name) { return place_of(text, name) != std::string_view::npos; }
  static std::size_t place_of(std::string_view text, std::string_view name) {
    if (name.size() < 2) return std::string_view::npos;
    const auto letter = [&](std::size_t i) { return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '_'); };
    for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1))
      if ((at == 0 || !letter(at - 1)) && !letter(at + name.size())) return at;
    return std::string_view::npos;
  }

  // By any of its names.
  static bool names(std::string_view text, const NodeName& one) { return place_of(text, one) != std::string_view::npos; }
  static std::size_t place_of(std::string_view text, const NodeName& one) {
    std::size_t place = place_of(text, one.node);
    for (const std::string& name : one.also) place = std::min(place, place_of(text, name));
    return place;
  }

  // What a node calls itself ("local-member-id":"d2e0757e399d7e99"): others call it so when they miss it.
  void learn_ids() {
    for (const NodeLog& here : failure_.nodes) {
      const auto name = std::find_if(names_.begin(), names_.end(), [&](const NodeName& one) { return one.node == here.node; });
      if (name == names_.end()) continue;
      std::map<std::string, std::size_t> ids;
      for (std::size_t i = 0; i < std::min(here.messages.size(), kReadForIds); ++i)
        if (const std::string id = own_id(failure_.text(here.messages[i])); !id.empty()) ++ids[id];
      const auto most = std::max_element(ids.begin(), ids.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
      if (most != ids.end()) name->also.push_back(most->first);
    }
  }

  // The value of a key that begins with "local" and ends with "id", or what stands behind "I'm" or "my id"; "" when there is none that looks
  // like an id.
  static std::string own_id(std::string_view text) {
    const auto of_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_'; };
    for (std::size_t at = text.find("local"); at != std::string_view::npos; at = text.find("local", at + 1)) {
      std::size_t end = at;
      while (end < text.size() && of_word(text[end])) ++end;
      if (!lower_case(text.substr(at, end - at)).ends_with("id")) continue;
      std::size_t begin = end;
      while (begin < text.size() && begin < end + 4 && std::string_view("\": =").find(text[begin]) != std::string_view::npos) ++begin;
      end = begin;
      while (end < text.size() && of_word(text[end])) ++end;
      const std::string_view id = text.substr(begin, end - begin);
      if (id.size() >= kLeastId && std::any_of(id.begin(), id.end(), is_digit)) return std::string(id);
    }
    const std::string low = lower_case(text);
    for (const std::string_view self : {"i'm ", "i am ", "my id is ", "my id: ", "my node id is ", "my node id: "}) {
      const std::size_t at = low.find(self);
      if (at == std::string::npos || (at > 0 && of_word(low[at - 1]))) continue;
      const std::size_t begin = at + self.size();
      const std::size_t end = std::min(low.find_first_not_of("0123456789abcdef-", begin), low.size());
      if (end - begin >= kLeastHexId && (end == low.size() || !of_word(low[end])) && std::any_of(low.begin() + static_cast<std::ptrdiff_t>(begin), low.begin() + static_cast<std::ptrdiff_t>(end), is_digit))
        return std::string(text.substr(begin, end - begin));
    }
    return {};
  }

  // A message that names several other nodes, as lists of members do, speaks of the one that stands right behind the words that say what is
  // wrong ("suspected members: [n1]"); "" none does.
  bool several_named(std::size_t n, const Meaning& meaning, std::string_view text, std::string& behind) const {
    std::size_t named = 0, nearest = std::string_view::npos;
    const std::string_view after = text.substr(std::min(meaning.lost_at, text.size()));
    for (const NodeName& one : names_) {
      if (one.node == node(n).node) continue;
      named += names(text, one) ? 1 : 0;
      const std::size_t place = place_of(after, one);
      if (place >= nearest) continue;
      nearest = place;
      behind = one.node;
    }
    if (named < 2 || meaning.lost_at == 0) return false;
    // "n2 is down, asked n3": another clause tells of others, and only one stands before it.
    const std::string_view before = text.substr(0, text.size() - after.size());
    if (nearest != std::string_view::npos && after.substr(0, nearest).find_first_of(",;") == std::string_view::npos) return true;
    behind.clear();
    std::size_t first = 0;
    for (const NodeName& one : names_) {
      if (one.node == node(n).node) continue;
      if (!names(before, one)) continue;
      behind = ++first == 1 ? one.node : std::string();
    }
    return true;
  }

  // The node that a message of another one speaks of; "" none.
  std::string spoken_of(std::size_t n, const Meaning& meaning, std::string_view text) const {
    // Redis Sentinel names, behind this, the master of whom it speaks.
    const std::size_t master = text.find("+sdown") != std::string_view::npos || text.find("+odown") != std::string_view::npos ? text.find(" @ ") : std::string_view::npos;
    text = text.substr(0, master);
    // "FAIL message received from n1 about n2"
    if (const std::size_t about = text.find(" about "); about != std::string_view::npos && text.substr(0, about).find(" from ") != std::string_view::npos) text = text.substr(about);
    std::string_view address = std::string_view(meaning.peer).substr(0, meaning.peer.rfind(':'));
    if (master != std::string_view::npos && text.find(address) == std::string_view::npos) address = {};
    if (std::string behind; several_named(n, meaning, text, behind)) return behind;
    for (const NodeName& one : names_) {
      if (one.node == node(n).node) continue;
      if (!address.empty() && std::find(one.also.begin(), one.also.end(), address) != one.also.end()) return one.node;
    }
    for (const NodeName& one : names_) {
      if (one.node == node(n).node) continue;
      if (names(text, one)) return one.node;
    }
    return {};
  }

  // Lines without a time stand behind the message before, whoever wrote them: a program that ends says so on the same output, behind what it
  // always says. "" where runs without faults have lines behind messages of that kind as well.
  [[nodiscard]] std::string_view told_behind(const Message& message) const {
    if (normal_.nodes.empty() || with_lines_behind_.contains(message.kind)) return {};
    const std::string_view text = failure_.text(message);
    const std::size_t end = text.find('\n');
    return end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }

  void sayings(std::size_t n) {
    const NodeLog& here = node(n);
    std::unordered_map<TemplateId, Read> read;
    Calls calls;
    std::map<std::string, Said> peers, refusing, unnamed;
    std::map<std::pair<std::string, int>, Said> processes;
    std::map<std::pair<int, std::string>, Said> in_vain;  // operation, path
    Said longest;  // of the pauses that it tells of
    const Message* said_before = nullptr;  // told with the one before
    std::uint64_t read_behind = 0;
    for (const Message& message : here.messages) {
      if (&message == said_before) continue;
      std::optional<Calls::key_type> told;  // by the lines behind it
      if (const std::string_view behind = told_behind(message); !behind.empty() && ++read_behind <= kMostRead) {
        const Meaning alone = read_meaning(behind);
        told.emplace(alone.error, alone.path, alone.lost ? alone.peer : std::string());
        if (alone.error != 0 && !calls_that_fail(alone.error, alone.operation).empty()) put(calls[*told], message, alone, kPlain);
        if (alone.failed) put(in_vain[{static_cast<int>(alone.operation), alone.path}], message, alone, kPlain);
      }
      Read& known = read[message.kind];
      if (known.times != 0 && !known.says && known.meaning.stood_ns == 0) continue;  // messages of one kind say one thing; each stood as long as it says
      if (++known.times <= kMostRead) {               // of different paths and peers
        known.meaning = read_meaning(failure_.text(message));
        known.says = known.says || known.meaning.says_something();
        if (known.meaning.failed && take_error_behind(n, message, known.meaning)) said_before = &message + 1;
        known.other = known.says ? spoken_of(n, known.meaning, failure_.text(message)) : std::string();
      }
      const Meaning& meaning = known.meaning;
      if (!meaning.says_something()) continue;
      const auto observed = observed_[n].find(message.kind);
      const double weight = observed != observed_[n].end() ? observed->second->weight : normal_.nodes.empty() ? kPlain : kUsual;
      const std::string& other = known.other;
      // To a peer: a route that is a black hole, and no file's call.
      const bool of_peer = meaning.error == EINVAL && !meaning.peer.empty();
      const Calls::key_type key{meaning.error, meaning.path, meaning.lost ? meaning.peer : std::string()};
      if (meaning.error != 0 && !of_peer && told != key && !calls_that_fail(meaning.error, meaning.operation).empty())
        put(calls[key], message, meaning, weight * weight_of(message.level));
      if (meaning.failed) put(in_vain[{static_cast<int>(meaning.operation), meaning.path}], message, meaning, weight * weight_of(message.level));
      if ((meaning.lost || meaning.late) && !other.empty()) put((meaning.error == ECONNREFUSED ? refusing : peers)[other], message, meaning, weight);
      if ((meaning.lost || meaning.late) && meaning.error == 0 && other.empty() && meaning.peer.empty() && names_.size() == 2 && !here.node.empty())
        put(unnamed[names_[names_[0].node == here.node ? 1 : 0].node], message, meaning, weight * kNobodyNamed);
      if (meaning.stood_ns >= kLeastStood && (longest.first == nullptr || meaning.stood_ns > longest.meaning.stood_ns)) {
        longest = {};
        put(longest, message, meaning, weight);
      }
      // Helpers that are ended in an orderly stop exit as they like.
      const bool in_order = meaning.ended && meaning.signal == 0 && known.times <= kMostRead && stopped_in_order(n, 0, static_cast<std::size_t>(&message - here.messages.data()));
      if (meaning.ended && !meaning.panic && !in_order) put(processes[{other.empty() ? here.node : other, meaning.signal != 0 ? meaning.signal : 1000 + meaning.exit_code}], message, meaning, weight);
    }
    fold_paths(calls);
    for (const auto& [key, said] : calls) call_hint(n, said);
    for (const auto& [key, said] : in_vain) in_vain_hint(n, said);
    for (const auto& [other, said] : peers) silence_hint(n, other, said, kSpokenOf);
    for (const auto& [other, said] : unnamed)
      if (!peers.contains(other) && !refusing.contains(other)) silence_hint(n, other, said, kSpokenOf);
    for (const auto& [other, said] : refusing) {
      if (!peers.contains(other)) silence_hint(n, other, said, kRefusedByCut);
      if (std::any_of(hints_.begin(), hints_.end(), [&](const Hint& hint) { return hint.kind == Hint::Kind::end && hint.node == other; })) continue;
      Hint& hint = add(Hint::Kind::end, n, *said.first, kRefused * said.weight);
      hint.node = other;
      hint.signal = SIGKILL;
      hint.count = said.count;
      hint.told = true;
    }
    if (longest.first != nullptr && longest.first->ts_ns != kNoTime) {
      Hint& hint = add(Hint::Kind::stop, n, *longest.first, kSaysItStood * longest.weight);
      hint.until_ns = longest.first->ts_ns;
      hint.ts_ns = hint.until_ns - longest.meaning.stood_ns;
    }
    for (const auto& [key, said] : processes) {
      Hint& hint = add(Hint::Kind::end, n, *said.first, kPlain * said.weight);
      hint.node = key.first;
      hint.signal = said.meaning.signal;
      hint.exit_code = said.meaning.exit_code;
      hint.itself = said.meaning.signal == 0;
      hint.told = true;
      hint.helper = said.meaning.helper && key.first == here.node;
      hint.out_of_memory = said.meaning.out_of_memory;
      hint.count = said.count;
    }
  }

  // What runs without faults say, too, neither begins nor prolongs what only the failure says.
  static void put(Said& said, const Message& message, const Meaning& meaning, double weight) {
    if (weight * kOutweighs <= said.weight) return;
    if (weight >= said.weight * kOutweighs) said = {};
    if (said.first == nullptr) {
      said.first = &message;
      said.meaning = meaning;
    }
    said.last = &message;
    ++said.count;
    said.weight = std::max(said.weight, weight);
  }

  // The layers of a program tell of one failure in turn, each with as much of the path as it knows: "/srv/n1/data/db", "data/db".
  static void fold_paths(Calls& calls) {
    if (calls.size() > kMostFolded) return;
    for (auto it = calls.begin(); it != calls.end();) {
      const auto& [error, path, peer] = it->first;
      Said* whole = nullptr;
      std::size_t fits = 0;
      for (auto& [key, said] : calls)
        if (std::get<0>(key) == error && std::get<2>(key) == peer && !path.empty() && path[0] != '/' && std::get<1>(key).ends_with("/" + path)) {
          whole = &said;
          ++fits;
        }
      if (fits != 1 || (it->second.meaning.operation != whole->meaning.operation && it->second.meaning.operation != Operation::unknown)) {
        ++it;
        continue;
      }
      const Said& part = it->second;
      if (part.first < whole->first) whole->first = part.first;
      whole->last = std::max(whole->last, part.last);
      whole->count = std::max(whole->count, part.count);
      whole->weight = std::max(whole->weight, part.weight);
      it = calls.erase(it);
    }
  }

  // "Error: Is a directory." as a message of its own, right behind the one that says what failed.
  bool take_error_behind(std::size_t n, const Message& message, Meaning& meaning) const {
    const Message* next = &message + 1;
    if (next == node(n).messages.data() + end_of(node(n)) || next->stream != message.stream) return false;
    const std::string_view text = failure_.text(*next);
    if (text.size() > kErrorAlone) return false;
    const Meaning behind = read_meaning(text);
    if (behind.error == 0 || behind.operation != Operation::unknown || !behind.path.empty() || !behind.peer.empty()) return false;
    meaning.error = behind.error;
    meaning.failed = false;
    return true;
  }

  static double weight_of(Level level) { return level == Level::info || level == Level::debug || level == Level::trace ? kInPassing : 1; }

  // Whom all others miss, and who says nothing itself meanwhile, may have stood still as well as have been cut off: who is cut off mostly
  // misses the others.
  void stood_while_missed() {
    std::map<std::string, std::map<std::string, std::size_t>> missed;  // by whom: their hints
    for (std::size_t i = 0; i < hints_.size(); ++i)
      if (const Hint& hint = hints_[i]; hint.kind == Hint::Kind::silence && hint.weight >= kStood && hint.ts_ns != kNoTime) missed[hint.peer].emplace(hint.node, i);
    for (const auto& [name, by] : missed) {
      if (by.size() + 1 < names_.size()) continue;
      // Who stands still can be reached all the same.
      if (std::any_of(by.begin(), by.end(), [&](const auto& one) { return hints_[one.second].no_way; })) continue;
      const auto earlier = [&](const auto& a, const auto& b) { return hints_[a.second].ts_ns < hints_[b.second].ts_ns; };
      const Hint first = hints_[std::min_element(by.begin(), by.end(), earlier)->second];
      const auto here = std::find_if(failure_.nodes.begin(), failure_.nodes.end(), [&](const NodeLog& one) { return one.node == name; });
      if (here == failure_.nodes.end() || !timed(*here)) continue;
      const auto next = std::upper_bound(here->messages.begin(), here->messages.end(), first.ts_ns, [](std::int64_t ts, const Message& one) { return ts < one.ts_ns; });
      if (next == here->messages.begin() || next == here->messages.end()) continue;
      const std::int64_t since = std::max((next - 1)->ts_ns, first.ts_ns - kNoticed);
      if (next->ts_ns - since < kLeastStood) continue;
      const auto begins = [&](Hint& hint, std::int64_t earliest) {
        hint.ts_ns = std::max(earliest, first.ts_ns - kNoticedSoon);
        if (earliest < hint.ts_ns) hint.since_ns = earliest;
      };
      // Both sides' patience ran out together. Who had stood still would say so when it went on, at whatever moment that was.
      const bool at_once = next->ts_ns - first.ts_ns < kTogetherMissed;
      const bool misses_others = std::any_of(hints_.begin(), hints_.end(), [&](const Hint& hint) {
        return hint.kind == Hint::Kind::silence && hint.node == name && hint.ts_ns >= first.ts_ns - kNoticed &&
               (hint.ts_ns < next->ts_ns || (at_once && hint.ts_ns == next->ts_ns));
      });
      if (misses_others) continue;
      const double weight = kStoodOrCut * first.weight;
      const auto told = std::find_if(hints_.begin(), hints_.end(), [&](const Hint& hint) {
        return hint.node == name && ((hint.kind == Hint::Kind::end && hint.ts_ns < next->ts_ns) || (hint.kind == Hint::Kind::stop && hint.ts_ns <= first.ts_ns && hint.until_ns > first.ts_ns));
      });
      if (told != hints_.end()) {
        if (told->kind == Hint::Kind::stop) {
          told->weight = std::max(told->weight, weight);
          begins(*told, told->ts_ns);
        }
        continue;
      }
      Hint& hint = add(Hint::Kind::stop, first.log, node(first.log).messages[first.message], weight);
      hint.node = name;
      begins(hint, since);
      hint.until_ns = next->ts_ns;
      hint.words += fmt::format("; {} itself says nothing until {} later", name, format_duration((next->ts_ns - first.ts_ns) / 1'000'000 * 1'000'000));
    }
  }

  void silence_hint(std::size_t n, const std::string& other, const Said& said, double weight) {
    Hint& hint = add(Hint::Kind::silence, n, *said.first, weight * said.weight);
    hint.no_way = said.meaning.error == EINVAL || said.meaning.error == ENETUNREACH || said.meaning.error == EHOSTUNREACH;
    hint.peer = other;
    hint.closed = said.meaning.closed;
    hint.count = said.count;
    hint.until_ns = said.last->ts_ns;
  }

  // The errors that such calls return in practice.
  void in_vain_hint(std::size_t n, const Said& said) {
    const std::vector<std::string_view> tried = calls_of_operation(said.meaning.operation);
    if (tried.empty()) return;
    double weight = kFailedSomehow * said.weight;
    const std::vector<int> errors = errors_of(tried.front());
    for (std::size_t i = 0; i < std::min<std::size_t>(errors.size(), 2); ++i, weight *= kNextError) {
      Hint& hint = add(Hint::Kind::call, n, *said.first, weight);
      hint.error = errors[i];
      hint.syscalls = tried;
      hint.path = said.meaning.path;
      hint.count = said.count;
      hint.until_ns = said.last->ts_ns;
    }
  }

  void call_hint(std::size_t n, const Said& said) {
    Hint& hint = add(Hint::Kind::call, n, *said.first, kPlain * said.weight);
    hint.error = said.meaning.error;
    hint.syscalls = calls_that_fail(said.meaning.error, said.meaning.operation, said.meaning.exact);
    if (const auto exact = std::find(hint.syscalls.begin(), hint.syscalls.end(), said.meaning.call); exact != hint.syscalls.end())
      std::rotate(hint.syscalls.begin(), exact, exact + 1);
    hint.path = said.meaning.path;
    hint.peer = said.meaning.lost ? said.meaning.peer : std::string();
    hint.count = said.count;
    hint.until_ns = said.last->ts_ns;
  }

  // --- exceptions: stack traces of kinds of messages that the run without faults has not

  struct Traced {
    const Message* first = nullptr;
    const Message* last = nullptr;
    std::uint64_t count = 0;
    StackTrace trace;
    double weight = 0;
  };

  // Where the root cause came from. What is thrown in one place, and comes to the log in several ways, is one.
  static std::string place_of(const StackTrace& trace) {
    const Thrown& root = trace.back();
    std::string key = root.class_name;
    for (std::size_t i = 0; i < std::min<std::size_t>(root.frames.size(), 12); ++i)
      key += fmt::format(" {}.{}:{}", root.frames[i].class_name, root.frames[i].method, root.frames[i].line);
    return key;
  }

  static double weight_of(const Thrown& root) {
    const Meaning meaning = read_meaning(root.class_name + ": " + root.message);
    if (meaning.error != 0 && !calls_that_fail(meaning.error, meaning.operation).empty()) return kThrownOfCall;
    switch (kind_of(root.class_name)) {
      case ThrownKind::outside: return kThrown;
      case ThrownKind::network: return kThrownByPeers;
      case ThrownKind::program: return kThrownByProgram;
      case ThrownKind::stopping: return kThrownInStopping;
    }
    return kThrown;
  }

  void throwings(std::size_t n) {
    const NodeLog& here = node(n);
    struct OfKind {
      std::uint64_t read = 0;
      std::vector<std::size_t> last;  // places of the one read last
    };
    std::unordered_map<TemplateId, OfKind> kinds;
    std::map<std::string, std::size_t> known;
    std::vector<Traced> all;
    std::size_t left = kMostTracesRead;
    for (const Message& message : here.messages) {
      const auto observed = observed_[n].find(message.kind);
      if (observed == observed_[n].end() && !normal_.nodes.empty() && told_behind(message).empty()) continue;
      OfKind& kind = kinds[message.kind];
      if (kind.read < kTracesOfKind && left > 0) {
        const std::string_view text = failure_.text(message);
        if (text.find('\n') == std::string_view::npos) continue;
        ++kind.read;
        --left;
        kind.last.clear();
        for (StackTrace& trace : read_traces(text)) {
          const auto [at, fresh] = known.try_emplace(place_of(trace), all.size());
          if (fresh && all.size() >= kMostThrown) {
            known.erase(at);
            continue;
          }
          kind.last.push_back(at->second);
          if (!fresh) continue;
          Traced& one = all.emplace_back();
          one.trace = std::move(trace);
          one.weight = weight_of(one.trace.back());
        }
      }
      for (const std::size_t i : kind.last) {
        Traced& one = all[i];
        if (one.first == nullptr) {
          one.first = &message;
          one.weight *= observed != observed_[n].end() ? observed->second->weight : 1;
        }
        one.last = &message;
        ++one.count;
      }
    }
    for (Traced& one : all) {
      Hint& hint = add(Hint::Kind::thrown, n, *one.first, one.weight);
      hint.count = one.count;
      hint.until_ns = one.last->ts_ns;
      hint.trace = std::move(one.trace);
    }
  }

  const Logs& failure_;
  const Logs& normal_;
  const Difference& difference_;
  std::vector<NodeName> names_;
  std::vector<std::map<TemplateId, const Observed*>> observed_;
  std::set<TemplateId> with_lines_behind_;  // kinds of messages of runs without faults
  std::int64_t last_ = kNoTime, normal_last_ = kNoTime;
  std::vector<Hint> hints_;
  std::vector<std::size_t> silences_;  // hints that nothing but a silence speaks for
};


// No half characters at its end.
std::string cut_to(std::string_view text, std::size_t most) {
  std::string cut(text.substr(0, most));
  if (cut.size() == text.size()) return cut;
  while (!cut.empty() && (static_cast<unsigned char>(cut.back()) & 0xc0) == 0x80) cut.pop_back();
  if (!cut.empty() && static_cast<unsigned char>(cut.back()) >= 0xc0) cut.pop_back();
  return cut + "...";
}

std::string_view exception_of(const std::vector<std::string_view>& lines) {
  const auto last = std::find_if(lines.rbegin(), lines.rend(), [](std::string_view line) { return names_exception(line); });
  return last != lines.rend() ? *last : lines.back();
}

// The line that says what happened: of Python's stack traces the last one; behind a first line that leaves it to the next one, or
// that an exception follows, that, too.
std::string told_in(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
    if (!line.empty()) lines.push_back(line);
    at = end + 1;
  }
  if (lines.empty()) return {};
  if (lines.size() == 1) return cut_to(lines[0], kQuoted);
  const bool python = lines[0].starts_with("Traceback (most recent call last)");
  if (python) return cut_to(exception_of(lines), kQuoted);
  for (std::size_t i = 1; i < lines.size(); ++i)
    if (lines[i].starts_with("Traceback (most recent call last)")) return cut_to(lines[0], kQuoted) + " / " + cut_to(exception_of(lines), kQuoted);
  // What was written without a time of its own ("open /x: permission denied" before it ends) came to the message before.
  if (read_meaning(lines[0]).error == 0)
    for (std::size_t i = 1; i < std::min(lines.size(), kLooked); ++i)
      if (!lines[i].starts_with("at ") && read_meaning(lines[i]).error != 0) return cut_to(lines[0], kQuoted) + " / " + cut_to(lines[i], kQuoted);
  if (lines[0].ends_with(':') || names_exception(lines[1])) return cut_to(lines[0], kQuoted) + " / " + cut_to(lines[1], kQuoted);
  return cut_to(lines[0], kQuoted);
}

}  // namespace

std::string quote(const Logs& logs, std::size_t node, const Message& message) {
  const std::string& name = logs.nodes[node].node;
  return fmt::format("{}:{}{}: '{}'", logs.sources[message.source].path.filename().string(), message.line, name.empty() ? "" : " of " + name,
                     told_in(logs.text(message)));
}

std::string key_of(const Logs& failure, const Observed& observed) {
  return fmt::format("{} says {}", failure.nodes[observed.node].name, observed.kind);
}

std::vector<Hint> find_hints(const Logs& failure, const Logs& normal, const Difference& difference,
                             const std::vector<NodeName>& nodes) {
  return Finder(failure, normal, difference, nodes).find();
}

Judge::Judge(const Evidence& evidence, Templates& kinds, ReadOptions options) : evidence_(evidence), kinds_(kinds), options_(std::move(options)) {}

std::set<std::string> Judge::shown(const std::vector<Input>& run) {
  std::lock_guard lock(mutex_);
  const Result<Logs> logs = read_logs(run, options_, kinds_);
  std::set<std::string> keys;
  if (!logs) return keys;
  for (const Observed& one : evidence_.difference.observed) {
    std::uint64_t count = 0;
    for (const NodeLog& node : logs->nodes)  // roles move from node to node: whoever says it
      if (one.kind < node.counts.size()) count = std::max(count, node.counts[one.kind]);
    if (count > one.normal) keys.insert(key_of(evidence_.failure, one));
  }
  return keys;
}

std::vector<Beside> Judge::beside(const std::vector<Input>& run, const Watch* watch) {
  std::lock_guard lock(mutex_);
  Result<Logs> logs = read_logs(run, options_, kinds_);
  if (!logs) return {};
  if (watch != nullptr) watch->apply(*logs);
  return logs::beside(evidence_.failure, *logs, kinds_);
}

}  // namespace rose::logs
