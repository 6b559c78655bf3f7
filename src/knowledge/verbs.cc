#include "knowledge/verbs.h"

#include <map>
#include <string>

#include "base/toml.h"
#include "knowledge/files.h"

namespace rose::knowledge {

namespace {

using Shares = std::map<std::string, double, std::less<>>;

Shares read_shares(std::string_view table) {
  const Result<toml::Value> root = toml::parse(verbs_file(), "verbs.toml");
  if (!root || root->find(table) == nullptr) ROSE_BUG("src/knowledge/verbs.toml lacks a table");
  Shares shares;
  for (const toml::Member& member : root->find(table)->value.members) shares.emplace(member.key, member.value.real);
  return shares;
}

}  // namespace

double library_share(std::string_view word, bool more) {
  static const Shares alone = read_shares("alone"), first = read_shares("first");
  const Shares& shares = more ? first : alone;
  const auto found = shares.find(word);
  return found == shares.end() ? 0 : found->second;
}

}  // namespace rose::knowledge
