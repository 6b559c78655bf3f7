#include "deploy/enter_file.h"

#include "base/embedded_file.h"

ROSE_EMBED_FILE(rose_enter, ROSE_ENTER_FILE);

namespace rose::deploy {

std::string_view enter_program() { return ROSE_EMBEDDED(rose_enter); }

}  // namespace rose::deploy
