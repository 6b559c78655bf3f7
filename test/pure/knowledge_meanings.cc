#include "knowledge/meanings.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "base/ascii.h"

using namespace rose;
using namespace rose::knowledge;

namespace {

std::string words_of(std::string_view text) {
  const Sentence sentence(text);
  std::string all;
  for (const Word& word : sentence.words())
    if (word.matches) all += (all.empty() ? "" : " ") + std::string(word.text) + (word.key ? "=" : "");
  return all;
}

// The statements found in a message with these entries, and with the words for `peer` and `link`.
std::string read(const std::string& entries, std::string_view text) {
  const std::string file = "[words]\npeer = \"node peer\"\nlink = \"connection link\"\n" + entries;
  const std::array<std::pair<std::string_view, std::string_view>, 1> files = {{{"test.toml", file}}};
  const Result<Meanings> meanings = Meanings::parse(files);
  REQUIRE(meanings);
  std::string all;
  const Sentence sentence(text);
  for (const Statement& one : meanings->read(sentence))
    all += (all.empty() ? "" : ", ") + std::string(name_of(one.entry->says)) + ": " +
           std::string(text.substr(one.begin, one.end - one.begin));
  return all;
}

std::string entry(const std::string& says, const std::string& words) {
  return "[[meaning]]\nsays = \"" + says + "\"\nwords = \"" + words + "\"\nexample = \"x\"\nsource = \"x\"\n";
}

}  // namespace

TEST_CASE("a system's own entries apply beside the built-in ones") {
  const auto says = [](std::string_view text) {
    const Sentence sentence(text);
    std::vector<std::string> found;
    for (const Statement& one : Meanings::in_use().read(sentence)) found.emplace_back(name_of(one.entry->says));
    return found;
  };
  const std::string own = "E017 platter is bent", known = "no space left on device";
  CHECK(says(own).empty());
  const std::vector<std::string> before = says(known);
  REQUIRE(!before.empty());
  Entry bent;
  bent.says = Says::slow_disk;
  bent.words = "Plate|Platter .. bent";  // capital letters do not matter, because messages are compared in lower case
  bent.example = own;
  CHECK(Meanings::problem(bent).empty());
  Meanings::use({bent});
  CHECK(says(own) == std::vector<std::string>{"slow-disk"});
  CHECK(says(known) == before);
  Meanings::use({});
  CHECK(says(own).empty());

  Entry wrong = bent;
  wrong.example = "the platter is fine";
  CHECK(Meanings::problem(wrong) == "example: it does not have the words");
  for (const auto& [words, what] : {std::pair{"<nothing> is bent", "words: there are no words '<nothing>'"},
                                    std::pair{"<waits", "words: there are no words '<waits'"},
                                    std::pair{"plate? bent", "words: they must begin with a word that is not optional"},
                                    std::pair{"..", "words: they must begin with a word that is not optional"}}) {
    wrong.words = words;
    CHECK(Meanings::problem(wrong) == what);
  }
  wrong.words = "bent ... <waits>";
  wrong.example = "the disk is bent";
  // the example contains these words, but in another order
  CHECK(Meanings::problem(wrong) == "example: it does not have the words");
}

TEST_CASE("every built-in entry has a source and an example that it matches") {
  const Meanings& all = Meanings::built_in();
  REQUIRE(all.entries().size() > 200);
  std::set<std::string> seen;
  for (const Entry& one : all.entries()) {
    INFO(name_of(one.says) << ": " << one.words << ": " << one.example);
    CHECK(!one.source.empty());
    const NamesOfNodes nodes = {{"n1", true}, {"n2", false}};
    const Sentence sentence(one.example, &nodes);
    CHECK(all.has(one, sentence));
    // The sentence as a whole must have the meaning of the entry, so no part of it may negate that.
    const std::vector<Statement> statements = all.read(sentence);
    if (one.says != Says::other)
      CHECK(std::any_of(statements.begin(), statements.end(),
                        [&](const Statement& statement) { return statement.entry->says == one.says; }));
    CHECK(seen.insert(std::string(name_of(one.says)) + one.name + std::to_string(one.number) + one.words).second);
  }
}

