#include "logs/hint/mentions.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <map>
#include <optional>
#include <set>

#include "base/ascii.h"
#include "logs/found.h"

namespace rose::logs {
namespace {

// At most this many messages from the beginning of a node's log are searched for the node's own ids.
constexpr std::size_t kMessagesForIds = 5'000;
constexpr std::size_t kLeastId = 6;          // characters of an id; shorter ids are ambiguous
constexpr std::size_t kLeastHexId = 8;       // characters of an id of hexadecimal digits only
constexpr std::size_t kLongestLastPart = 6;  // characters of the last part of a name; a longer part is a word
// Words that precede the number of a node.
constexpr std::array kNumberedNouns =
    std::to_array<std::string_view>({"node", "host", "server", "broker", "peer", "member", "replica", "voter"});
// Prepositions after which a node is not the object of the verb.
constexpr std::array kPrepositions = std::to_array<std::string_view>({" to ", " from ", " by ", " with ", " for "});

bool is_address(std::string_view name) {
  return std::count(name.begin(), name.end(), '.') == 3 && name.find_first_not_of("0123456789.") == name.npos;
}

// The offset at which the name occurs as a whole word; npos if it does not occur. A letter may precede an address
// ("S10.0.0.1:11111"), unless it is the "v" of a version.
std::size_t place_of(std::string_view text, std::string_view name) {
  if (name.size() < 2) return std::string_view::npos;
  const bool address = is_address(name);
  const auto letter = [&](std::size_t i) {
    return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '_');
  };
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1))
    if ((at == 0 || !letter(at - 1) || (address && is_alpha(text[at - 1]) && lower_case(text[at - 1]) != 'v')) &&
        !letter(at + name.size()))
      return at;
  return std::string_view::npos;
}

// The number at which the name of a node ends: 24 for "virt24" and "virt-24"; "" if there is none.
std::string_view last_number(std::string_view name) {
  const std::size_t letters = name.find_last_not_of("0123456789");
  return letters == name.npos ? std::string_view() : name.substr(letters + 1);
}

// The offset at which the name occurs with another separator: "osd.1", "osd-1" and "osd 1" mean osd1; "mon.f" and "mon
// \"f\"" mean mon-f. npos if it does not occur.
std::size_t place_in_parts(std::string_view text, std::string_view name) {
  std::size_t first = name.size() - last_number(name).size();
  std::size_t letters_end = first;
  if (first == name.size()) {              // the last part is not a number, but has a separator before it
    first = name.find_last_of("-_.") + 1;  // npos + 1 is 0: there is no separator
    letters_end = first - (first > 0);
  } else if (first > 0 && !is_alpha(name[first - 1])) {
    --letters_end;
  }
  const std::string_view letters = name.substr(0, letters_end), last = name.substr(first);
  if (letters_end < 2 || last.empty() || last.size() > kLongestLastPart || !is_alpha(letters.back()))
    return std::string_view::npos;
  for (std::size_t at = text.find(letters); at != std::string_view::npos; at = text.find(letters, at + 1)) {
    const std::size_t sign = at + letters.size();
    if (at > 0 && is_name_char(text[at - 1])) continue;
    if (sign >= text.size() || std::string_view(".-_ #").find(text[sign]) == std::string_view::npos) continue;
    std::string_view following = text.substr(sign + 1);
    if (text[sign] == ' ' && (following.starts_with('"') || following.starts_with('\''))) following.remove_prefix(1);
    // After a blank, the last part must be a number or in quotes.
    else if (text[sign] == ' ' && !is_digit(last[0])) continue;
    if (following.starts_with(last) &&
        (following.size() == last.size() || !is_name_char(following[last.size()]) || following[last.size()] == '.'))
      return at;
  }
  return std::string_view::npos;
}

// The first offset at which any of the node's names occurs.
std::size_t place_of(std::string_view text, const NodeName& node_name) {
  std::size_t place = std::min(place_of(text, node_name.node), place_in_parts(text, node_name.node));
  for (const std::string& name : node_name.also) place = std::min(place, place_of(text, name));
  return place;
}

