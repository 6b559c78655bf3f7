#include "schedule/kinds.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "base/units.h"

namespace rose::schedule {
namespace {

using toml::literal;

constexpr std::int64_t kLeastDelay = 1'000;  // in ns; shorter delays cannot be measured
constexpr std::int64_t kMostDelay = 600 * kSecond;
constexpr std::int64_t kMostPackets = 1'000'000'000;
constexpr double kLeastDrift = 0.01;
constexpr double kMostDrift = 100;
constexpr std::size_t kMostPayload = 64;  // the size of the field in bpf/inject.h
constexpr std::uint64_t kLeastRate = 1'000;
constexpr std::uint64_t kMostRate = 100'000'000'000;

struct RateUnit {
  std::string_view name;
  double bits;
};
constexpr RateUnit kRateUnits[] = {{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}};

// Parses a rate: "10mbit" gives 10'000'000. 0 if the text is no rate.
std::uint64_t parse_rate(std::string_view text) {
  for (const RateUnit& unit : kRateUnits) {
    if (!text.ends_with(unit.name)) continue;
    const std::string_view number = text.substr(0, text.size() - unit.name.size());
    double value = 0;
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), value, std::chars_format::fixed);
    if (error != std::errc{} || end != number.data() + number.size() || !(value > 0) || value > 1e12) return 0;
    return static_cast<std::uint64_t>(std::llround(value * unit.bits));
  }
  return 0;
}

std::string rate_text(std::uint64_t rate) {
  for (const RateUnit& unit : kRateUnits)
    if (const auto bits = static_cast<std::uint64_t>(unit.bits); rate % bits == 0)
      return fmt::format("{}{}", rate / bits, unit.name);
  return {};
}

bool is_plain(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::string hex_text(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

// Parses pairs of hexadecimal digits: "00 ff" gives two bytes. Empty if the text is anything else.
std::string parse_hex(std::string_view text) {
  std::string bytes;
  std::string digits;
  for (const char c : text)
    if (c != ' ') digits += c;
  if (digits.size() % 2 != 0) return {};
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(digits.data() + i, digits.data() + i + 2, value, 16);
    if (error != std::errc{} || end != digits.data() + i + 2) return {};
    bytes += static_cast<char>(value);
  }
  return bytes;
}

void read_payload(toml::Table& table, std::string& payload) {
  const toml::Value* value = table.get("payload");
  if (value == nullptr) return;
  std::string bytes;
  if (value->type == toml::Type::table) {
    auto hex = table.table("payload");
    std::string text;
    hex->require("hex", "such as { hex = \"00 00 00 07\" }");
    if (hex->string("hex", text)) {
      bytes = parse_hex(text);
      if (bytes.empty())
        hex->wrong("hex", fmt::format("{} is not bytes in hexadecimal such as \"00 ff\"", toml::quoted(text)));
    }
    hex->finish();
  } else {
    table.string("payload", bytes);
  }
  if (bytes.size() > kMostPayload)
    table.wrong("payload", fmt::format("it is {} bytes long, up to {} are accepted", bytes.size(), kMostPayload));
  else payload = std::move(bytes);
}

// Reads a delay of at least a microsecond.
void read_delay(toml::Table& table, std::string_view key, std::int64_t& ns) {
  table.duration(key, ns, kLeastDelay, kMostDelay);
}

std::string percent(double share) { return fmt::format("{:.4g}%", share * 100); }

}  // namespace

std::string duration_text(std::int64_t ns) {
  // format_duration rounds to milliseconds, so use its text only if it is exact.
  std::string text = format_duration(ns);
  const auto back = parse_duration_ns(text);
  return back && *back == ns ? text : fmt::format("{}ms", static_cast<double>(ns) / 1e6);
}