TEST_CASE("names in code are split into words, and paths and stack frames are ignored") {
  CHECK(words_of("java.net.SocketTimeoutException: Read timed out") == "socket timeout exception read timed out");
  CHECK(words_of("IOError EOFException fdatasync UNREACHABLE") == "io error eof exception fdatasync unreachable");
  CHECK(words_of("Input/output error, I/O error") == "input output error io error");
  CHECK(words_of("couldn't open, can not, is not") == "couldnot open cannot isnot");
  CHECK(words_of("open /var/lib/failed/timeout: denied") == "open denied");
  CHECK(words_of("http://lost.example/down is up") == "is up");
  CHECK(words_of("\tat x.y.Lost.connection(Lost.java:3)").empty());
  CHECK(words_of("running_partitioned_network node-left") == "running partitioned network node left");
  CHECK(words_of("election-timeout=1s \"timeout\":\"3s\" x") == "election= timeout= 1s timeout= 3s x");
}

TEST_CASE("a node's name or address is a word that patterns can require") {
  const NamesOfNodes nodes = {{"n1", true}, {"n2", false}, {"10.0.0.2", false}, {"db-main", false}, {"server", false}};
  const auto named = [&](std::string_view text) {
    const Sentence sentence(text, &nodes);
    std::string all;
    for (const Word& word : sentence.words())
      if (word.matches) all += (all.empty() ? "" : " ") + std::string(word.node.empty() ? word.text : word.node);
    return all;
  };
  CHECK(named("n2: gone") == "@node gone");
  CHECK(named("(n2) is gone, asked n1") == "@node is gone asked @self");
  CHECK(named("peer=10.0.0.2:7000 lost") == "peer @node lost");
  CHECK(named("tcp://10.0.0.2:7000 lost") == "@node lost");
  // "tcp" is not one of its words, because it is part of an address
  CHECK(Sentence("peers: tcp://10.0.0.2:7000", &nodes).words().size() == 2);
  CHECK(named("n2.cluster.local lost") == "@node lost");
  CHECK(named("db-main lost") == "@node lost");
  CHECK(named("n22 and xn2 and 10.0.0.21") == "n22 and xn2 and");
  // a node's name within the path of a folder does not name the node
  CHECK(named("open /srv/n2/data: denied") == "open denied");
  CHECK(named("open ./n2: denied") == "open denied");
  CHECK(named("pod store/n2 lost") == "pod store @node lost");  // but a qualified name does
  CHECK(named("removed kv@x.example/n2.") == "removed kv x example @node");
  CHECK(named("n2=lost") == "n2 lost");  // the name of a field does not name a node either
  // If a word is also the name of a node, it still has its own meaning.
  const Sentence plain("server lost", &nodes);
  REQUIRE(plain.words().size() == 2);
  CHECK(plain.words()[0].text == "server");
  CHECK(plain.words()[0].node == kOtherNode);
}

TEST_CASE("patterns support gaps, alternatives, classes, optional words and required punctuation") {
  const std::string lost = entry("lost", "<peer> .. is? lost|gone");
  CHECK(read(lost, "node n2 is lost") == "lost: node n2 is lost");
  CHECK(read(lost, "peer gone") == "lost: peer gone");
  CHECK(read(lost, "node one two three four lost").empty());
  CHECK(read(lost, "the node. It lost").empty());  // because "lost" is in the next sentence
  CHECK(read(entry("panic", "panic:"), "panic: x") == "panic: panic");
  CHECK(read(entry("panic", "panic:"), "do not panic, x").empty());
  CHECK(read(entry("late", "time*"), "timeouts") == "late: timeouts");
  CHECK(read(entry("operation", "*sync"), "fsync") == "operation: fsync");
  CHECK(read(entry("gone", "code= killed"), "code=killed") == "gone: code=killed");
  CHECK(read(entry("late", "timeout"), "timeout=3s").empty());
  for (const char* text : {"ping timeout", "ping timeout, again", "(ping timeout)"})
    CHECK(read(entry("late", "ping timeout$"), text) == "late: ping timeout");
  CHECK(read(entry("late", "ping timeout$"), "ping timeout 5s").empty());
}

