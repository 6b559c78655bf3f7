// Replaces nodes' addresses in command lines by placeholders, if it is certain to which node an address belongs. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "draft/facts.h"
#include "draft/words.h"

namespace rose::draft {

// An address or host name within a text.
struct FoundAddress {
  std::size_t begin = 0;
  std::size_t end = 0;  // end of the address, without the port
  std::string host;     // "127.0.0.1", "::1", "localhost"
  std::optional<std::uint16_t> port;
};
[[nodiscard]] std::vector<FoundAddress> find_addresses(std::string_view text, const std::vector<std::string>& names);

struct Rewritten {
  std::vector<std::string> changes;  // "127.0.0.1:7001 is redis1: ${ip_redis1}:7001"
  std::vector<std::string> doubts;   // what was left unchanged, and why
  bool own = false;                  // the node's own address was replaced
};

class AddressBook {
 public:
  // `names` and `variables` are in the order of `seen`; `variables` has the names in the form used in variables. All
  // arguments must outlive this object.
  AddressBook(const std::vector<Seen>& seen, const std::vector<std::string>& names,
              const std::vector<std::string>& variables, const Host& host)
      : seen_(&seen), names_(&names), variables_(&variables), host_(&host) {}

  // The node that listens at `address`:`port`, as seen from node `from`; nothing if there is none or several are
  // possible.
  [[nodiscard]] std::optional<std::size_t> owner(std::size_t from, std::string_view address, std::uint16_t port) const;
  // True if the node has a socket bound to exactly this address or, if `host` is a host name, to a loopback address.
  [[nodiscard]] bool listens_there(std::size_t node, const std::string& host) const;
  // For commands that do not belong to a node: ${ip} has no meaning there, so nodes are always named.
  void name_all() { by_name_ = true; }
  [[nodiscard]] const std::string& name(std::size_t node) const { return (*names_)[node]; }
  // The placeholder by which a command of the node `from` names the address of `node`: "${ip}" or "${ip_redis1}".
  [[nodiscard]] std::string placeholder(std::size_t from, std::size_t node) const;

  void rewrite(std::size_t from, Words& words, Rewritten& result) const;
  // Rewrites a variable's value; `name` is the variable's name.
  [[nodiscard]] std::string rewrite(std::size_t from, std::string_view name, const std::string& value,
                                    Rewritten& result) const;

 private:
  [[nodiscard]] std::string rewrite_text(std::size_t from, const std::string& option, const std::string& text,
                                         std::optional<std::uint16_t> next_port, Rewritten& result) const;
  [[nodiscard]] bool local(std::string_view address, const Seen& from, const Seen& node) const;
  [[nodiscard]] std::optional<std::size_t> bare_owner(std::size_t from, const std::string& option,
                                                      const std::string& host) const;
  const std::vector<Seen>* seen_;
  const std::vector<std::string>* names_;
  const std::vector<std::string>* variables_;
  const Host* host_;
  bool by_name_ = false;
};

}  // namespace rose::draft
