#include "python/agent_file.h"

#include "base/embedded_file.h"

ROSE_EMBED_FILE(rose_python_agent, ROSE_PYTHON_AGENT);
ROSE_EMBED_FILE(rose_python_site, ROSE_PYTHON_SITE);

namespace rose::python {

std::string_view agent_bytes() { return ROSE_EMBEDDED(rose_python_agent); }
std::string_view site_bytes() { return ROSE_EMBEDDED(rose_python_site); }

}  // namespace rose::python
