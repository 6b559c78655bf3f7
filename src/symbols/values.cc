#include "symbols/values.h"

#include <dwarf.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <set>

#include "base/text.h"
#include "symbols/code.h"
#include "symbols/debug_info.h"
#include "symbols/dwarf_types.h"
#include "symbols/elf.h"
#include "symbols/go_prologue.h"
#include "symbols/symbols.h"
#include "symbols/users.h"

namespace rose::symbols {
namespace {

constexpr std::size_t kMostMeant = 16;  // most functions that one query may match
constexpr std::size_t kMostInlinedCopies = 32;
constexpr std::size_t kMostCalls = 32;  // most calls of one function that are listed
constexpr std::uint64_t kCreatorReaderBytes = 64;
constexpr std::size_t kMostOuter = 4;  // most levels of callers that are listed
// the member with which a query asks for the last result of type `error`, and the name of that type
constexpr const char* kGoError = "error";
constexpr std::size_t kMostAskedOfOne = 12;  // most arguments and members of one function that are recorded

}  // namespace

class ValueFile::Reader : public CodeNames, public std::enable_shared_from_this<Reader> {
 public:
  Reader(std::filesystem::path path, ElfFile file, CodeFile code)
      : path_(std::move(path)), file_(std::move(file)), code_(std::move(code)), debug_(DebugInfo::open(file_)) {}

  Result<Answer> answer(const Query& query) {
    if (query.kind == Query::Kind::variable) return variable(query);
    std::vector<Function> functions;
    Result<std::vector<Function>> own = table().find(query.function);
    std::vector<FunctionDie> copies;
    if (debug_) copies = debug_->inlined(query.function, kMostInlinedCopies);
    if (own) functions = *std::move(own);
    else if (copies.empty()) return Unexpected(std::move(own).error());
    if (functions.size() > kMostMeant)
      return fail(ErrorKind::input, fmt::format("'{}' matches {} functions of '{}': at most {} are recorded at once",
                                                query.function, functions.size(), path_.native(), kMostMeant));
    Answer answer;
    for (const Function& function : functions) {
      if (query.kind == Query::Kind::argument) ROSE_CHECK(argument(query, function, answer));
      else if (query.kind == Query::Kind::calls) ROSE_CHECK(calls(function, answer));
      else if (query.kind == Query::Kind::callers && query.at_return) ROSE_CHECK(receivers(function, answer));
      else if (query.kind == Query::Kind::callers) callers(query, function, answer);
      else ROSE_CHECK(result(query, function, answer));
    }
    if (query.kind == Query::Kind::argument) {
      for (FunctionDie& copy : copies) ROSE_CHECK(parameter(query, copy, answer));
      if (copies.size() == kMostInlinedCopies)
        answer.remarks.push_back(fmt::format("'{}' was inlined in more than {} places: only those are recorded",
                                             query.function, kMostInlinedCopies));
    } else if (query.kind == Query::Kind::callers && !query.at_return) {
      for (FunctionDie& copy : copies)
        if (!query.of_watched || is_watched(copy.entry)) callers_of_copy(copy, answer);
    } else if (!copies.empty()) {
      const std::string where = fmt::format("'{}' was inlined into {}", query.function, inlined_into(copies));
      const std::string words =
          query.kind == Query::Kind::calls
              ? where + ": there, its calls are recorded among those of the functions that contain it"
              : where + ": its return value there has no location of its own; ask for a variable at a line";
      if (functions.empty()) answer.refused = words;
      else answer.remarks.push_back(words);
    }
    if (!answer.sites.empty()) answer.refused.clear();
    return answer;
  }

