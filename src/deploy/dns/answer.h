// Reads DNS queries and makes their answers (RFC 1035). Queries come from containers, so every byte is treated as
// hostile. Private to deploy.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rose::deploy {

struct HostLine {
  std::string address;
  std::vector<std::string> names;  // the first one is what `hostname -f` prints
};
// Reads the lines of a hosts file.
[[nodiscard]] std::vector<HostLine> read_hosts(const std::string& text);

// The names in the text of a hosts file, in lower case, with their addresses in the order of the file.
using NameTable = std::map<std::string, std::vector<std::string>>;
[[nodiscard]] NameTable name_table(const std::string& hosts);

// The answer to one DNS query over UDP; "" if the packet is not a query. For a name that is not in the table, the
// answer is a failure of the server (SERVFAIL) rather than "no such name", because resolvers then ask their next
// server.
[[nodiscard]] std::string dns_answer(std::string_view query, const NameTable& names);

}  // namespace rose::deploy
