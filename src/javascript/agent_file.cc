#include "javascript/agent_file.h"

#include "base/embedded_file.h"

ROSE_EMBED_FILE(rose_node_addon, ROSE_NODE_ADDON);
ROSE_EMBED_FILE(rose_node_agent, ROSE_NODE_AGENT);

namespace rose::javascript {

std::string_view addon_bytes() { return ROSE_EMBEDDED(rose_node_addon); }
std::string_view agent_bytes() { return ROSE_EMBEDDED(rose_node_agent); }

}  // namespace rose::javascript