  std::vector<std::string> questions(const std::string& name) const {
    std::vector<std::string> out;
    const Result<std::vector<Function>> own = table().find(name);
    std::vector<FunctionDie> copies;
    if (!own && debug_) copies = debug_->inlined(name, 1);
    if (own && own->size() > kMostMeant) return out;
    auto die = own ? known(own->front()) : copies.empty() ? std::nullopt : std::optional(copies.front());
    if (die) {
      for (const Parameter& one : DebugInfo::parameters(*die)) {
        if (one.name.empty() || out.size() >= kMostAskedOfOne) continue;
        Dwarf_Die typed = one.die;
        for (const std::string& member : simple_members(&typed))
          out.push_back(fmt::format("{}({}{})", name, one.name, member));
      }
      if (own && DebugInfo::language(die->die) == DW_LANG_Go) {
        std::vector<Parameter> results = DebugInfo::results(*die);
        if (results.empty()) {
        } else if (const std::vector<std::string> simple = simple_members(&results.front().die);
                   !simple.empty() && simple.front().empty()) {
          out.push_back(name + ":return");
        }
        if (!results.empty() && is_go_error(&results.back().die)) out.push_back(name + ":return.error");
      } else if (own && type_of(&die->die)) {
        out.push_back(name + ":return");
      }
    } else if (own) {
      for (int n = 1; n <= 4; ++n) out.push_back(fmt::format("{}(arg{})", name, n));
      out.push_back(name + ":return");
    }
    if (!out.empty() && out.back().find(":return", name.size()) == name.size()) out.push_back(name + ":return:callers");
    if (own) out.push_back(name + ":calls");
    if (own || !copies.empty()) out.push_back(name + ":callers");
    return out;
  }

  std::string at(std::uint64_t address) const override {
    const Function* found = around(address);
    if (found == nullptr) return {};
    std::vector<DebugInfo::InlinedPlace> places =
        debug_ ? debug_->inlined_at(address) : std::vector<DebugInfo::InlinedPlace>(1);
    // If a library that is compiled into the program calls a function that the application has passed to it, the caller
    // is a function of the library. Name the application's function that uses the library instead.
    std::erase_if(places, [&](const auto& one) { return !one.name.empty() && is_compiled_in(one.name); });
    if (places.size() == 1 && is_compiled_in(found->name, found->linkage_name))
      if (const Function* user = users().only_user(found->address, true)) return std::string(kHandedOver) + user->name;
    if (places.front().place.empty()) places.front().place = fmt::format("+{:#x}", address - found->address);
    return callers_text(places, found->name);
  }

  std::string handed_over(std::uint64_t address) const override {
    const Function* user = file_.is_go() ? nullptr : users().only_user(address, false);
    return user == nullptr ? std::string() : std::string(kHandedOver) + user->name;
  }

 private:
  // The function whose code contains the address.
  [[nodiscard]] const Function* around(std::uint64_t address) const {
    if (!file_.file_offset(address)) return nullptr;
    const std::vector<Function>& all = functions();
    auto found = std::upper_bound(all.begin(), all.end(), address,
                                  [](std::uint64_t wanted, const Function& one) { return wanted < one.address; });
    if (found == all.begin()) return nullptr;
    --found;
    if (found->size != 0 && address - found->address >= found->size) return nullptr;
    return &*found;
  }

  [[nodiscard]] const std::vector<Function>& functions() const {
    if (functions_.empty()) functions_ = table().all();
    return functions_;
  }
  [[nodiscard]] const Users& users() const {
    if (!users_) users_.emplace(file_, functions());
    return *users_;
  }

  [[nodiscard]] const Machine& machine() const { return file_.machine(); }

  [[nodiscard]] std::string no_debug_info(std::string_view what) const {
    return fmt::format(
        "{} needs debug information, and '{}' has none: build it with -g, or put its debug file beside it", what,
        path_.native());
  }

