#include "draft/addresses.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/address.h"
#include "base/ascii.h"

namespace rose::draft {
namespace {

std::optional<std::uint16_t> port_number(std::string_view text) {
  if (text.empty() || text.size() > 5 || !std::all_of(text.begin(), text.end(), is_digit)) return std::nullopt;
  const int value = std::stoi(std::string(text));
  return value >= 1 && value <= 65535 ? std::optional(static_cast<std::uint16_t>(value)) : std::nullopt;
}

std::string canonical(std::string_view address) {
  const auto parsed = parse_address(address);
  return parsed ? parsed->text() : std::string(address);
}

bool is_wildcard(std::string_view address) {
  const std::string text = canonical(address);
  return text == "0.0.0.0" || text == "::";
}

bool is_loopback_address(std::string_view address) {
  const auto range = parse_address_range(address);
  return range && range->is_loopback();
}

// True for options and variables that name another host.
bool names_peer(std::string_view option) {
  for (const std::string_view word :
       {"peer", "join", "master", "replica", "slave", "primary", "leader", "seed", "contact", "upstream", "server",
        "connect", "cluster", "zookeeper", "broker", "remote", "backend", "db"})
    if (option.find(word) != std::string_view::npos) return true;
  return false;
}

// The end of an address or name that begins at `i`, or 0 if none does. `host` is set to what was found.
std::size_t address_at(std::string_view text, std::size_t i, const std::vector<std::string>& names, std::string& host) {
  if (text[i] == '[') {
    const std::size_t close = text.find(']', i);
    if (close == std::string_view::npos || close - i > 64) return 0;
    host = std::string(text.substr(i + 1, close - i - 1));
    return host.find(':') != std::string::npos && parse_address(host) ? close + 1 : 0;
  }
  std::size_t end = i;
  while (end < text.size() && is_name_char(text[end])) ++end;
  host = std::string(text.substr(i, end - i));
  if (std::count(host.begin(), host.end(), '.') == 3 && parse_address(host)) {
    // "10.0.0.0/8" is a range, not an address.
    return end < text.size() && text[end] == '/' && end + 1 < text.size() && text[end + 1] >= '0' &&
                   text[end + 1] <= '9'
               ? 0
               : end;
  }
  return std::find(names.begin(), names.end(), host) != names.end() ? end : 0;
}

}  // namespace

std::vector<FoundAddress> find_addresses(std::string_view text, const std::vector<std::string>& names) {
  std::vector<FoundAddress> found;
  if (text.find(':') != std::string_view::npos && parse_address(text)) {  // "::1" without brackets
    found.push_back({0, text.size(), std::string(text), std::nullopt});
    return found;
  }
  for (std::size_t i = 0; i < text.size();) {
    const bool starts = text[i] == '[' || (is_name_char(text[i]) && text[i] != '-' && text[i] != '.');
    const bool path = i > 0 && text[i - 1] == '/' && !(i > 1 && text[i - 2] == '/');
    std::string host;
    const std::size_t end = starts && !path ? address_at(text, i, names, host) : 0;
    if (end == 0) {
      // Skip the rest of this name.
      if (is_name_char(text[i]))
        while (i < text.size() && is_name_char(text[i])) ++i;
      else ++i;
      continue;
    }
    FoundAddress address{i, end, std::move(host), std::nullopt};
    std::size_t stop = end;
    if (end < text.size() && text[end] == ':') {
      stop = end + 1;
      while (stop < text.size() && text[stop] >= '0' && text[stop] <= '9') ++stop;
      address.port = port_number(text.substr(end + 1, stop - end - 1));
    } else if (end < text.size() && text[end] == ' ') {  // "127.0.0.1 7001"
      std::size_t digits = std::min(text.find_first_not_of(' ', end), text.size());
      stop = digits;
      while (stop < text.size() && text[stop] >= '0' && text[stop] <= '9') ++stop;
      if (stop == text.size() || text[stop] == ' ' || text[stop] == '\n')
        address.port = port_number(text.substr(digits, stop - digits));
      stop = end;
    }
    found.push_back(std::move(address));
    i = std::max(stop, end);
  }
  return found;
}

bool AddressBook::local(std::string_view address, const Seen& from, const Seen& node) const {
  const auto& names = host_->names;
  if (is_loopback_address(address) || std::find(names.begin(), names.end(), address) != names.end())
    return node.network == from.network;
  const std::string text = canonical(address);
  return std::find(node.addresses.begin(), node.addresses.end(), text) != node.addresses.end();
}

std::optional<std::size_t> AddressBook::owner(std::size_t from, std::string_view address, std::uint16_t port) const {
  const std::string text = canonical(address);
  std::vector<std::size_t> fit;
  std::vector<std::size_t> exact;  // bound to exactly this address
  for (std::size_t i = 0; i < seen_->size(); ++i) {
    const Seen& node = (*seen_)[i];
    if (!local(address, (*seen_)[from], node)) continue;
    bool any = false;
    bool same = false;
    for (const auto* listens : {&node.tcp, &node.udp})
      for (const Listen& listen : *listens) {
        if (listen.port != port) continue;
        any = true;
        same = same || listen.address == text;
      }
    if (any) fit.push_back(i);
    if (same) exact.push_back(i);
  }
  if (exact.size() == 1) return exact.front();
  return fit.size() == 1 ? std::optional(fit.front()) : std::nullopt;
}

std::string AddressBook::placeholder(std::size_t from, std::size_t node) const {
  return from == node && !by_name_ ? "${ip}" : "${ip_" + (*variables_)[node] + "}";
}

// For an address without a port: the only node that has it, or the node `from` if it listens at that address.
std::optional<std::size_t> AddressBook::bare_owner(std::size_t from, const std::string& option,
                                                   const std::string& host) const {
  const Seen& self = (*seen_)[from];
  std::vector<std::size_t> fit;
  for (std::size_t i = 0; i < seen_->size(); ++i)
    if (local(host, self, (*seen_)[i])) fit.push_back(i);
  if (fit.size() == 1 && fit.front() != from && !is_loopback_address(host)) return fit.front();
  return !names_peer(option) && listens_there(from, host) ? std::optional(from) : std::nullopt;
}

bool AddressBook::listens_there(std::size_t node, const std::string& host) const {
  const Seen& self = (*seen_)[node];
  const std::string text = canonical(host);
  const bool name = !parse_address(host);
  const auto here = [&](const Listen& listen) {
    return listen.address == text || (name && is_loopback_address(listen.address));
  };
  return std::any_of(self.tcp.begin(), self.tcp.end(), here) || std::any_of(self.udp.begin(), self.udp.end(), here);
}

std::string AddressBook::rewrite_text(std::size_t from, const std::string& option, const std::string& text,
                                      std::optional<std::uint16_t> next_port, Rewritten& result) const {
  std::string out;
  std::size_t at = 0;
  for (const FoundAddress& found : find_addresses(text, host_->names)) {
    if (is_wildcard(found.host)) continue;
    const auto port = found.port ? found.port : found.end == text.size() ? next_port : std::nullopt;
    const auto whose = port ? owner(from, found.host, *port) : bare_owner(from, option, found.host);
    const std::string spelled = text.substr(found.begin, found.end - found.begin);
    const std::string shown = port ? fmt::format("{}:{}", spelled, *port) : spelled;
    const std::string of =
        option.empty() ? ""
                       : fmt::format(" of {}", option.back() == '=' ? option.substr(0, option.size() - 1) : option);
    if (whose) {
      out += text.substr(at, found.begin - at) + placeholder(from, *whose);
      at = found.end;
      result.own = result.own || *whose == from;
      std::string change = fmt::format("{}: {} ({})", shown, placeholder(from, *whose), (*names_)[*whose]);
      if (std::find(result.changes.begin(), result.changes.end(), change) == result.changes.end())
        result.changes.push_back(std::move(change));
    } else if (std::any_of(seen_->begin(), seen_->end(),
                           [&](const Seen& node) { return local(found.host, (*seen_)[from], node); })) {
      result.doubts.push_back(
          port ? fmt::format("{}{} was kept: none of these nodes listens at that port, or several do", shown, of)
               : fmt::format("{}{} was kept: it may be an address of this node or of another", shown, of));
    } else if (port || (found.begin == 0 && found.end == text.size())) {
      result.doubts.push_back(fmt::format(
          "{}{} was kept: it is not one of these nodes and cannot be reached from their network", shown, of));
    }
  }
  return out + text.substr(at);
}

void AddressBook::rewrite(std::size_t from, Words& words, Rewritten& result) const {
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i].done) continue;
    const Split split = split_word(words[i].text);
    const auto next = i + 1 < words.size() ? port_number(words[i + 1].text) : std::nullopt;
    const std::string value = rewrite_text(from, words.option_of(i), std::string(split.value), next, result);
    if (value != split.value) words.set(i, std::string(split.option) + value, false);
  }
}

std::string AddressBook::rewrite(std::size_t from, std::string_view name, const std::string& value,
                                 Rewritten& result) const {
  return rewrite_text(from, lower_case(name), value, std::nullopt, result);
}

}  // namespace rose::draft