TEST_CASE("an identifier is a setting, unless a verb says how it ended") {
  const std::string late = entry("late", "session timeout"), sync = entry("late", "flush .. sync took");
  CHECK(read(late, "sessionTimeout 30000").empty());
  CHECK(read(late, "sessionTimeout returned 30000") == "late: sessionTimeout");
  CHECK(read(sync, "slow flushOrSync took 9 s") == "late: flushOrSync took");
  CHECK(read(sync, "flushOrSync is what took 9 s").empty());
}

TEST_CASE("the words of an entry that is `apart` do not match as parts of one identifier") {
  const std::string apart =
      "[[meaning]]\nsays = \"error\"\nerror = \"EINVAL\"\napart = true\nwords = \"invalid argument\"\n"
      "example = \"x\"\nsource = \"x\"\n";
  CHECK(read(apart, "connect: invalid argument") == "error: invalid argument");
  CHECK(read(apart, "InvalidArgumentException: name is required").empty());
  CHECK(read(apart, "rpc error: code = InvalidArgument desc = bad key").empty());
  CHECK(read(apart, "std::invalid_argument: stoi").empty());
  const Sentence sentence("watch failed: ProtocolError(\"Connection broken\")");
  for (const Statement& one : Meanings::built_in().read(sentence)) CHECK(one.entry->says != Says::error);
}

TEST_CASE("in a chain of errors, what could not be done does not describe what precedes it") {
  const std::string lost = entry("lost", "peer|server .. failed");
  CHECK(read(lost, "server failed") == "lost: server failed");
  CHECK(read(lost, "preparing server: failed to open the log").empty());
  CHECK(read(lost, "preparing the server: failed") == "lost: server: failed");
}

TEST_CASE("negated and hypothetical statements have no meaning") {
  const std::string lost = entry("lost", "lost|down");
  for (const char* text : {"n2 is not down", "n2 was never lost", "it is no longer down", "may be lost",
                           "n2 isn't down", "check if n2 is down", "to avoid a lost link"}) {
    INFO(text);
    const bool link = std::string_view(text).ends_with("link");
    CHECK((link || read(lost, text).empty()));
  }
  CHECK(read(lost, "cannot reach n2: link down") == "lost: down");
  // A negation between the words of a pattern counts, unless the pattern itself contains it.
  const std::string wide = entry("lost", "<peer> ... down|lost"), denial = entry("lost", "<peer> .. not .. ready");
  CHECK(read(wide, "the peer on rack 3 is down") == "lost: peer on rack 3 is down");
  for (const char* text : {"peer is no longer down", "peer was not lost", "the peer may be down"}) {
    INFO(text);
    CHECK(read(wide, text).empty());
  }
  CHECK(read(denial, "peer not yet ready") == "lost: peer not yet ready");
  CHECK(read(wide, "peer lost 0 packets").empty());
  CHECK(read(wide, "peer lost 3 packets") == "lost: peer lost");
  CHECK(read(lost + entry("other", "lost and found"), "lost and found").empty());
}

TEST_CASE("invalid entries are reported with their line") {
  const auto mistake = [](const std::string& text) {
    const std::array<std::pair<std::string_view, std::string_view>, 1> files = {{{"x.toml", text}}};
    const Result<Meanings> meanings = Meanings::parse(files);
    return meanings ? std::string() : meanings.error().message;
  };
  CHECK(mistake("[[meaning]]\nsays = \"lost\"\nwords = \"gone\"\n").empty());
  CHECK(mistake("\n[[meaning]]\nsays = \"odd\"\nwords = \"gone\"\n").find("x.toml:2: says: 'odd' is none of") == 0);
  CHECK(mistake("[[meaning]]\nsays = \"lost\"\nwords = \"<no>\"\n").find("there are no words '<no>'") !=
        std::string::npos);
  CHECK(mistake("[[meaning]]\nsays = \"error\"\nerror = \"EODD\"\nwords = \"odd\"\n").find("error:") !=
        std::string::npos);
  CHECK(mistake("[[meaning]]\nsays = \"lost\"\nwords = \"is? gone\"\n").find("not optional") != std::string::npos);
  CHECK(mistake("[[meaning]]\nsays = \"lost\"\nwrods = \"gone\"\n").find("unknown key 'wrods'") != std::string::npos);
}
