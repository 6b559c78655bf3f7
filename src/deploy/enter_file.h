// The entry point of containers (deploy/enter), embedded in rose.
#pragma once

#include <string_view>

namespace rose::deploy {

[[nodiscard]] std::string_view enter_program();  // the bytes of an executable file

}  // namespace rose::deploy
