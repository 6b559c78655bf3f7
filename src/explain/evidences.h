// The evidence about all functions, and the groups of features that features.cc puts together. Each from_*() adds the
// features of one kind of observation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "explain/explain.h"
#include "explain/features.h"
#include "explain/function_names.h"

namespace rose::explain {

inline constexpr std::size_t kMostFrames = 12;  // only this many frames of a stack, the innermost ones, give evidence

// The evidence, by function. The instances of a generic function share one entry.
class Evidences {
 public:
  Evidence& operator[](const std::string& function) {
    Evidence& evidence = all_[key_of(function)];
    // Keep the longest name, not counting type arguments.
    if (const std::size_t size = without_type_arguments(function).size(); size > evidence.name_size)
      evidence.name = function, evidence.name_size = size;
    return evidence;
  }
  Evidence* find(const std::string& function) {
    const auto found = all_.find(key_of(function));
    return found == all_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] std::map<std::string, Evidence>& all() { return all_; }

 private:
  std::map<std::string, Evidence> all_;
};

// "all 5", "3 of 5".
[[nodiscard]] std::string times(std::size_t have, std::size_t all);

// The application's frames, innermost first, each function once. If a function passes one of its closures to a library
// (for example to an iterator), the closure counts as a part of the function.
[[nodiscard]] std::vector<const schedule::Frame*> application(const schedule::Stack& stack,
                                                              std::size_t most = kMostFrames);

// True for a fault that does not wait for a step of the program, so that it hits whatever is executing.
[[nodiscard]] bool comes_by_time(const Input& input, const std::string& id);

// The thread that a fault hit; for a fault that hits a whole process, the thread that last met one of the fault's
// conditions.
[[nodiscard]] std::int32_t thread_of(const schedule::FaultOutcome& fault);

// The first step by which the fault takes effect, which may be later than the beginning of the fault: a full disk has
// no effect until a process writes, and a memory limit hits the process that needs the first page beyond it.
[[nodiscard]] const Step* effect_of(const Input& input, const Run& run, const schedule::FaultOutcome& fault);

// --- defined in stack_features.cc

// Adds the functions on the stacks of the threads at which faults fired. Returns the number of failing runs in which a
// crash at a given time interrupted a thread that did not only wait.
[[nodiscard]] std::size_t from_stacks(const Input& input, std::size_t failing, Evidences& out);

// Adds the feature `spared`: if a fault hits the same functions in runs in which it does no harm, then these functions
// handle it well, at least in those runs, and the mistake may be in other code, which learns of the fault in failing
// runs only.
void from_harmless_stacks(const Input& input, Evidences& out);

// The function that a failed call's error reached last. An error goes outward from function to function, each of which
// returns it to the next one. The first function that returns as in correct runs has dealt with the error, or has
// dropped it. It is a suspect, because errors are most often mishandled by the code that should handle them (Yuan et
// al.). The same holds for every other result that functions return only in failing runs, because the function that
// gets the result acts on it.
void from_results(const Input& input, const Comparison& comparison, std::size_t failing, Evidences& out);

// --- defined in message_features.cc

// Used if no stack is known. The suspects are then the functions that the faulted thread had entered last or, if the
// fault ended a process, those that this process had entered last. The thread may have returned from them.
void from_entries(const Input& input, std::size_t failing, Evidences& out);

// If a process catches the signal that asks it to end, the fault takes effect in the functions with which the process
// reacts, that is, those that it enters between the signal and its end, and that no correct run enters. The function
// that a thread was executing when the signal came does not matter. The first of the reacting functions decides how the
// process ends, and calls the later ones.
void from_requests(const Input& input, std::size_t failing, Evidences& out);

// The functions that handle the messages that a fault withholds from the program. The code that should notice that
// messages are missing is in these functions or near them, and an event-driven program waits for messages nowhere else.
// Failing and correct runs need not differ in these functions. Many are entered too often to be watched during the
// whole run, but their entries at its beginning are recorded.
void from_messages(const Input& input, std::size_t failing, Evidences& out);

// The functions that handle the first messages of a node that come after a pause or a partition has ended. The node
// does not know what has happened meanwhile. The messages that it receives are late, and the code that should refuse
// them is in these functions or near them. In correct runs, in which no message is late, the same functions may handle
// the messages.
void from_late_messages(const Input& input, std::size_t failing, Evidences& out);

// What other nodes do when a node is stopped or cut off. A killed process can do nothing about it. The nodes that were
// connected to it can: their connections end, and the functions that run then, or near them, should release what it
// held and repeat what it did not finish.
void from_ends(const Input& input, std::size_t failing, Evidences& out);

// --- defined in recovery_features.cc

// What a restarted process does first with the files that the killed process had changed last. These files may be
// incomplete, and the code that should notice it is in these functions. Call after from_differences().
void from_recovery(const Input& input, std::size_t failing, Evidences& out);

// --- defined in difference_features.cc

// The functions in which failing and correct runs differ. `known_broken_off`: a crash interrupted functions of some
// failing runs (from_stacks()).
void from_differences(const Input& input, const Comparison& comparison, bool known_broken_off, Evidences& out);

}  // namespace rose::explain
