// What rose knows of the words of the world's logs, as data (*.toml in this folder), and the one grammar that finds
// them in a message. An entry has a pattern over words, what it means, a line of a real system, and where that was
// seen.
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

// What a pattern means.
enum class Says : std::uint8_t {
  error,      // errno `number`
  operation,  // what was being done: `name`
  lost,       // a peer is gone, silent or refuses
  closed,     // lost: its machine answered, as when its process ends
  cut_off,    // this node's own network interface is down
  outcast,    // the others take this node for gone, or it is alone
  late,       // something waited too long
  in_vain,    // something failed, and why is not said
  on_disk,    // it had to do with a file
  slow_disk,  // a disk, or a call that waits for one, took too long
  stood,      // the process stood still
  hung,       // the same, as what waits for its signs of life says
  panic,      // the process ends by its own failure
  gave_up,    // it says that it ends for what went wrong
  stopping,   // an orderly stop
  starting,   // a program begins
  serving,    // it can be reached from now on
  killed,     // the kernel ended it for want of memory
  gone,       // a process ended; by what, a signal or a code beside it says
  sigkill,    // a process was ended by SIGKILL; by whom is not said
  helper,     // what ended had been started by the process that writes
  no_helper,  // what ended is the node's own process
  lookup,     // a name was not resolved
  clock,      // a clock is wrong; `name` says how
  torn,       // what was read from a file is not what was written to it
  unclean,    // the process had not ended in order when it ended last
  reunited,   // parts of the cluster that had been apart found each other again
  relayed,    // behind it stands what somebody else said
  answered,   // the same of the node that the message names, be it an error or a stop
  other       // the words mean nothing, whatever other patterns say of them
};

struct Entry {
  Says says = Says::error;
  int number = 0;       // errno
  std::string name;     // operation, or what of a clock
  bool vague = false;   // another error in the same message counts more
  std::string words;    // the pattern
  std::string example;  // a line that has it
  std::string source;   // where that was seen
};

// Where a pattern was found.
struct Statement {
  const Entry* entry = nullptr;
  std::size_t begin = 0, end = 0;  // in the message
  std::uint32_t clause = 0;
};

class Meanings {
 public:
  // `files`: texts of TOML, with names for messages.
  [[nodiscard]] static Result<Meanings> parse(std::span<const std::pair<std::string_view, std::string_view>> files);
  // What is compiled in.
  [[nodiscard]] static const Meanings& built_in();
  // What is compiled in, and what use() added.
  [[nodiscard]] static const Meanings& in_use();
  // Adds a system's own entries to what is compiled in, for this whole process; call it before anything is read.
  // Entries must be without a problem(), and those of an earlier call no longer count.
  static void use(const std::vector<Entry>& entries);
  // What is wrong with an entry of a user: "words: there are no words '<slow>'"; "" for nothing.
  [[nodiscard]] static std::string problem(const Entry& entry);

  [[nodiscard]] std::span<const Entry> entries() const { return entries_; }
  // Everything that a message says, in the order of the entries; not what it denies ("has not timed out") or only deems
  // possible ("may be lost").
  [[nodiscard]] std::vector<Statement> read(const Sentence& sentence) const;
  // Whether this entry's pattern is in the message, denied or not.
  [[nodiscard]] bool has(const Entry& entry, const Sentence& sentence) const;

 private:
  struct Element;
  struct Pattern;
  struct Index;
  using Classes = std::map<std::string, std::vector<std::string>, std::less<>>;  // of [words], by name
  static Result<Pattern> pattern_of(std::string_view text, const Classes& classes);
  Result<void> add(Entry entry);

  Classes classes_;
  std::vector<Entry> entries_;
  std::shared_ptr<Index> index_;
};

[[nodiscard]] std::string_view name_of(Says says);
// All of them, in the order of Says.
[[nodiscard]] std::vector<std::string> says_names();

}  // namespace rose::knowledge