  // The places at which the function calls other functions, with the name of the callee and the position.
  Result<void> calls(const Function& function, Answer& answer) const {
    ROSE_TRY(const std::vector<Place> places, code_.places(function.linkage_name));
    auto names = std::make_shared<std::map<std::int64_t, std::string>>();
    std::vector<Site> sites;
    for (const Place& place : places) {
      if (place.kind == PlaceKind::other) continue;
      if (sites.size() == kMostCalls) {
        answer.remarks.push_back(
            fmt::format("of the calls of '{}', only the first {} are recorded, those into the kernel first",
                        function.name, kMostCalls));
        break;
      }
      const auto number = static_cast<std::uint64_t>(names->size());
      const std::string at = debug_ ? debug_->source_of(function.address + place.offset) : std::string();
      names->emplace(static_cast<std::int64_t>(number),
                     fmt::format("{} ({}){}", place.name, at.empty() ? fmt::format("+{:#x}", place.offset) : at,
                                 in_inlined(function.address + place.offset)));
      Site site;
      site.offset = function.offset + place.offset;
      site.function = function.name;
      site.fetch.at = {kNoRegister, {number}};
      site.form.kind = Form::Kind::enumeration;
      site.form.names = names;
      sites.push_back(std::move(site));
    }
    if (sites.empty()) answer.refused = fmt::format("'{}' calls nothing", function.name);
    answer.sites.insert(answer.sites.end(), sites.begin(), sites.end());
    return {};
  }

  // ", in the inlined f" if the address is in code of the application's function f that was inlined; else "".
  [[nodiscard]] std::string in_inlined(std::uint64_t address) const {
    if (!debug_) return {};
    std::vector<DebugInfo::InlinedPlace> places = debug_->inlined_at(address);
    // the last place is that of the function itself; functions of libraries that are compiled in make no decisions
    for (std::size_t i = 0; i + 1 < places.size(); ++i)
      if (!places[i].name.empty() && !is_compiled_in(places[i].name)) return std::string(kInInlined) + places[i].name;
    return {};
  }

  // At the entry of a function, the return address is the word at the top of the stack (x86-64) or in a register
  // (arm64).
  void callers(const Query& query, const Function& function, Answer& answer) {
    Site site;
    site.offset = function.offset;
    site.function = function.name;
    site.fetch.kind = Fetch::Kind::code;
    site.fetch.at = {machine().caller, {0}};
    site.form.kind = Form::Kind::code;
    site.form.code = shared_from_this();
    site.form.origin = function.address;
    answer.sites.push_back(site);
    if (const auto offset = creator_offset()) {
      site.fetch.at = {machine().goroutine, {*offset}};
      // g contains the return address itself, so this word must be read. On x86-64, Kind::code reads the word at the
      // address that the chain yields. On arm64, it takes the yielded address itself, so the chain needs one more step.
      if (!machine().caller_on_stack) site.fetch.at.offsets.push_back(0);
      site.form.kind = Form::Kind::creator;
      answer.sites.push_back(site);
    }
    // At the entry, the frame pointer is still that of the caller. All functions of Go maintain it, so it leads to the
    // outer callers.
    for (std::size_t frames = 0; query.outer && file_.is_go() && frames < kMostOuter; ++frames) {
      site.fetch.at = {machine().frame, std::vector<std::uint64_t>(frames, 0)};
      site.fetch.at.offsets.push_back(8);
      if (!machine().caller_on_stack) site.fetch.at.offsets.push_back(0);
      site.form.kind = Form::Kind::outer;
      answer.sites.push_back(site);
    }
  }

  // The callers to which the function returns. At a return instruction, the return address is where it was at the
  // entry.
  Result<void> receivers(const Function& function, Answer& answer) const {
    Site site;
    site.function = function.name;
    site.fetch.kind = Fetch::Kind::code;
    site.fetch.at = {machine().caller, {0}};
    site.form.kind = Form::Kind::code;
    site.form.code = shared_from_this();
    ROSE_TRY(const Exits exits, code_.exits(function.address));
    for (const std::uint64_t offset : exits.returns) {
      site.offset = offset;
      site.form.origin = function.address + (offset - function.offset);
      answer.sites.push_back(site);
    }
    tell_exits(function, exits, answer);
    return {};
  }

