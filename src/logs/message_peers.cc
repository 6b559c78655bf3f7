// Reads what a message reports about another node: that it is missing, that it answered, or that it excluded the
// writer.
#include <algorithm>
#include <cerrno>

#include "logs/message_reader.h"

namespace rose::logs {
namespace {

using knowledge::Says;
using knowledge::Statement;

// The largest distance, in characters, between the node that answered and the error.
constexpr std::size_t kLongestAnswer = 160;

// True if the message is about a connection, and not about a disk: "An I/O error occurred while sending to the
// backend."
bool is_of_connection(std::string_view low) {
  // Programs also report a closed connection as "End of file", so these words do not mean a file.
  const bool file = low.find("file") != std::string_view::npos && low.find("end of file") == std::string_view::npos;
  return !file && mentions(low, {"connection", "socket", "sending to", "receiving from", "backend", "remote host"}) &&
         !mentions(low, {"disk", "sector", " dev ", "device", "block", "journal", "volume"});
}

}  // namespace

// Reads whether a peer is missing, and where in the message this is reported.
void MessageReader::read_lost() {
  const Statement *closed = first(Says::closed), *lost = first(Says::lost), *stood = first(Says::stood);
  // In "failed to send out heartbeat on time", the writer itself is late, and no peer is missing.
  if (lost != nullptr && stood != nullptr && lost->begin < stood->end && stood->begin < lost->end) lost = nullptr;
  meaning_.closed = closed != nullptr;
  const Statement* statement = lost != nullptr ? lost : closed;
  if (statement == nullptr) return;
  meaning_.lost = true;
  meaning_.lost_end = statement->end;
  // Of several matches, use the one that a node's name follows: "Lost half of the members. Current members are [n1],
  // lost members are [n2]".
  for (const Statement& other_statement : statements_)
    if ((other_statement.entry->says == Says::lost || other_statement.entry->says == Says::closed) &&
        precedes_node_name(other_statement)) {
      meaning_.lost_end = other_statement.end;
      return;
    }
}

// True if the next word, apart from "is" or "are", is the name of another node: "members are [n2]", "member: n2".
bool MessageReader::precedes_node_name(const Statement& statement) const {
  const auto& words = sentence_.words();
  const auto next = std::find_if(words.begin(), words.end(), [&](const knowledge::Word& word) {
    return word.begin >= statement.end && word.text != "is" && word.text != "are" && word.text != "was" &&
           word.text != "were";
  });
  return next != words.end() && next->node == knowledge::kOtherNode &&
         low().substr(statement.end, next->begin - statement.end).find_first_of(",;") == std::string_view::npos;
}

// True if the other nodes excluded the writer: "This node was removed", but not "this node's peer n2 was removed".
bool MessageReader::is_outcast() const {
  return std::any_of(statements_.begin(), statements_.end(), [&](const Statement& statement) {
    if (statement.entry->says != Says::outcast) return false;
    return std::none_of(sentence_.words().begin(), sentence_.words().end(), [&](const knowledge::Word& word) {
      return word.node == knowledge::kOtherNode && word.begin >= statement.begin && word.end <= statement.end;
    });
  });
}

bool MessageReader::names_another_node() const {
  return std::any_of(sentence_.words().begin(), sentence_.words().end(),
                     [](const knowledge::Word& word) { return word.node == knowledge::kOtherNode; });
}

// True if the match is within what another node said: "error message from n2: it is shutting down", "connection to n2
// failed: FATAL: the system is shutting down". If the text after the colon has no subject, it is about the writer
// itself: "cannot connect: exiting".
bool MessageReader::is_relayed(const Statement& statement) const {
  if (is_answered(statement.begin)) return true;
  return std::any_of(statements_.begin(), statements_.end(), [&](const Statement& other_statement) {
    const bool of_peer = other_statement.entry->says == Says::lost || other_statement.entry->says == Says::closed;
    if ((!of_peer && other_statement.entry->says != Says::relayed) || other_statement.end > statement.begin)
      return false;
    const std::string_view between = low().substr(other_statement.end, statement.begin - other_statement.end);
    const std::size_t colon = between.rfind(':');
    if (colon == std::string_view::npos || between.find('\n') != std::string_view::npos) return false;
    const auto words = std::count_if(sentence_.words().begin(), sentence_.words().end(), [&](const auto& word) {
      return word.begin > other_statement.end + colon && word.end <= statement.begin;
    });
    return other_statement.entry->says == Says::relayed || words >= 2;
  });
}

// True if the text at `begin` belongs to the answer of another node. Colons do not matter here: "n2 answered that its
// disk is full", "rpc error: code = Unknown desc = write /x: no space left on device". A comma ends the answer.
bool MessageReader::is_answered(std::size_t begin) const {
  return std::any_of(statements_.begin(), statements_.end(), [&](const Statement& statement) {
    if (statement.entry->says != Says::answered || statement.begin > begin) return false;
    const std::string_view between = low().substr(statement.end, begin - std::min(begin, statement.end));
    return between.size() <= kLongestAnswer && between.find_first_of(",;\n") == std::string_view::npos;
  });
}

// Concludes from the error whether the peer's machine answered. A refused or reset connection means that the peer's
// machine answered; a timeout or a missing route means that it did not.
void MessageReader::conclude_from_error() {
  switch (meaning_.error) {
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE: meaning_.lost = meaning_.closed = true; break;
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
      meaning_.lost = true;
      meaning_.closed = false;
      break;
    case EIO:  // in "I/O error: tcp://10.0.0.2:9000: r/w timeout", a read or write of a connection failed
      if (!meaning_.path.empty()) break;
      if ((meaning_.peer.empty() || !(meaning_.late || meaning_.lost)) && !is_of_connection(low())) break;
      meaning_.error = 0;
      meaning_.operation = Operation::unknown;
      meaning_.lost = true;
      break;
    case EINVAL:  // a call fails with this error if the route to the peer is a blackhole route
      if (!meaning_.peer.empty()) meaning_.lost = true;
      break;
    default: break;
  }
}

}  // namespace rose::logs
