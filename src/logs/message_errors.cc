// The error and the operation that a message names.
#include <algorithm>
#include <array>
#include <utility>

#include "logs/message_reader.h"

namespace rose::logs {
namespace {

using knowledge::Says;
using knowledge::Statement;

constexpr std::array kOperations = std::to_array<std::pair<std::string_view, Operation>>({
    {"open", Operation::open},           {"read", Operation::read},         {"write", Operation::write},
    {"sync", Operation::sync},           {"truncate", Operation::truncate}, {"rename", Operation::rename},
    {"unlink", Operation::unlink},       {"mkdir", Operation::mkdir},       {"connect", Operation::connect},
    {"accept", Operation::accept},       {"listen", Operation::listen},     {"send", Operation::send},
    {"receive", Operation::receive},     {"spawn", Operation::spawn},       {"memory", Operation::memory},
    {"socket", Operation::socket},       {"watch", Operation::watch},       {"set-mode", Operation::set_mode},
    {"set-owner", Operation::set_owner},
});

Operation operation_named(std::string_view name) {
  const auto found =
      std::find_if(kOperations.begin(), kOperations.end(), [&](const auto& entry) { return entry.first == name; });
  return found == kOperations.end() ? Operation::unknown : found->second;
}

}  // namespace

Found MessageReader::stated_error(bool vague) const {
  // Of the first pattern that matches, use the last match, because the cause comes last ("Caused by: ...").
  const Statement* best = nullptr;
  for (const Statement& statement : statements_)
    if (statement.entry->says == Says::error && statement.entry->vague == vague &&
        (best == nullptr || statement.entry == best->entry))
      best = &statement;
  if (best == nullptr) return {};
  return {best->entry->number, best->begin, best->end - best->begin, vague};
}

// The error that the message names. If it has several forms, the most explicit one is used, in this order: a number
// after "errno" or similar words, the text of an error, its name, a number in brackets, a class of errors.
Found MessageReader::find_error() const {
  for (const std::string_view words : {"errno", "os error", "system error number", "error number"}) {
    std::size_t place = 0;
    const int number = number_after(low(), words, &place);
    if (number <= 0 || number >= kErrnoEnd) continue;
    // The error's text may follow its number: "[Errno 28] No space left on device".
    std::size_t end = low().find_first_of("0123456789", place);
    for (const Statement& statement : statements_)
      if (statement.entry->says == Says::error && statement.entry->number == number && statement.begin >= end &&
          statement.begin - end < 8)
        end = statement.end;
    return {number, place, end - place};
  }
  if (const Found found = stated_error(false); found.error != 0) return found;
  if (const Found name = error_name(text_); name.error != 0) return name;
  if (const Found atom = error_atom(low()); atom.error != 0) return atom;
  if (const Statement* in_vain = first(Says::in_vain)) {
    if (const Found number = error_at_end(low()); number.error != 0) return number;
    if (const Found number = error_in_brackets(low(), in_vain->begin); number.error != 0) return number;
  }
  if (const Found number = error_before_failure(); number.error != 0) return number;
  return stated_error(true);
}

// An error number in brackets just before the words for a failed attempt: "[22] could not map", "[22]: could not map".
Found MessageReader::error_before_failure() const {
  for (const Statement& statement : statements_) {
    if (statement.entry->says != Says::in_vain) continue;
    std::string_view before = low().substr(0, statement.begin);
    while (!before.empty() && (before.back() == ' ' || before.back() == ':')) before.remove_suffix(1);
    if (!before.ends_with(']')) continue;
    const std::size_t open = before.rfind('[');
    if (open == std::string_view::npos || (open != 0 && before[open - 1] != ' ')) continue;
    const std::string_view digits = before.substr(open + 1, before.size() - open - 2);
    if (digits.empty() || digits.size() > 3 || digits.find_first_not_of("0123456789") != digits.npos) continue;
    const int number = number_at(low(), open + 1);
    if (number > 0 && number < kErrnoEnd) return {number, open, before.size() - open};
  }
  return {};
}

// The last operation that is named before the error. If there is none, the first operation after the error. Operations
// in the words of the error do not count ("too many open files"). The creation of processes is an exception ("unable to
// create native thread"); it is used if the message names no other operation.
Operation MessageReader::find_operation(std::size_t from, const Found& error) const {
  const Statement* best = nullptr;
  bool before = false, within = false;
  for (const Statement& statement : statements_) {
    if (statement.entry->says != Says::operation || statement.begin < from) continue;
    if (error.covers(statement.begin)) {
      within = within || operation_named(statement.entry->name) == Operation::spawn;
      continue;
    }
    const bool here_before = error.at != std::string_view::npos && statement.begin < error.at;
    const bool better = best == nullptr || (here_before && (!before || statement.begin > best->begin)) ||
                        (!here_before && !before && statement.begin < best->begin);
    if (!better) continue;
    best = &statement;
    before = here_before;
  }
  if (best == nullptr) return within ? Operation::spawn : Operation::unknown;
  return operation_named(best->entry->name);
}

}  // namespace rose::logs