  bool is_watched(std::uint64_t entry) const {
    if (!watched_) {
      watched_.emplace();
      if (const auto copies = list_inlined(path_))
        for (const Function& copy : *copies) watched_->insert(copy.address);
    }
    return watched_->contains(entry);
  }

  std::optional<std::uint64_t> creator_offset() const {
    if (creator_offset_) return *creator_offset_;
    creator_offset_.emplace();
    if (const auto reader = table().find(kGoCreatorReader); reader && reader->size() == 1)
      *creator_offset_ = go_creator_offset(file_.code(reader->front().address, kCreatorReaderBytes), machine());
    return *creator_offset_;
  }

  // The caller of an inlined copy is the code around the copy, which is known beforehand.
  void callers_of_copy(FunctionDie& copy, Answer& answer) const {
    const auto offset = file_.file_offset(copy.entry);
    if (!offset) return;
    const Function* whole = around(copy.entry);
    const std::string callers =
        callers_text(DebugInfo::called_from(copy), whole == nullptr ? copy.inlined_into : whole->name);
    Site site;
    site.offset = *offset;
    site.function = copy.name;
    site.fetch.at = {kNoRegister, {0}};
    site.form.kind = Form::Kind::enumeration;
    site.form.names =
        std::make_shared<const std::map<std::int64_t, std::string>>(std::map<std::int64_t, std::string>{{0, callers}});
    answer.sites.push_back(std::move(site));
  }

  // The callers in words: "put (store.c:71), inlined into save (store.c:12)". `function`: the function that contains
  // the code.
  static std::string callers_text(const std::vector<DebugInfo::InlinedPlace>& places, const std::string& function) {
    std::string out;
    for (const auto& [name, place] : places) {
      if (!out.empty()) out += kInlinedInto;
      out += name.empty() ? function : name;
      if (!place.empty()) out += fmt::format(" ({})", place);
    }
    return out;
  }