bool is_named(std::string_view text, const NodeName& node_name) {
  return place_of(text, node_name) != std::string_view::npos;
}

// The id that the node states as its own: the value of a key that begins with "local" and ends with "id", or the id
// after "I'm" or "my id is". "" if there is none.
std::string own_id(std::string_view text) {
  const auto of_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_'; };
  for (std::size_t at = text.find("local"); at != std::string_view::npos; at = text.find("local", at + 1)) {
    std::size_t end = at;
    while (end < text.size() && of_word(text[end])) ++end;
    if (!lower_case(text.substr(at, end - at)).ends_with("id")) continue;
    std::size_t begin = end;
    while (begin < text.size() && begin < end + 4 &&
           std::string_view("\": =").find(text[begin]) != std::string_view::npos)
      ++begin;
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
    if (end - begin >= kLeastHexId && (end == low.size() || !of_word(low[end])) &&
        std::any_of(low.begin() + static_cast<std::ptrdiff_t>(begin), low.begin() + static_cast<std::ptrdiff_t>(end),
                    is_digit))
      return std::string(text.substr(begin, end - begin));
  }
  return {};
}

// A message that mentions several other nodes, such as a list of members, is about the node whose name directly follows
// the words that report the problem ("suspected members: [n1]"). Returns "" if no name follows directly, and nullopt if
// the message does not mention several nodes.
std::optional<std::string> one_of_several(const std::vector<NodeName>& names, std::string_view by,
                                          const Meaning& meaning, std::string_view text) {
  std::size_t named = 0, nearest = std::string_view::npos;
  std::string following;
  const std::string_view after = text.substr(std::min(meaning.lost_end, text.size()));
  for (const NodeName& node_name : names) {
    if (node_name.node == by) continue;
    named += is_named(text, node_name) ? 1 : 0;
    const std::size_t place = place_of(after, node_name);
    if (place >= nearest) continue;
    nearest = place;
    following = node_name.node;
  }
  if (named < 2 || meaning.lost_end == 0) return std::nullopt;
  if (nearest != std::string_view::npos && after.substr(0, nearest).find_first_of(",;") == std::string_view::npos)
    return following;
  // In "n2 is down, asked n3", the node that follows is in another clause. So use the node that precedes, if there is
  // exactly one.
  const std::string_view before = text.substr(0, text.size() - after.size());
  std::vector<std::string> first;
  for (const NodeName& node_name : names)
    if (node_name.node != by && is_named(before, node_name)) first.push_back(node_name.node);
  return first.size() == 1 ? first.front() : std::string();
}

}  // namespace

namespace {

// An id that directly precedes an address: "5e27c9d1 tcp://10.9.0.12:4567", "5e27c9d1 (tcp://10.9.0.12:4567)", "{Voter
// 5e27c9d1 10.9.0.12:4567}". `address` does not contain the port.
struct NamedAddress {
  std::string_view id, address;
};
std::vector<NamedAddress> ids_before_addresses(std::string_view text) {
  std::vector<NamedAddress> all;
  const auto of_id = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_'; };
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!is_digit(text[at]) || (at != 0 && (of_id(text[at - 1]) || text[at - 1] == '.'))) continue;
    std::size_t end = at;
    while (end < text.size() && (is_digit(text[end]) || text[end] == '.')) ++end;
    const std::string_view address = text.substr(at, end - at);
    const std::size_t dots = static_cast<std::size_t>(std::count(address.begin(), address.end(), '.'));
    std::string_view before = text.substr(0, at);
    at = end;
    if (dots != 3) continue;
    for (const std::string_view scheme : {"tcp://", "ssl://", "udp://", "http://", "https://", "@", "/"})
      if (before.ends_with(scheme)) {
        before.remove_suffix(scheme.size());
        break;
      }
    while (!before.empty() && std::string_view(" ([<'\"=:,").find(before.back()) != std::string_view::npos)
      before.remove_suffix(1);
    std::size_t begin = before.size();
    while (begin > 0 && of_id(before[begin - 1])) --begin;
    const std::string_view id = before.substr(begin);
    if (id.size() >= kLeastId && std::any_of(id.begin(), id.end(), is_digit)) all.push_back({id, address});
  }
  return all;
}

