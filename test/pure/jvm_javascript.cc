// Which processes are recognised as processes of Node.js.
#include "javascript/session.h"

#include <catch2/catch.hpp>

using namespace rose::javascript;

TEST_CASE("a user's own script or program may be called node") {
  for (const char* name : {"/usr/bin/node", "/usr/bin/nodejs", "/opt/node/v20.1.0/bin/node"}) CHECK(is_node(name));
  for (const char* name : {"/srv/app/node", "/usr/bin/deno", "/usr/bin/nodemon", "/usr/bin/python3"})
    CHECK_FALSE(is_node(name));
}
