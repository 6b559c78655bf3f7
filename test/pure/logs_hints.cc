// What several nodes' logs together tell: who began again, who lost its role.
#include "logs_support.h"

#include <fstream>

#include "folder.h"
#include "logs/evidence.h"

using namespace rose;
using namespace rose::logs;
using namespace rose::logs::test;

namespace {

// Logs of n1, n2, ... of a failure and of a run without faults.
struct Hinted {
  rose::test::Folder folder;
  Templates kinds;
  Evidence evidence;

  Hinted(const std::vector<std::string>& failed, const std::vector<std::string>& usual) {
    evidence.normal = read("usual", usual);
    evidence.failure = read("failed", failed);
    evidence.difference = compare(evidence.failure, evidence.normal, kinds);
    evidence.hints = find_hints(evidence.failure, evidence.normal, evidence.difference, {{"n1", {"10.0.0.1"}}, {"n2", {"10.0.0.2"}}, {"n3", {"10.0.0.3"}}});
  }
  Logs read(const std::string& name, const std::vector<std::string>& texts) {
    std::vector<Input> inputs;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      inputs.push_back({folder / (name + std::to_string(i) + ".log"), "n" + std::to_string(i + 1)});
      std::ofstream(inputs.back().path) << texts[i];
    }
    return read_files(inputs, kinds);
  }
  [[nodiscard]] const Hint* find(Hint::Kind kind, const std::string& node) const {
    for (const Hint& hint : evidence.hints)
      if (hint.kind == kind && hint.node == node) return &hint;
    return nullptr;
  }
};

}  // namespace

TEST_CASE("a line of the banner alone is no new beginning", "[logs]") {
  const Hinted one({"ready at 10.0.0.1:7000\nmember 1 leads\nmember 2 leads\nmember 1 leads\n"}, {"ready at 10.0.0.1:7000\nmember 1 leads\n"});
  CHECK(one.find(Hint::Kind::end, "n1") == nullptr);
  const Hinted two({"0 puts\nready at 10.0.0.1:7000\n0 puts\nready at 10.0.0.1:7000\n"}, {"0 puts\nready at 10.0.0.1:7000\n"});
  const Hint* end = two.find(Hint::Kind::end, "n1");
  REQUIRE(end != nullptr);
  CHECK(end->signal == 9);
  CHECK(end->message == 1);
}

TEST_CASE("who says what another one says without faults has its role: that one may have been stopped, or cut off", "[logs]") {
  const std::string at = "2026-01-02 03:04:";
  const std::string led = at + "05 leader of term 1\n", follows = at + "04 listening\n";
  const Hinted one({follows + at + "40 leader of term 2\n", follows, follows + led}, {follows, follows, follows + led});
  const Hint* end = one.find(Hint::Kind::end, "n3");
  REQUIRE(end != nullptr);
  CHECK(one.find(Hint::Kind::stop, "n3") != nullptr);
  CHECK(one.find(Hint::Kind::silence, "n3") != nullptr);
  CHECK(one.find(Hint::Kind::end, "n1") == nullptr);
  // Another one was elected in the first place: that means nothing.
  const Hinted other({follows + led, follows, follows}, {follows, follows, follows + led});
  CHECK(other.find(Hint::Kind::end, "n3") == nullptr);
}

TEST_CASE("where no times tell who had a role first, the numbers do", "[logs]") {
  const Hinted one({"listening\nleader of term 2, from job 57 on\n", "listening\n", "listening\nleader of term 1, from job 0 on\n"},
                   {"listening\n", "listening\nleader of term 1, from job 0 on\n", "listening\n"});
  // In the run without faults n2 plays that role.
  CHECK(one.find(Hint::Kind::end, "n2") != nullptr);
  CHECK(one.find(Hint::Kind::stop, "n2") == nullptr);  // since when it stood still, nobody says
}