// Adds the ids by which other nodes call a node. In all logs, such an id precedes only addresses of that one node.
void add_ids_of_addresses(std::vector<NodeName>& names, const Logs& logs) {
  std::map<std::string, std::set<std::size_t>, std::less<>> nodes_of;  // key: an id; value: indices into names
  for (const NodeLog& here : logs.nodes)
    for (std::size_t i = 0; i < std::min(here.messages.size(), kMessagesForIds); ++i)
      for (const NamedAddress& address : ids_before_addresses(logs.text(here.messages[i])))
        for (std::size_t n = 0; n < names.size(); ++n)
          if (std::find(names[n].also.begin(), names[n].also.end(), address.address) != names[n].also.end())
            nodes_of[std::string(address.id)].insert(n);
  for (const auto& [id, nodes] : nodes_of)
    if (nodes.size() == 1 && id != names[*nodes.begin()].node) names[*nodes.begin()].also.push_back(id);
}

// A node that a message mentions by its number: "Node 24", "host: 24", "peer #2".
struct Numbered {
  std::string_view text, number;
};

// True if the number of a node may end before this text. "10.0.0.1", "24:7000", "2nd" and "2-a" do not begin with the
// number of a node; in "24." and "24: ", the mark belongs to the sentence.
bool ends_number(std::string_view text) {
  if (text.empty()) return true;
  if (text[0] == '.' || text[0] == ':') return text.size() == 1 || text[1] == ' ';
  return !is_name_char(text[0]) && text[0] != '/';
}

std::vector<Numbered> numbered_nodes(std::string_view text) {
  constexpr std::size_t kLongestNumber = 6;
  std::vector<Numbered> all;
  for (std::size_t at = text.find_first_of("0123456789"); at != text.npos;) {
    const std::size_t end = std::min(text.find_first_not_of("0123456789", at), text.size());
    const std::string_view before = text.substr(0, at), number = text.substr(at, end - at);
    at = text.find_first_of("0123456789", end);
    const std::size_t word_end = before.find_last_not_of(" :=#");
    if (word_end == before.npos || word_end + 1 == before.size() || before.size() - word_end > 3 ||
        number.size() > kLongestNumber)
      continue;
    if (!ends_number(text.substr(end))) continue;
    std::size_t begin = word_end + 1;
    while (begin > 0 && is_alpha(before[begin - 1])) --begin;
    const std::string word = lower_case(before.substr(begin, word_end + 1 - begin));
    if ((begin > 0 && is_name_char(before[begin - 1])) ||
        std::find(kNumberedNouns.begin(), kNumberedNouns.end(), word) == kNumberedNouns.end())
      continue;
    all.push_back({text.substr(begin, end - begin), number});
  }
  return all;
}

// Parses "127.0.0.1:5706" or "[127.0.0.1]:5706" at the beginning of the text; returns "127.0.0.1:5706", or "" if there
// is none.
std::string endpoint_at_beginning(std::string_view text) {
  const bool bracket = text.starts_with('[');
  if (bracket) text.remove_prefix(1);
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view address = text.substr(0, end);
  text.remove_prefix(end);
  if (bracket && !text.starts_with(']')) return {};
  if (bracket) text.remove_prefix(1);
  if (std::count(address.begin(), address.end(), '.') != 3 || text.size() < 2 || text[0] != ':') return {};
  const std::size_t digits = std::min(text.find_first_not_of("0123456789", 1), text.size());
  return digits < 2 ? std::string() : std::string(address) + std::string(text.substr(0, digits));
}