std::string enumerate(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

void read_times(toml::Table& table, std::int64_t& times, std::int64_t most) {
  const toml::Value* value = table.get("times");
  if (value == nullptr) return;
  if (value->type == toml::Type::string && value->text == "forever") times = -1;
  else if (value->type == toml::Type::integer && value->integer >= 1 && value->integer <= most) times = value->integer;
  else
    table.wrong("times",
                fmt::format("{} was found, a number from 1 up or \"forever\" is needed", toml::quoted(*value)));
}

void read_place(toml::Table& table, std::optional<std::uint64_t>& offset, std::optional<std::uint64_t>& line) {
  std::uint64_t number = 0;
  if (table.integer("offset", number, 0, std::int64_t{1} << 30)) offset = number;
  if (table.integer("line", number, 1, 1'000'000)) line = number;
  if (offset && line) table.wrong("line", "'offset' and 'line' were both found, at most one is accepted");
}

void read_bad_link(toml::Table& table, Fault& fault) {
  BadLink& link = fault.link;
  read_delay(table, "delay", link.delay_ns);
  read_delay(table, "jitter", link.jitter_ns);
  table.real("loss", link.loss, 0, 1);
  table.real("duplicate", link.duplicate, 0, 1);
  table.real("reorder", link.reorder, 0, 1);
  table.real("corrupt", link.corrupt, 0, 1);
  std::string rate;
  if (table.string("rate", rate)) {
    link.rate = parse_rate(rate);
    if (link.rate < kLeastRate || link.rate > kMostRate)
      table.wrong(
          "rate",
          fmt::format("{} is not a rate such as \"10mbit\" (units bit, kbit, mbit, gbit; 1kbit to 100gbit a second)",
                      toml::quoted(rate)));
  }
  read_payload(table, link.payload);
  const bool numbered = table.integer("count", fault.count, 1, kMostPackets);
  fault.times = numbered ? 1 : -1;
  read_times(table, fault.times, kMostPackets);
  std::size_t unit = 0;
  if (table.one_of("counts", {"packets", "connections"}, unit)) link.connections = unit == 1;
  table.integer("seed", fault.seed, 0, std::numeric_limits<std::int64_t>::max());

  if (link.jitter_ns > link.delay_ns && table.has("jitter"))
    table.wrong("jitter", table.has("delay")
                              ? "it is longer than 'delay', but packets cannot arrive before they are sent"
                              : "'jitter' requires 'delay', which was not found");
  if (table.has("reorder") && !table.has("delay"))
    table.wrong("reorder", "'reorder' requires 'delay', which was not found",
                "that share of the packets overtakes those that are delayed");
  if (table.has("counts") && !table.has("count") && !table.has("times"))
    table.wrong("counts", "'counts' requires 'count', which was not found");
  bool any = false;
  for (const std::string_view key : {"delay", "loss", "duplicate", "corrupt", "rate"}) any = any || table.has(key);
  if (!any)
    table.problems().add_missing(table.place(), "fault: needs one of 'delay', 'loss', 'duplicate', 'corrupt', 'rate'",
                                 "state what the link does: delay = \"50ms\", loss = 0.1 or rate = \"1mbit\"");
}

void add_bad_link(Parts& parts, const Fault& fault) {
  const BadLink& link = fault.link;
  if (link.delay_ns != 0) parts.emplace_back("delay", literal(duration_text(link.delay_ns)));
  if (link.jitter_ns != 0) parts.emplace_back("jitter", literal(duration_text(link.jitter_ns)));
  const auto share = [&](const char* key, double value) {
    if (value != 0) parts.emplace_back(key, fmt::format("{}", value));
  };
  share("loss", link.loss);
  share("duplicate", link.duplicate);
  share("reorder", link.reorder);
  share("corrupt", link.corrupt);
  if (link.rate != 0) parts.emplace_back("rate", literal(rate_text(link.rate)));
  if (!link.payload.empty())
    parts.emplace_back("payload", is_plain(link.payload)
                                      ? literal(link.payload)
                                      : fmt::format("{{ hex = {} }}", literal(hex_text(link.payload))));
  const bool numbered = fault.count != 1 || fault.times == 1;
  if (numbered) parts.emplace_back("count", std::to_string(fault.count));
  if (fault.times != (numbered ? 1 : -1))
    parts.emplace_back("times", fault.times < 0 ? "\"forever\"" : std::to_string(fault.times));
  if (link.connections) parts.emplace_back("counts", "\"connections\"");
  if (fault.seed != 1) parts.emplace_back("seed", std::to_string(fault.seed));
}

void read_clock(toml::Table& table, Fault& fault) {
  ClockChange& clock = fault.clock;
  std::string shift;
  if (table.string("shift", shift)) {
    const bool back = shift.starts_with('-');
    const auto by = parse_duration_ns(std::string_view(shift).substr(back || shift.starts_with('+') ? 1 : 0));
    if (!by || *by == 0)
      table.wrong("shift",
                  fmt::format("{} is not a shift such as \"+1h\" or \"-1.5s\" (units ms, s, m, h; up to 10000h)",
                              toml::quoted(shift)));
    else clock.shift_ns = back ? -*by : *by;
  }
  if (table.real("drift", clock.drift, 0, kMostDrift) && (clock.drift < kLeastDrift || clock.drift == 1))
    table.wrong("drift", "a speed of 1 has no effect, and extreme ones do not work: 0.01 to 100 but not 1 is accepted",
                "1.05 means five percent too fast");
  table.boolean("freeze", clock.freeze);
  std::vector<std::string> names;
  if (table.strings("clocks", names)) {
    const toml::Value& list = *table.get("clocks");
    clock.realtime = clock.monotonic = false;
    for (std::size_t i = 0; i < names.size(); ++i) {
      bool* which = names[i] == "realtime" ? &clock.realtime : names[i] == "monotonic" ? &clock.monotonic : nullptr;
      if (which == nullptr)
        table.problems().add(list.items[i].place, fmt::format("{}: {} is not one of \"realtime\", \"monotonic\"",
                                                              table.path("clocks"), toml::quoted(names[i])));
      else if (*which)
        table.problems().add(list.items[i].place, fmt::format("{}: '{}' occurs twice", table.path("clocks"), names[i]));
      else *which = true;
    }
  }
  if (table.has("freeze") && table.has("drift"))
    table.wrong("drift", "'freeze' and 'drift' were both found, at most one is accepted");
  if (!clock.freeze && !table.has("shift") && !table.has("drift"))
    table.problems().add_missing(table.place(), "fault: needs one of 'shift', 'drift', 'freeze'",
                                 "state what the clock does: shift = \"+1h\", drift = 1.05 or freeze = true");
}

void add_clock(Parts& parts, const Fault& fault) {
  const ClockChange& clock = fault.clock;
  if (clock.shift_ns != 0)
    parts.emplace_back("shift", literal((clock.shift_ns < 0 ? "-" : "+") + duration_text(std::abs(clock.shift_ns))));
  if (clock.drift != 1) parts.emplace_back("drift", fmt::format("{}", clock.drift));
  if (clock.freeze) parts.emplace_back("freeze", "true");
  if (clock.monotonic)
    parts.emplace_back("clocks", clock.realtime ? "[\"realtime\", \"monotonic\"]" : "[\"monotonic\"]");
}

std::string clock_words(const Fault& fault, const std::string& node) {
  const ClockChange& clock = fault.clock;
  const char* which = !clock.monotonic ? "clock"
                      : clock.realtime ? "clocks, the monotonic one too,"
                                       : "monotonic clock";
  std::string text;
  if (clock.shift_ns != 0)
    text = fmt::format("set the {} of {} {} by {}", which, node, clock.shift_ns > 0 ? "forward" : "back",
                       duration_text(std::abs(clock.shift_ns)));
  if (clock.drift != 1)
    text += text.empty() ? fmt::format("let the {} of {} go {:.6g} times as fast", which, node, clock.drift)
                         : fmt::format(" and let it go {:.6g} times as fast", clock.drift);
  if (clock.freeze) text += text.empty() ? fmt::format("stop the {} of {}", which, node) : std::string(" and stop it");
  return text;
}

std::string bad_link_words(const Fault& fault) {
  const BadLink& link = fault.link;
  std::vector<std::string> what;
  if (link.delay_ns != 0) {
    std::string text = fmt::format("delay packets by {}", duration_text(link.delay_ns));
    if (link.jitter_ns != 0) text += fmt::format(" ± {}", duration_text(link.jitter_ns));
    if (link.reorder != 0) text += fmt::format(" but {} of them, which overtake the others,", percent(link.reorder));
    what.push_back(std::move(text));
  }
  const auto share = [&](const char* verb, double value) {
    if (value == 1) what.push_back(fmt::format("{} packets", verb));
    else if (value != 0) what.push_back(fmt::format("{} {} of the packets", verb, percent(value)));
  };
  share("lose", link.loss);
  share("duplicate", link.duplicate);
  share("corrupt", link.corrupt);
  if (link.rate != 0) what.push_back(fmt::format("let no more than {} a second pass", rate_text(link.rate)));
  std::string text = enumerate(what);
  const char* unit = link.connections ? "connection" : "packet";
  std::vector<std::string> which;
  if (fault.times == 1) which.push_back(fmt::format("the {} {}", ordinal_text(fault.count), unit));
  else if (fault.times > 1)
    which.push_back(fmt::format("{} {}s from the {} on", fault.times, unit, ordinal_text(fault.count)));
  else if (fault.count > 1) which.push_back(fmt::format("{}s from the {} on", unit, ordinal_text(fault.count)));
  if (!link.payload.empty())
    which.push_back(fmt::format("packets that hold {}", is_plain(link.payload) ? fmt::format("\"{}\"", link.payload)
                                                                               : "bytes " + hex_text(link.payload)));
  if (!which.empty()) text += fmt::format(" (only {})", enumerate(which));
  return text;
}

}  // namespace rose::schedule
