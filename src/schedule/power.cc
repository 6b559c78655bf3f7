// Power loss at a crash: reads and writes the keys that say what is lost, and describes the loss in words.
#include "base/text.h"
#include "schedule/kinds.h"

namespace rose::schedule {
namespace {

const std::vector<std::string> kLosses{"unsynced", "torn", "scattered"};

}  // namespace

void read_loss(toml::Table& table, Fault& fault) {
  std::size_t which = 0;
  if (table.get("lose") == nullptr) {
    for (const char* key : {"keep", "path"}) {
      if (table.get(key) == nullptr) continue;
      table.wrong(key, fmt::format("'{}' of a crash requires 'lose'", key),
                  "lose = \"unsynced\" discards unsynced data in that folder");
    }
    return;
  }
  if (table.one_of("lose", kLosses, which)) fault.lose = static_cast<Loss>(which + 1);
  read_folder(table, fault.resource);
  if (fault.signal != 9) table.wrong("lose", "power loss is not a signal: 'signal' must be left out");
  if (fault.scope != Scope::all) table.wrong("lose", "power loss affects the whole node: 'scope' must be left out");
  if (fault.lose == Loss::unsynced && table.get("keep") != nullptr) {
    table.wrong("keep", "'keep' requires lose = \"torn\" or \"scattered\"; otherwise no unsynced data is kept");
  } else if (table.real("keep", fault.keep, 0, 1) && (fault.keep <= 0 || fault.keep >= 1)) {
    table.wrong("keep", fmt::format("'{}' is not a share of the unsynced sectors between 0 and 1, such as keep = 0.5",
                                    fault.keep));
  }
}

void add_loss(Parts& parts, const Fault& fault) {
  if (fault.lose == Loss::nothing) return;
  parts.emplace_back("lose", toml::literal(kLosses[static_cast<std::size_t>(fault.lose) - 1]));
  if (!fault.resource.folder.empty()) parts.emplace_back("path", toml::literal(fault.resource.folder));
  if (fault.lose != Loss::unsynced && fault.keep != Fault{}.keep)
    parts.emplace_back("keep", fmt::format("{}", fault.keep));
}

std::string loss_words(const Fault& fault) {
  if (fault.lose == Loss::nothing) return "";
  const std::string where = fault.resource.folder.empty() ? "" : fmt::format(" in {}", fault.resource.folder);
  if (fault.lose == Loss::unsynced) return fmt::format(" (with power loss: unsynced data{} is lost)", where);
  return fmt::format(" (with power loss: of unsynced data{}, {} of each file's sectors is kept{})", where,
                     fmt::format("{:.4g} %", fault.keep * 100),
                     fault.lose == Loss::torn ? ", the first ones" : ", scattered");
}

}  // namespace rose::schedule