// The address with port that distinguishes the node from other nodes on the same host. It is the prefix of most of the
// node's messages, or the address at which the node reports that it listens. "" if there is none.
std::string own_endpoint(const Logs& logs, const NodeLog& here) {
  constexpr std::size_t kLeastMessages = 2;
  std::map<std::string, std::size_t> begin;
  std::size_t read = 0;
  std::string listens;
  for (; read < std::min(here.messages.size(), kMessagesForIds); ++read) {
    const std::string_view text = logs.text(here.messages[read]);
    if (std::string address = endpoint_at_beginning(text); !address.empty()) ++begin[address];
    if (!listens.empty() || (text.find("isten") == std::string_view::npos)) continue;
    const Meaning meaning = read_meaning(text);
    if (meaning.serving) listens = find_peer(text);
  }
  for (const auto& [endpoint, times] : begin)
    if (times >= kLeastMessages && times * 10 >= read * 6) return endpoint;
  return listens.find(':') != std::string::npos ? listens : std::string();
}

void add_own_endpoints(std::vector<NodeName>& names, const Logs& logs) {
  std::map<std::string, std::set<std::string>> nodes_of;  // key: address and port
  for (const NodeLog& here : logs.nodes)
    if (const std::string address = own_endpoint(logs, here); !address.empty() && !here.node.empty())
      nodes_of[address].insert(here.node);
  for (const auto& [endpoint, nodes] : nodes_of)
    for (NodeName& name : names) {
      if (nodes.size() != 1 || name.node != *nodes.begin()) continue;
      const std::size_t colon = endpoint.find(':');
      name.also.push_back(endpoint);
      name.also.push_back("[" + endpoint.substr(0, colon) + "]" + endpoint.substr(colon));
    }
}

// The address without the port, in "10.0.0.2:7000", "10.0.0.2", "[fd00::2]:7000" or "fd00::2".
std::string_view address_of(std::string_view peer) {
  if (peer.starts_with('[')) return peer.substr(1, std::min(peer.find(']'), peer.size()) - 1);
  return std::count(peer.begin(), peer.end(), ':') > 1 ? peer : peer.substr(0, peer.rfind(':'));
}

// A failed lookup of a name: "lookup n2 on 10.0.0.53:53: read udp ...: i/o timeout". Here the resolver is missing, and
// not n2. The message is about n2 only if the resolver answered that there is no such name (`unknown`).
struct Lookup {
  std::string_view name, resolver;
  bool unknown = false;
};
std::optional<Lookup> read_failed_lookup(std::string_view text) {
  constexpr std::string_view kLookup = "lookup ", kOn = " on ";
  for (std::size_t at = text.find(kLookup); at != std::string_view::npos; at = text.find(kLookup, at + 1)) {
    std::string_view rest = text.substr(at + kLookup.size());
    const std::string_view name = rest.substr(0, std::min(rest.find(' '), rest.size()));
    rest.remove_prefix(name.size());
    if (!rest.starts_with(kOn)) continue;
    rest.remove_prefix(kOn.size());
    const std::string_view address = rest.substr(0, std::min(rest.find_first_not_of("0123456789."), rest.size()));
    if (std::count(address.begin(), address.end(), '.') == 3)
      return Lookup{name, address, text.find("no such host") != std::string_view::npos};
  }
  return std::nullopt;
}

}  // namespace

std::vector<NodeName> with_stated_names(std::vector<NodeName> names, const Logs& logs) {
  add_ids_of_addresses(names, logs);
  add_own_endpoints(names, logs);
  for (const NodeLog& here : logs.nodes) {
    const auto name = std::find_if(names.begin(), names.end(),
                                   [&](const NodeName& node_name) { return node_name.node == here.node; });
    if (name == names.end()) continue;
    std::map<std::string, std::size_t> ids;
    for (std::size_t i = 0; i < std::min(here.messages.size(), kMessagesForIds); ++i)
      if (const std::string id = own_id(logs.text(here.messages[i])); !id.empty()) ++ids[id];
    const auto most =
        std::max_element(ids.begin(), ids.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most != ids.end()) name->also.push_back(most->first);
  }
  return names;
}

