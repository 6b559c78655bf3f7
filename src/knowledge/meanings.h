// The knowledge about the wording of logs, as data (*.toml in this folder), and the grammar that matches it. An entry
// has a pattern over words, the meaning of a match, an example line of a real system, and the source of that line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "knowledge/sentence.h"

namespace rose::knowledge {

// The meaning of a pattern: the value of `says` in the data files and in rose.toml, with '_' for '-'. "The writer" is
// the node that logs the message.
enum class Says : std::uint8_t {
  error,      // an errno, Entry::number
  operation,  // what was being done, Entry::name
  lost,       // a peer is missing, silent or refuses connections
  closed,     // a peer is missing, and its machine answered, as when its process ends
  cut_off,    // the writer's own network interface is down, or its kernel drops packets
  outcast,    // the writer was excluded from the cluster, or is alone
  late,       // an action or a wait took too long
  in_vain,    // an attempt failed, without a stated reason
  on_disk,    // the attempt concerned a file
  slow_disk,  // a disk operation took too long
  stood,      // the writer noticed that it was paused
  hung,       // a watchdog noticed that a process was paused
  woke,       // the writer's machine or process runs again after it was suspended
  suspends,   // the writer suspends or resumes the machine or the process of another node
  panic,      // the process ends because of a failure of its own
  gave_up,    // the process says that it ends because something failed
  stopping,   // an orderly stop
  starting,   // a program starts
  serving,    // the node accepts requests from now on
  killed,     // the kernel's OOM killer ended the process
  gone,       // a process ended; the signal or exit code follows or precedes
  sigkill,    // a process was ended by SIGKILL, by an unknown sender
  helper,     // the ended process is a child of the writer
  no_helper,  // the ended process is the node's main process
  lookup,     // a host name was not resolved
  clock,      // a clock is wrong; Entry::name has the details
  torn,       // data read from a file differ from the data written to it
  unclean,    // the node's previous process did not shut down cleanly
  divided,    // both sides of a partition run
  reunited,   // partitioned parts of the cluster are connected again
  relayed,    // the words that follow were received from another node
  answered,   // the error or stop that follows in the message is that of the mentioned node
  other       // the match has no meaning, and hides all matches that overlap it, except errors
};

struct Entry {
  Says says = Says::error;
  int number = 0;       // for Says::error: the errno
  std::string name;     // for Says::operation: the operation; for Says::clock: the details
  bool vague = false;   // used only if no other error matches the message
  bool apart = false;   // matches only if there is a blank between the words, so that they are not parts of one
                        // identifier
  std::string words;    // the pattern
  std::string example;  // a line that it matches
  std::string source;   // where the example comes from
};

// A match of a pattern in a message.
struct Statement {
  const Entry* entry = nullptr;
  std::size_t begin = 0, end = 0;  // offsets into the message
  std::uint32_t clause = 0;
};

class Meanings {
 public:
  // `files`: names (for error messages) and TOML texts.
  [[nodiscard]] static Result<Meanings> parse(std::span<const std::pair<std::string_view, std::string_view>> files);
  // The entries that are compiled into the program.
  [[nodiscard]] static const Meanings& built_in();
  // The entries in force: built_in(), and those given to use().
  [[nodiscard]] static const Meanings& in_use();
  // Adds the user's own entries to built_in(), for the whole process; replaces those of an earlier call. Call it before
  // any message is read. Entries must have passed problem().
  static void use(const std::vector<Entry>& entries);
  // What is wrong with a user's entry: "words: there are no words '<slow>'"; "" if it is valid.
  [[nodiscard]] static std::string problem(const Entry& entry);

  [[nodiscard]] std::span<const Entry> entries() const { return entries_; }
  // All matches in a message, in the order of the entries. Omits what the message denies ("has not timed out") or only
  // considers possible ("may be lost"). Errors, operations and a few other meanings are never omitted, because a
  // negation before them does not deny them ("could not write").
  [[nodiscard]] std::vector<Statement> read(const Sentence& sentence) const;
  // True if this entry's pattern matches, even if the message denies it.
  [[nodiscard]] bool has(const Entry& entry, const Sentence& sentence) const;

 private:
  struct Element;
  struct Pattern;
  struct Index;
  using Classes = std::map<std::string, std::vector<std::string>, std::less<>>;  // the word lists of [words], by name
  static Result<Pattern> pattern_of(std::string_view text, const Classes& classes);
  Result<void> add(Entry entry);

  Classes classes_;
  std::vector<Entry> entries_;
  std::shared_ptr<Index> index_;
};

[[nodiscard]] std::string_view name_of(Says says);
// All names, in the order of Says.
[[nodiscard]] std::vector<std::string> says_names();

}  // namespace rose::knowledge
