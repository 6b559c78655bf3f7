// Checks the examples of FIPS 180-4, and inputs that are about as long as a block.
#include "base/sha256.h"

#include <catch2/catch.hpp>

using namespace rose;

TEST_CASE("SHA-256 gives the standard's example values") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256(std::string(1'000'000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("SHA-256 gives the same value for data in pieces and at once") {
  for (std::size_t length = 50; length < 140; ++length) {
    const std::string text(length, 'x');
    Sha256 pieces;
    pieces.add(std::string_view(text).substr(0, length / 3));
    pieces.add(std::string_view(text).substr(length / 3));
    CHECK(pieces.finish() == sha256(text));
  }
}
