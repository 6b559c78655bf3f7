#include "knowledge/files.h"

#include <array>

#include "base/embedded_file.h"

ROSE_EMBED_FILE(rose_knowledge_errors, ROSE_KNOWLEDGE "/errors.toml");
ROSE_EMBED_FILE(rose_knowledge_operations, ROSE_KNOWLEDGE "/operations.toml");
ROSE_EMBED_FILE(rose_knowledge_peers, ROSE_KNOWLEDGE "/peers.toml");
ROSE_EMBED_FILE(rose_knowledge_nodes, ROSE_KNOWLEDGE "/nodes.toml");
ROSE_EMBED_FILE(rose_knowledge_disks, ROSE_KNOWLEDGE "/disks.toml");
ROSE_EMBED_FILE(rose_knowledge_processes, ROSE_KNOWLEDGE "/processes.toml");
ROSE_EMBED_FILE(rose_knowledge_clocks, ROSE_KNOWLEDGE "/clocks.toml");
ROSE_EMBED_FILE(rose_knowledge_languages, ROSE_KNOWLEDGE "/languages.toml");
ROSE_EMBED_FILE(rose_knowledge_verbs, ROSE_KNOWLEDGE "/verbs.toml");

namespace rose::knowledge {

std::span<const std::pair<std::string_view, std::string_view>> files() {
  // The order matters: if a message names several errors, the error whose entry comes first is used.
  static const std::array<std::pair<std::string_view, std::string_view>, 8> all = {{
      {"errors.toml", ROSE_EMBEDDED(rose_knowledge_errors)},
      {"operations.toml", ROSE_EMBEDDED(rose_knowledge_operations)},
      {"peers.toml", ROSE_EMBEDDED(rose_knowledge_peers)},
      {"nodes.toml", ROSE_EMBEDDED(rose_knowledge_nodes)},
      {"disks.toml", ROSE_EMBEDDED(rose_knowledge_disks)},
      {"processes.toml", ROSE_EMBEDDED(rose_knowledge_processes)},
      {"clocks.toml", ROSE_EMBEDDED(rose_knowledge_clocks)},
      {"languages.toml", ROSE_EMBEDDED(rose_knowledge_languages)},
  }};
  return all;
}

std::string_view verbs_file() { return ROSE_EMBEDDED(rose_knowledge_verbs); }

}  // namespace rose::knowledge
