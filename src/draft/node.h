// From what was seen of processes to nodes as rose.toml has them. Pure.
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
  std::string value;    // as rose.toml will have it
  std::string comment;  // "" none
};

struct NodeDraft {
  std::string name;
  std::string variable;              // the name as variables have it
  const System* system = nullptr;    // null: none that rose knows
  std::vector<std::string> about;    // what was seen
  std::vector<std::string> command;  // empty: a question
  std::string question;              // why there is no command
  std::vector<std::string> changes;  // what differs from what runs
  std::vector<std::string> doubts;   // what the user should look at
  std::vector<Variable> env;
  std::vector<std::string> env_left;  // variables that were left out, and why
  std::string ready;                  // TOML, "" none
  std::string ready_note;             // why there is none
  bool service = false;               // of a Compose file, which says the rest
  std::string restart;                // TOML, "" none
  std::string restart_note;
  std::string user;
  std::string owner;   // of what it writes; as user, which a command may have taken over
  std::string attach;  // TOML: started by `setup` and not by a command
  std::string image;   // it runs in a container of this image; then `command` may be the image's own
  std::vector<std::string> entrypoint, options, volumes, aliases;  // of that container, as rose.toml has them
  std::string ip;
  std::string binary;                // "": the command's own
  std::string functions;             // a comment
  std::vector<std::string> folders;  // to be made in its folder before it starts
  std::uint16_t port = 0;            // its clients'; 0 unknown
  std::string run_in;                // "docker exec web ": how examples run a tool where the node is; "" here
  std::string password;              // that its clients say, as a word of a shell; "" none
  bool follows = false;              // a replica of another: not where clients write
};

// Of one node in the making: what its system's rules look at and change.
struct Making {
  const std::vector<Seen>& all;
  std::size_t self;
  const AddressBook& book;
  const std::vector<const System*>& systems;  // of all, null where unknown
  const Host& host;
  Words words;
  NodeDraft node;
  bool places_known = false;  // its rules have seen to every place it writes: nothing is to be covered
  bool reachable = false;     // its rules have seen to the address it listens at

  [[nodiscard]] const Seen& seen() const { return all[self]; }
};

// Letters, digits and '_', the first not a digit.
[[nodiscard]] bool is_variable_name(std::string_view name);

// Names of nodes, in order: "redis1", "redis2", "nginx".
[[nodiscard]] std::vector<std::string> node_names(const std::vector<Seen>& seen,
                                                  const std::vector<const System*>& systems);

[[nodiscard]] std::vector<NodeDraft> draft_nodes(const std::vector<Seen>& seen, const Host& host, Secrets& secrets);

}  // namespace rose::draft