  static std::string inlined_into(const std::vector<FunctionDie>& copies) {
    std::string out;
    std::vector<std::string> names;
    for (const FunctionDie& copy : copies)
      if (std::find(names.begin(), names.end(), copy.inlined_into) == names.end()) names.push_back(copy.inlined_into);
    for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 3); ++i)
      out += fmt::format("{}'{}'", i == 0 ? "" : ", ", names[i]);
    return out + (names.size() > 3 ? " and others" : "");
  }

  [[nodiscard]] std::uint64_t probe_address(const Function& function) const {
    return function.address + (function.probe_offset - function.offset);
  }

  // Adds a site for the value or, if it cannot be recorded, the reason.
  Result<void> put(const Query& query, Dwarf_Die typed, const Stand& stand, std::uint64_t address,
                   const std::string& function, Answer& answer) const {
    ROSE_TRY(Reading reading,
             read_down(&typed, stand, query.members, query.contents, query.name.empty() ? "return" : query.name));
    const auto offset = file_.file_offset(address);
    if (reading.refused.empty() && !offset) reading.refused = "its location is not in the file's code";
    if (!reading.refused.empty()) {
      const std::string words =
          fmt::format("'{}' in '{}': {}", query.name.empty() ? "return" : query.name, function, reading.refused);
      if (answer.refused.empty()) answer.refused = words;
      if (std::find(answer.remarks.begin(), answer.remarks.end(), words) == answer.remarks.end() &&
          answer.remarks.size() < 8)
        answer.remarks.push_back(words);
      return {};
    }
    answer.sites.push_back({*offset, std::move(reading.fetch), std::move(reading.form), function});
    return {};
  }

  // Answers a query about a parameter, either of a function that has debug information or of an inlined copy.
  Result<void> parameter(const Query& query, FunctionDie& function, Answer& answer) const {
    const std::vector<Parameter> parameters = DebugInfo::parameters(function);
    const Parameter* wanted = nullptr;
    for (const Parameter& one : parameters)
      if (one.name == query.name) wanted = &one;
    if (wanted == nullptr && query.number > 0 && static_cast<std::size_t>(query.number) <= parameters.size())
      wanted = &parameters[static_cast<std::size_t>(query.number) - 1];
    if (wanted == nullptr) {
      std::string names;
      for (const Parameter& one : parameters)
        names += (names.empty() ? "" : ", ") + (one.name.empty() ? "(no name)" : one.name);
      return fail(ErrorKind::input,
                  fmt::format("'{}' in '{}' has no argument '{}'", function.name, path_.native(), query.name),
                  names.empty() ? "it has none" : fmt::format("its arguments: {}", names));
    }
    const std::string in = function.inlined_into.empty()
                               ? function.name
                               : fmt::format("{} (inlined into {})", function.name, function.inlined_into);
    std::uint64_t address = function.entry;
    const bool own = function.inlined_into.empty();
    Stand stand = own ? debug_->stand(wanted->die, address, true, &function.die) : debug_->stand(wanted->die, address);
    // If the code is not optimised, the parameter is in the frame that the function's prologue creates, unless the
    // caller put it on the stack.
    const bool by_caller = stand.how == Stand::How::memory && stand.chain.base == machine().stack &&
                           stand.chain.offsets.size() == 1 &&
                           static_cast<std::int64_t>(stand.chain.offsets[0]) >= (machine().caller_on_stack ? 8 : 0);
    if (own && function.begun > address && !by_caller &&
        (stand.how == Stand::How::memory || stand.how == Stand::How::unknown) && in_frame(wanted->die)) {
      address = function.begun;
      stand = debug_->stand(wanted->die, address, false, &function.die);
      if (code_.loops_back(function.entry, address))
        answer.remarks.push_back(
            fmt::format("'{}' begins with a loop: its arguments may be recorded once per iteration", function.name));
    }
    return put(query, wanted->die, stand, address, in, answer);
  }

  // True if the parameter has one location in the whole function. This location is valid only after the prologue.
  static bool in_frame(Dwarf_Die die) {
    Dwarf_Attribute attribute;
    if (dwarf_attr_integrate(&die, DW_AT_location, &attribute) == nullptr) return false;
    const auto form = dwarf_whatform(&attribute);
    return form == DW_FORM_exprloc || form == DW_FORM_block || form == DW_FORM_block1 || form == DW_FORM_block2 ||
           form == DW_FORM_block4;
  }

  std::optional<FunctionDie> known(const Function& function) const {
    auto found = debug_ ? debug_->function_at(function.address) : std::nullopt;
    if (found) found->entry = probe_address(function);
    return found;
  }

  Result<void> argument(const Query& query, const Function& function, Answer& answer) const {
    if (auto die = known(function)) {
      const bool more = query.number > 0 &&
                        static_cast<std::size_t>(query.number) > DebugInfo::parameters(*die).size() &&
                        DebugInfo::takes_more(*die);
      if (!more) return parameter(query, *die, answer);
    }
    if (query.number == 0)
      return fail(ErrorKind::input, no_debug_info(fmt::format("argument '{}' of '{}'", query.name, query.function)),
                  "without debug information, arguments have numbers: f(arg1)");
    if (!query.members.empty() || query.contents)
      return fail(ErrorKind::input,
                  no_debug_info(fmt::format("what argument {} of '{}' holds", query.number, query.function)));
    Site site;
    site.offset = function.probe_offset;
    site.function = function.name;
    const auto n = static_cast<std::size_t>(query.number) - 1;
    if (file_.is_go()) {
      if (n >= machine().go_arguments.size()) {
        answer.refused = fmt::format(
            "only the first {} words of arguments are in registers: build with debug information to record the others",
            machine().go_arguments.size());
        return {};
      }
      site.fetch.at.base = machine().go_arguments[n];
    } else if (n < machine().arguments.size()) {
      site.fetch.at.base = machine().arguments[n];
    } else {  // the argument is on the stack, above the return address if there is one
      site.fetch.kind = Fetch::Kind::memory;
      const std::uint64_t first = machine().caller_on_stack ? 8 : 0;
      site.fetch.at = {machine().stack, {first + 8 * (n - machine().arguments.size())}};
    }
    answer.sites.push_back(std::move(site));
    return {};
  }

  Result<void> result(const Query& query, const Function& function, Answer& answer) const {
    Site site;
    site.function = function.name;
    site.fetch.at.base = machine().returned;
    if (auto die = known(function)) {
      ROSE_TRY(const Reading reading, returned(query, *die));
      if (!reading.refused.empty()) {
        answer.refused = fmt::format("what '{}' returns: {}", function.name, reading.refused);
        return {};
      }
      site.fetch = reading.fetch;
      site.form = reading.form;
    } else if (!query.members.empty()) {
      return fail(ErrorKind::input, no_debug_info(fmt::format("a member of the return value of '{}'", query.function)));
    }
    ROSE_TRY(const Exits exits, code_.exits(function.address));
    for (const std::uint64_t offset : exits.returns) {
      site.offset = offset;
      answer.sites.push_back(site);
    }
    tell_exits(function, exits, answer);
    return {};
  }

  static void tell_exits(const Function& function, const Exits& exits, Answer& answer) {
    if (!exits.whole)
      answer.remarks.push_back(
          fmt::format("not all of the code of '{}' could be read: some of its returns may be missing", function.name));
    if (exits.jumps.empty() && !exits.returns.empty()) return;
    if (exits.jumps.empty()) {
      answer.refused = fmt::format("'{}' never returns", function.name);
      return;
    }
    std::string to;
    for (std::size_t i = 0; i < std::min<std::size_t>(exits.jumps.size(), 3); ++i)
      to += fmt::format("{}'{}'", i == 0 ? "" : ", ", exits.jumps[i]);
    if (exits.jumps.size() > 3) to += " and others";
    const std::string words =
        fmt::format("'{}' ends by jumping to {}: in this case, what it returns is not recorded", function.name, to);
    if (exits.returns.empty()) answer.refused = words;
    else answer.remarks.push_back(words);
  }

  // Reads the type of the `error` that a Go function returns as its last result; nil is a possible value. Go assigns
  // registers to the results in order. If a result does not fit into the remaining registers, Go puts it on the stack
  // (Go's internal ABI specification).
  [[nodiscard]] Reading go_error(std::vector<Parameter>& results) const {
    const std::span<const std::uint8_t> registers = machine().go_arguments;
    std::size_t used = 0;
    for (std::size_t i = 0; i + 1 < results.size(); ++i)
      if (const auto words = go_words(&results[i].die); words && used + *words <= registers.size()) used += *words;
    Reading out;
    if (used + 2 > registers.size()) {
      out.refused = "location not supported: an error on the stack";
      return out;
    }
    out.fetch.at.base = registers[used];
    out.form.kind = Form::Kind::enumeration;
    auto names = std::make_shared<std::map<std::int64_t, std::string>>(file_.go_error_types());
    names->insert_or_assign(0, std::string(kNoError));
    out.form.names = std::move(names);
    out.form.otherwise = kAnError;
    out.form.type = kGoError;
    return out;
  }

  Result<Reading> returned(const Query& query, FunctionDie& function) const {
    const int language = DebugInfo::language(function.die);
    if (language == DW_LANG_Go) {
      std::vector<Parameter> results = DebugInfo::results(function);
      Reading nothing;
      nothing.refused = "nothing";
      if (results.empty()) return nothing;
      if (query.members == std::vector<std::string>{kGoError} && is_go_error(&results.back().die))
        return go_error(results);
      // Otherwise, read the first result. It is one word, or it consists of the words of a string, a slice or an
      // interface.
      Stand words;
      words.how = Stand::How::pieces;
      for (const std::uint8_t number : machine().go_arguments.first(3))
        words.pieces.push_back({Stand::in_register(number), 8});
      auto type = type_of(&results[0].die);
      const bool one = type && dwarf_tag(&*type) != DW_TAG_structure_type;
      return read_down(&results[0].die, one ? Stand::in_register(machine().go_arguments[0]) : words, query.members,
                       query.contents, "return");
    }
    auto type = type_of(&function.die);
    if (!type) {
      Reading nothing;
      nothing.refused = "it returns nothing";
      return nothing;
    }
    if (language == DW_LANG_Rust && query.members.empty() && !query.contents && machine().elf == EM_X86_64)
      if (std::optional<Reading> variant = returned_variant(&function.die)) return *std::move(variant);
    return read_down(&function.die, returned_stand(&*type, language == DW_LANG_Rust), query.members, query.contents,
                     "return");
  }

  Result<Answer> variable(const Query& query) const {
    const std::string what = fmt::format("'{}' at {}:{}", query.name, query.file, query.line);
    if (!debug_) return fail(ErrorKind::input, no_debug_info(what));
    LineFound found = debug_->line(query.file, query.line, query.name);
    if (!found.file_known)
      return fail(ErrorKind::input,
                  fmt::format("no source file of '{}' has a path that ends with '{}'", path_.native(), query.file));
    if (found.code.empty())
      return fail(ErrorKind::input, fmt::format("'{}' has no code for {}:{}, nor for the lines after it",
                                                path_.native(), query.file, query.line));
    Answer answer;
    if (found.line != query.line)
      answer.remarks.push_back(
          fmt::format("line {} has no code of its own: recorded at line {}", query.line, found.line));
    bool any = false;
    for (LineCode& code : found.code) {
      if (!code.variable) continue;
      any = true;
      // Choose the first instruction of the line at which the variable has a location.
      std::uint64_t at = code.addresses.front();
      Stand stand = debug_->stand(*code.variable, at);
      for (std::size_t i = 1; i < code.addresses.size() && stand.how == Stand::How::unknown; ++i) {
        Stand other = debug_->stand(*code.variable, code.addresses[i]);
        if (other.how == Stand::How::unknown) continue;
        stand = std::move(other);
        at = code.addresses[i];
      }
      ROSE_CHECK(put(query, *code.variable, stand, at, code.function, answer));
    }
    if (answer.sites.size() > 1)
      answer.remarks.push_back(
          fmt::format("the line's code is in {} places: a run through several of them is recorded more than once",
                      answer.sites.size()));
    if (!any) {
      std::string names;
      for (const std::string& name : found.in_scope) names += (names.empty() ? "" : ", ") + name;
      return fail(ErrorKind::input,
                  fmt::format("no variable '{}' is in scope at {}:{} of '{}'", query.name, query.file, found.line,
                              path_.native()),
                  names.empty() ? "" : fmt::format("in scope are {}", names));
    }
    if (!answer.sites.empty()) answer.refused.clear();
    return answer;
  }

  const std::filesystem::path path_;
  const ElfFile file_;
  const CodeFile code_;
  const std::unique_ptr<DebugInfo> debug_;  // null if there is no debug information
  FunctionTable& table() const {
    if (!table_) table_ = FunctionTable::of(file_, path_);
    return *table_;
  }
  mutable std::optional<FunctionTable> table_;  // created by the first lookup
  mutable std::vector<Function> functions_;     // all functions by address; filled by the first lookup
  mutable std::optional<std::set<std::uint64_t>> watched_;
  mutable std::optional<Users> users_;  // created by the first lookup
  // filled by the first lookup; nothing: this is no Go program, or its code does not show the offset
  mutable std::optional<std::optional<std::uint64_t>> creator_offset_;
};

