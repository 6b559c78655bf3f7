// Drafts nodes in the form of rose.toml from observed processes. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "draft/addresses.h"
#include "draft/facts.h"
#include "draft/secrets.h"
#include "draft/words.h"

namespace rose::draft {

class System;

struct Variable {
  std::string name;
  std::string value;    // as written in rose.toml
  std::string comment;  // "" if none
};

struct NodeDraft {
  std::string name;
  std::string variable;              // the node's name in the form used in variables ("redis_1")
  const System* system = nullptr;    // null: unknown to rose
  std::vector<std::string> about;    // what was observed
  std::vector<std::string> command;  // empty: unknown, asked as a question
  std::string question;              // why there is no command
  std::vector<std::string> changes;  // how the node differs from the running system
  std::vector<std::string> doubts;   // what the user should check
  std::vector<Variable> env;
  std::vector<std::string> env_left;  // variables that were omitted, and why
  std::string ready;                  // as TOML; "" if none
  std::string ready_note;             // why `ready` is empty
  bool service = false;               // a Compose service; the Compose file has its other settings
  std::string restart;                // as TOML; "" if none
  std::string restart_note;
  std::string user;
  bool begins_as_root = false;  // the command changes to `user` by itself
  std::string owner;   // owner of the files that it writes; usually `user`, unless the command changes users itself
  std::string attach;  // as TOML: it is started by `setup` instead of a command
  std::string image;   // it runs in a container of this image; `command` may then be the image's own
  // for that container; the values are as written in rose.toml
  std::vector<std::string> entrypoint, options, volumes, aliases;
  std::string ip;
  std::string binary;                // "": the program of the command
  std::string functions;             // text of a comment
  std::vector<std::string> folders;  // to be created in its folder before it starts
  std::uint16_t port = 0;            // for clients; 0: unknown
  std::string run_in;                // how examples run a tool beside the node: "docker exec web "; "": directly
  std::string password;              // the password that clients use, as a shell word; "" if none
  bool follows = false;              // a replica of another node, so clients do not write to it
};

// State while one node is drafted. The rules of its system read and change it.
struct Making {
  const std::vector<Seen>& all;
  std::size_t self;
  const AddressBook& book;
  const std::vector<const System*>& systems;  // for all nodes; null where unknown
  const Host& host;
  Words words;
  NodeDraft node;
  // the rules of its system have handled every location that the node writes, so nothing has to be covered
  bool places_known = false;
  bool reachable = false;  // the rules of its system have handled the address at which the node listens

  [[nodiscard]] const Seen& seen() const { return all[self]; }
};

// True for letters, digits and '_', not starting with a digit.
[[nodiscard]] bool is_variable_name(std::string_view name);
// Like is_variable_name(), but also accepts '.' and '-', because programs read variables that shells cannot set, such
// as "discovery.type".
[[nodiscard]] bool is_environment_name(std::string_view name);

// The names of the nodes, in order: "redis1", "redis2", "nginx".
[[nodiscard]] std::vector<std::string> node_names(const std::vector<Seen>& seen,
                                                  const std::vector<const System*>& systems);

[[nodiscard]] std::vector<NodeDraft> draft_nodes(const std::vector<Seen>& seen, const Host& host, Secrets& secrets);

}  // namespace rose::draft
