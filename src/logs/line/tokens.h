// Predicates on the tokens of a log line's header.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/trim.h"

namespace rose::logs {

inline constexpr std::size_t kLongestName = 120;  // characters of the name of a thread, logger or exception

// The text without blanks at its ends. Other white space belongs to the token.
[[nodiscard]] inline std::string_view trimmed(std::string_view text) { return rose::trimmed(text, " \t"); }

// True for a thread id printed as an address: "7f1b2c3d4e5f", "0x7f1b2c3d4e5f".
[[nodiscard]] bool hex_pointer(std::string_view text);

// True for a position in source code: "server.go:100", "QuorumPeer.java:917", "source/server/server.cc:249".
[[nodiscard]] bool source_place(std::string_view text);

// True for a qualified name: "org.apache.x.Y", "util.Server", "store::journal", "o.e.n.Node",
// "kafka.server.KafkaServer$".
[[nodiscard]] bool dotted_name(std::string_view text);

// True for a word that may be the name of a thread or logger: no blanks and no punctuation of sentences.
[[nodiscard]] bool plain_name(std::string_view text);

// True for the name of a class that is thrown: "java.net.ConnectException", "OSError".
[[nodiscard]] bool exception_word(std::string_view name);

// The longest bracket in a header, in bytes. Example:
// "[QuorumPeer[myid=2](plain=[0:0:0:0:0:0:0:0]:2182)(secure=disabled):QuorumPeer@917]"
inline constexpr std::size_t kLongestBracket = 200;
// The offset at which the bracket that opens at `at` is closed. npos if it is not closed within kLongestBracket.
[[nodiscard]] std::size_t closing(std::string_view line, std::size_t at, char open, char close);

}  // namespace rose::logs
