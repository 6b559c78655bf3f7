// Workers that misbehave: processes that speak the protocol and are stuck, send unusable runs or do not answer.
#include <catch2/catch.hpp>

#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "engine/fleet.h"
#include "folder.h"

using namespace rose;
using namespace rose::engine;

namespace {

// A worker that says hello and is ready. Then it answers each run with "made" and no record (`unusable`), with an error
// of a kind (`environment`, `input`), or with signs of life only (`stuck`). `mute` sends nothing and ignores the end of
// its input.
constexpr const char* kWorker = R"(#!/usr/bin/env python3
import hashlib, json, struct, sys, time
def say(header):
    plain = json.dumps(header, separators=(",", ":")).encode()
    digest = hashlib.sha256(plain).hexdigest().encode()
    text = plain[:-1] + b',"sha256":"' + digest + b'"}'
    sys.stdout.buffer.write(b"ROSE" + struct.pack("<II", len(text), 0) + text + b"\n")
    sys.stdout.buffer.flush()
if sys.argv[1] == "mute":
    while True: time.sleep(1000)
while head := sys.stdin.buffer.read(12):
    header, payload = struct.unpack("<II", head[4:])
    message = json.loads(sys.stdin.buffer.read(header))
    sys.stdin.buffer.read(payload + 1)
    if message["type"] == "hello": say({"type": "hello", "protocol": message["protocol"], "rose": message["rose"]})
    if message["type"] == "begin": say({"type": "lacks", "digests": []}), say({"type": "ready", "others": []})
    if message["type"] == "run" and sys.argv[1] == "unusable": say({"type": "made", "id": message["id"]})
    if message["type"] == "run" and sys.argv[1] in ("environment", "input"):
        say({"type": "failed", "id": message["id"], "error": {"kind": sys.argv[1], "message": "no room", "hint": ""}})
    if message["type"] == "run" and sys.argv[1] == "stuck":
        while True:
            say({"type": "alive"})
            time.sleep(0.02)
)";

struct Rig {
  explicit Rig(const std::string& how, std::int64_t run_limit_ns = 0) {
    REQUIRE(write_file(folder / "worker", kWorker, 0700));
    Result<Engine> engine = Engine::make({.engine = (folder / "worker").string() + " " + how, .workers = 1});
    REQUIRE(engine);
    FleetOptions options;
    options.version = "1";
    options.run_limit_ns = run_limit_ns;
    fleet = std::make_unique<Fleet>(*std::move(engine), Tree{}, options);
  }
  void plan(int jobs) {
    std::vector<Job> all;
    for (int id = 1; id <= jobs; ++id) all.push_back({id, std::make_shared<const std::string>("version = 1\n"), -1});
    fleet->plan(all);
  }
  rose::test::Folder folder;
  std::unique_ptr<Fleet> fleet;
};

std::string reason(const Result<Done>& done) {
  if (!done) return done.error().message;
  const Result<replay::Run> run = done->open("run");
  return run ? run->result.reason : run.error().message;
}

}  // namespace

TEST_CASE("fleet: a worker that sends signs of life but does not end its run is lost") {
  Rig rig("stuck", kSecond / 10);
  rig.plan(1);
  CHECK(reason(rig.fleet->wait()).find("5 workers were lost during this run") != std::string::npos);
}

TEST_CASE("fleet: a worker that sends only unusable runs is not asked again") {
  Rig rig("unusable");
  rig.plan(3);
  // A run that was lost five times is abandoned; this may happen once before the worker has sent six unusable runs.
  Result<Done> done = rig.fleet->wait();
  if (done) done = rig.fleet->wait();
  REQUIRE_FALSE(done);
  const std::string last = done.error().message;
  CHECK(last.find("no worker is left") != std::string::npos);
  CHECK(last.find("not be used for 6 runs in succession, the last time because: the worker did not send a run") !=
        std::string::npos);
}

TEST_CASE("fleet: a run that a worker's machine cannot make is made by another worker") {
  Rig rig("environment");
  rig.plan(3);
  Result<Done> done = rig.fleet->wait();
  if (done) done = rig.fleet->wait();
  REQUIRE_FALSE(done);
  CHECK(done.error().kind == ErrorKind::environment);
  CHECK(done.error().message.find("the last time because: cannot make a run: no room") != std::string::npos);

  Rig wrong("input");
  wrong.plan(1);
  CHECK(reason(wrong.fleet->wait()) == "no room");
}

TEST_CASE("fleet: the end does not wait long for a worker that has never answered") {
  Rig rig("mute");
  rig.plan(1);
  const std::int64_t began = monotonic_ns();
  rig.fleet.reset();
  CHECK(monotonic_ns() - began < 60 * kSecond);
}

TEST_CASE("fleet: the limit of a run follows from its timeouts") {
  config::Config config;
  config.workload.emplace();
  config.workload->timeout_ns = 7200 * kSecond;
  CHECK(run_limit(config) > 2 * config.workload->timeout_ns);
}