ValueFile::ValueFile(std::shared_ptr<Reader> reader) : reader_(std::move(reader)) {}
ValueFile::ValueFile(ValueFile&&) noexcept = default;
ValueFile& ValueFile::operator=(ValueFile&&) noexcept = default;
ValueFile::~ValueFile() = default;

Result<ValueFile> ValueFile::open(const std::filesystem::path& binary) {
  ROSE_TRY(ElfFile file, ElfFile::open(binary));
  ROSE_TRY(CodeFile code, CodeFile::open(binary));
  return ValueFile(std::make_shared<Reader>(binary, std::move(file), std::move(code)));
}

Result<Answer> ValueFile::answer(const Query& query) { return reader_->answer(query); }
std::vector<std::string> ValueFile::questions(const std::string& function) { return reader_->questions(function); }

FormattedValue format_value(const Form& form, std::uint64_t bits, std::string_view text) {
  if (form.kind == Form::Kind::text)
    return {fmt::format("\"{}\"{}", printable(text), text.size() < bits && bits != 0 ? "..." : ""), false, 0};
  bits >>= form.shift & 63;
  const unsigned size = std::clamp<unsigned>(form.size, 1, 8);
  if (size < 8) bits &= (std::uint64_t{1} << (8 * size)) - 1;
  const unsigned spare = 64 - 8 * size;
  const auto with_sign = static_cast<std::int64_t>(bits << spare) >> spare;
  const auto number = [](std::string words, double value) { return FormattedValue{std::move(words), true, value}; };
  switch (form.kind) {
    case Form::Kind::raw:
      // An int is in the lower half of a register. The upper half is undefined, but usually zero.
      if (bits > 0x7fffffff && bits <= 0xffffffff)
        return number(fmt::format("{} (as int {})", bits, static_cast<std::int32_t>(bits)), static_cast<double>(bits));
      if (bits >> 63 == 0 && bits >= std::uint64_t{1} << 40)
        return number(fmt::format("{:#x}", bits), static_cast<double>(bits));
      return number(fmt::format("{}", with_sign), static_cast<double>(with_sign));
    case Form::Kind::integer: return number(fmt::format("{}", with_sign), static_cast<double>(with_sign));
    case Form::Kind::natural: return number(fmt::format("{}", bits), static_cast<double>(bits));
    case Form::Kind::boolean:
      return number(bits == 0   ? "false"
                    : bits == 1 ? "true"
                                : fmt::format("true ({})", bits),
                    static_cast<double>(bits));
    case Form::Kind::character:
      if (bits >= 0x20 && bits < 0x7f)
        return number(fmt::format("'{}'", static_cast<char>(bits)), static_cast<double>(bits));
      return number(fmt::format("{}", with_sign), static_cast<double>(with_sign));
    case Form::Kind::pointer: return {bits == 0 ? "null" : fmt::format("{:#x}", bits), true, static_cast<double>(bits)};
    case Form::Kind::real: {
      const double value = size == 4 ? static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)))
                                     : std::bit_cast<double>(bits);
      return number(fmt::format("{}", value), value);
    }
    case Form::Kind::enumeration:
      if (form.names) {
        for (const std::int64_t key : {with_sign, static_cast<std::int64_t>(bits)})
          if (const auto name = form.names->find(key); name != form.names->end())
            return number(name->second, static_cast<double>(key));
      }
      if (!form.otherwise.empty()) return number(form.otherwise, 1);
      return number(fmt::format("{}", with_sign), static_cast<double>(with_sign));
    case Form::Kind::code:
    case Form::Kind::creator:
    case Form::Kind::outer: {
      // The value is a return address, that is, the address of the instruction after the call, so look up the byte
      // before.
      std::string words = form.code ? form.code->at(form.origin + bits - 1) : std::string();
      if (words.empty() && form.code && form.kind == Form::Kind::code) words = form.code->handed_over(form.origin);
      if (words.empty()) words = kOutsideFile;
      if (form.kind == Form::Kind::creator) words.insert(0, kGoStatement);
      if (form.kind == Form::Kind::outer) words.insert(0, kFurtherOut);
      return {std::move(words), false, 0};
    }
    case Form::Kind::text: break;
  }
  return {};
}

}  // namespace rose::symbols