// Assumption: if the names of nodes end with different numbers, and messages mention nodes only by numbers that are
// among these, then the numbers mean those nodes. Goal: "Node 24 was shut down" is about virt24. Derivation: where the
// numbers of a system differ from those in the names (pods are counted from 0, many systems from 1), messages soon
// mention a number that no name ends with; then no number is used.
std::vector<NodeName> with_numbers(std::vector<NodeName> names, const Logs& logs) {
  std::map<std::string_view, std::size_t> node_of;  // key: a number; value: index into names
  for (std::size_t i = 0; i < names.size(); ++i)
    if (const std::string_view number = last_number(names[i].node);
        number.empty() || !node_of.emplace(number, i).second)
      return names;
  std::set<std::pair<std::size_t, std::string>> found;
  for (const NodeLog& here : logs.nodes)
    for (std::size_t i = 0; i < std::min(here.messages.size(), kMessagesForIds); ++i)
      for (const Numbered& one : numbered_nodes(logs.text(here.messages[i]))) {
        const auto node = node_of.find(one.number);
        if (node == node_of.end()) return names;
        found.emplace(node->second, one.text);
      }
  for (const auto& [node, text] : found) names[node].also.push_back(text);
  return names;
}

bool is_object(const std::vector<NodeName>& names, std::string_view by, std::string_view text) {
  constexpr std::size_t kNear = 24;  // at most this many characters, such as "of the node", precede the name
  return std::any_of(names.begin(), names.end(), [&](const NodeName& node_name) {
    const std::size_t place = node_name.node == by ? std::string_view::npos : place_of(text, node_name);
    if (place > kNear) return false;
    const std::string between = " " + lower_case(text.substr(0, place));
    return std::all_of(between.begin(), between.end(),
                       [](char c) { return is_alpha(c) || std::string_view(" \"'`([:=").find(c) < 8; }) &&
           !std::any_of(std::begin(kPrepositions), std::end(kPrepositions),
                        [&](std::string_view role) { return between.find(role) != std::string::npos; });
  });
}

std::string mentioned_node(const std::vector<NodeName>& names, std::string_view by, const Meaning& meaning,
                           std::string_view text) {
  if (const std::optional<Lookup> lookup = read_failed_lookup(text)) {
    const auto known = std::find_if(names.begin(), names.end(), [&](const NodeName& node_name) {
      return node_name.node != by && (lookup->unknown ? is_named(lookup->name, node_name)
                                                      : std::find(node_name.also.begin(), node_name.also.end(),
                                                                  lookup->resolver) != node_name.also.end());
    });
    return known != names.end() ? known->node : std::string();
  }
  // Redis Sentinel names the group's master after " @ ". The message is not about this master.
  const std::size_t master =
      text.find("+sdown") != std::string_view::npos || text.find("+odown") != std::string_view::npos
          ? text.find(" @ ")
          : std::string_view::npos;
  text = text.substr(0, master);
  // The message is about the node after "about": "FAIL message received from n1 about n2".
  if (const std::size_t about = text.find(" about ");
      about != std::string_view::npos && text.substr(0, about).find(" from ") != std::string_view::npos)
    text = text.substr(about);
  std::string_view address = address_of(meaning.peer);
  if (master != std::string_view::npos && text.find(address) == std::string_view::npos) address = {};
  if (const std::optional<std::string> node = one_of_several(names, by, meaning, text)) return *node;
  const auto first = [&](const auto& speaks_of) {
    const auto found = std::find_if(names.begin(), names.end(), [&](const NodeName& node_name) {
      return node_name.node != by && speaks_of(node_name);
    });
    return found != names.end() ? found->node : std::string();
  };
  // Compare the peer with its port first, because nodes on one host differ only in the port.
  for (const std::string_view peer : {std::string_view(meaning.peer), address})
    if (!peer.empty() && !address.empty())
      if (std::string known = first([&](const NodeName& node_name) {
            return std::find(node_name.also.begin(), node_name.also.end(), peer) != node_name.also.end();
          });
          !known.empty())
        return known;
  return first([&](const NodeName& node_name) { return is_named(text, node_name); });
}

}  // namespace rose::logs
