// Which functions are suspects, and the story that is told.
#include <catch2/catch.hpp>

#include "explain_runs.h"
#include "logs/reader.h"

using namespace rose;
using explain::Group;
using script::Case;

namespace {

schedule::Frame frame(const std::string& function, const std::string& file = "store.c", int line = 10, const std::string& module = "/srv/kv") {
  schedule::Frame out;
  out.function = function;
  out.file = file;
  out.line = line;
  out.module = module;
  return out;
}

script::Run failing(int number) { return script::Run(number).enters(100, "request").enters(101, "save").faulted(102); }
script::Run sound(int number) { return script::Run(number).enters(100, "request").enters(101, "save"); }

}  // namespace

TEST_CASE("the innermost frame of the application comes first; the library's are no suspects", "[explain]") {
  Case one;
  for (int i = 0; i < 4; ++i) {
    one.add(Group::failing, failing(2 * i).stack({frame("write", "", 0, "/usr/lib/x86_64-linux-gnu/libc.so.6"), frame("write_epoch", "store.c", 27),
                                                  frame("save", "store.c", 44), frame("main", "store.c", 120),
                                                  frame("__libc_start_main", "", 0, "/lib/x86_64-linux-gnu/libc.so.6")}).says(900, 4, "not saved"));
    one.add(Group::sound, sound(2 * i + 1));
  }
  const explain::Explanation e = one.explain();
  CHECK(e.verdict == explain::Verdict::explained);
  REQUIRE(e.suspects.size() == 3);
  CHECK(e.suspects[0].function == "write_epoch");
  CHECK(e.suspects[0].file == "store.c");
  CHECK(e.suspects[0].line == 27);
  CHECK(e.suspects[1].function == "save");
  CHECK(e.suspects[1].why.find("it had called write_epoch") != std::string::npos);
  CHECK(e.suspects[2].function == "main");
  REQUIRE(e.stacks.size() == 1);
  CHECK(e.stacks[0].fault == "fault");
  CHECK(std::any_of(e.story.begin(), e.story.end(), [](const auto& line) { return line.text.find("in write_epoch (store.c:27), called from save") != std::string::npos; }));
}

TEST_CASE("where nothing differs nobody is accused, though it is known where the fault arrived", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, failing(2 * i).stack({frame("save", "store.c", 44)}));
    one.add(Group::sound, sound(2 * i + 1));
  }
  const explain::Explanation e = one.explain();
  CHECK(e.verdict == explain::Verdict::nothing_found);
  CHECK(e.reason.find("nothing by which") != std::string::npos);
  CHECK(e.reason.find("where the fault arrived") != std::string::npos);
  CHECK(e.suspects.empty());
  CHECK(e.stacks.size() == 1);
}

TEST_CASE("a function that is entered as ever, and of which no longer comes what always did, is a suspect; who only calls it at times is none", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    script::Run broken(2 * i), sound(2 * i + 1);
    for (int turn = 0; turn < 60; ++turn) {
      const int ms = 1000 + 100 * turn;
      for (script::Run* run : {&broken, &sound}) {
        run->enters(ms, "handle").enters(ms + 1, turn % 2 == 0 ? "change" : "ask");
        if (turn % 2 == 0) run->enters(ms + 2, "sync");
        if (turn % 2 == 0 && (run == &sound || turn < 30)) run->does(ms + 3, "fdatasync", "/data/journal");
      }
    }
    one.add(Group::failing, broken.faulted(3950, 2).ends(8000));
    one.add(Group::sound, sound.ends(8000));
  }
  const explain::Explanation e = one.explain();
  REQUIRE(e.verdict == explain::Verdict::explained);
  REQUIRE_FALSE(e.suspects.empty());
  CHECK(e.suspects[0].function == "sync");
  CHECK(e.suspects[0].why.find("always followed by 'fdatasync") != std::string::npos);
  const auto handle = std::find_if(e.suspects.begin(), e.suspects.end(), [](const auto& suspect) { return suspect.function == "handle"; });
  CHECK((handle == e.suspects.end() || handle->why.find("always followed") == std::string::npos));
}

TEST_CASE("of threads that a fault hits while they only wait one is told, and only where none does more", "[explain]") {
  for (const bool works : {true, false}) {
    Case one;
    for (int i = 0; i < 5; ++i) {
      script::Run run = failing(2 * i);
      for (int idle = 0; idle < 3; ++idle) run.stack({frame("runtime.futex", "runtime/sys_linux_amd64.s", 570, ""), frame("runtime.mcall", "runtime/asm_amd64.s", 496, "")});
      if (works) run.stack({frame("save", "store.c", 44)});
      one.add(Group::failing, run);
      one.add(Group::sound, sound(2 * i + 1));
    }
    const explain::Explanation e = one.explain();
    REQUIRE(e.stacks.size() == 1);
    CHECK(e.stacks[0].stack.frames.at(0).function == (works ? "save" : "runtime.futex"));
    CHECK(e.stacks[0].others == (works ? 3 : 2));
  }
}

TEST_CASE("a node that stood still is overtaken: the order differs, and nothing else", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    const int late = 700 + 11 * i, usual = 150 + 7 * i;
    one.add(Group::failing, failing(2 * i).stack({frame("merge", "worker.c", 40)}).enters(late, "put_back", 1).enters(400 + i, "take", 9, "n2"));
    one.add(Group::sound, sound(2 * i + 1).enters(usual, "put_back", 1).enters(400 + 3 * i, "take", 9, "n2"));
  }
  const explain::Explanation e = one.explain();
  CHECK(e.verdict == explain::Verdict::explained);
  REQUIRE(e.differences.size() == 1);
  CHECK(e.differences[0].words == "enters put_back only behind n2: enters take");
  CHECK(e.differences[0].node == "n1");
  REQUIRE(e.suspects.size() >= 2);
  CHECK(e.suspects[0].function == "merge");
  const auto line = std::find_if(e.story.begin(), e.story.end(), [](const auto& l) { return l.first_wrong; });
  REQUIRE(line != e.story.end());
  CHECK(line->text.starts_with("enters put_back only now: before it came n2: enters take"));
}

TEST_CASE("an order that equal runs disagree on, or that is close, is no difference", "[explain]") {
  Case varies, close, restarted;
  restarted.input.schedule.faults[0].kind = schedule::FaultKind::crash;
  for (int i = 0; i < 5; ++i) {
    varies.add(Group::failing, failing(2 * i).enters(300 + 100 * (i % 2), "put_back", 1).enters(350, "take", 9, "n2"));
    varies.add(Group::sound, sound(2 * i + 1).enters(250, "put_back", 1).enters(350, "take", 9, "n2"));
    close.add(Group::failing, failing(2 * i).enters(352 + 9 * i, "put_back", 1).enters(350, "take", 9, "n2"));
    close.add(Group::sound, sound(2 * i + 1).enters(348 - 9 * i, "put_back", 1).enters(350, "take", 9, "n2"));
    restarted.add(Group::failing, failing(2 * i).enters(700, "put_back", 1).enters(350, "take", 9, "n2"));
    restarted.add(Group::sound, sound(2 * i + 1).enters(150, "put_back", 1).enters(350, "take", 9, "n2"));
  }
  for (Case* one : {&varies, &close, &restarted}) CHECK(one->explain().verdict == explain::Verdict::nothing_found);
}

TEST_CASE("a server that waits when a fault comes at its time is hardly a suspect; nor is what starts a JVM one", "[explain]") {
  Case one;
  one.input.schedule.faults[0].kind = schedule::FaultKind::pause;
  one.input.schedule.faults[0].when.resize(1);
  one.input.schedule.faults[0].when[0].kind = schedule::ConditionKind::elapsed;
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, failing(2 * i).stack({frame("__GI___poll", "", 0, "/lib/x86_64-linux-gnu/libc.so.6"), frame("JLI_Launch", "", 0, "/usr/lib/jvm/java/lib/libjli.so"),
                                                  frame("serve"), frame("main")}).enters(103, "take_over", 2));
    one.add(Group::sound, sound(2 * i + 1));
  }
  const explain::Explanation e = one.explain();
  REQUIRE(e.suspects.size() >= 2);
  CHECK(e.suspects[0].function == "take_over");
  for (const explain::Suspect& s : e.suspects) {
    CHECK(s.function != "JLI_Launch");
    if (s.function == "serve") CHECK(s.score < 0.4);
  }
}

TEST_CASE("an interpreter is no suspect; a program of one's own that is called node is one") {
  for (const auto& [program, suspect] : {std::pair("/usr/bin/python3.11", false), {"/usr/bin/node", false}, {"/opt/ruby/bin/ruby", false}, {"/srv/app/node", true}}) {
    INFO(program);
    Case one;
    for (int i = 0; i < 5; ++i) {
      one.add(Group::failing, failing(2 * i).stack({frame("__GI___write", "", 0, "/lib/x86_64-linux-gnu/libc.so.6"), frame("evaluate", "", 0, program), frame("main", "", 0, program)}).enters(103, "take_over", 2));
      one.add(Group::sound, sound(2 * i + 1));
    }
    const explain::Explanation e = one.explain();
    CHECK(std::any_of(e.suspects.begin(), e.suspects.end(), [](const auto& s) { return s.function == "evaluate"; }) == suspect);
  }
}

TEST_CASE("a stack trace that only failing runs log accuses its functions, innermost first", "[explain]") {
  const std::string java = "Exception occurred from thread LearnerHandler\njava.lang.NullPointerException: no file\n\tat java.base/java.io.File.length(File.java:12)\n"
                           "\tat io.x.Database.limit(Database.java:279)\n\tat org.x.Learner.run(Learner.java:61)\n";
  const std::string python = "Traceback (most recent call last):\n  File \"/srv/spool.py\", line 80, in <module>\n    main()\n  File \"/srv/spool.py\", line 58, in adopt\n"
                             "    there[1]\nKeyError: 1\n";
  const std::string go = "panic: no\n\ngoroutine 7 [running]:\npanic({0x1, 0x2})\n\t/usr/local/go/src/runtime/panic.go:770 +0x132\nmain.(*shelf).put(0xc0, 0x1)\n"
                         "\t/srv/shelf.go:55 +0x1d\nmain.main()\n\t/srv/shelf.go:111 +0x20\n\ngoroutine 8 [select]:\nmain.other()\n\t/srv/shelf.go:9 +0x1\n";
  const std::string javascript = "Error: ENOSPC: no space left on device, write\n    at Object.writeSync (node:fs:921:3)\n    at Store.save (/srv/store.js:41:8)\n"
                                 "    at async Server.handle (file:///srv/server.mjs:12:5)\n    at process.processTicksAndRejections (node:internal/process/task_queues:95:5) {\n"
                                 "  errno: -28\n}\n";
  const std::string dotnet = "Unhandled exception. System.IO.IOException: No space left on device\n   at System.IO.RandomAccess.WriteAtOffset(SafeFileHandle handle)\n"
                             "   at Shop.Store.Save(String path) in /srv/Store.cs:line 42\n   at Shop.Program.Main(String[] args) in /srv/Program.cs:line 7\n";
  const std::string ruby = "/srv/store.rb:41:in `block in save': No space left on device (Errno::ENOSPC)\n\tfrom /srv/store.rb:12:in 'Store#put'\n\tfrom /srv/shop.rb:3:in `<main>'\n";
  const std::string rust = "thread 'main' panicked at src/main.rs:12:5:\nno\nstack backtrace:\n   0: std::panicking::begin_panic\n             at /rustc/17067e/library/std/src/panicking.rs:645:5\n"
                           "   1: shelf::put::h0123456789abcdef\n             at ./src/main.rs:12:5\n   2: shelf::serve\n             at ./src/main.rs:40:9\n";
  const std::tuple<std::string, std::string, std::string, int> expected[] = {
      {java, "io.x.Database.limit", "org.x.Learner.run", 279}, {python, "adopt", "main", 58}, {go, "main.(*shelf).put", "main.main", 55},
      {javascript, "Store.save", "Server.handle", 41},   {dotnet, "Shop.Store.Save", "Shop.Program.Main", 42}, {ruby, "save", "Store#put", 41},
      {rust, "shelf::put", "shelf::serve", 12}};
  for (const auto& [text, innermost, outer, line] : expected) {
    INFO(text);
    // As the reader of logs puts its lines together, on standard error and in a log with times.
    for (const char* before : {"", "2026-11-27 01:02:03,456 ERROR request failed: "}) {
      logs::Templates kinds;
      const logs::Logs read = logs::read_text(before + text + (*before != 0 ? "2026-11-27 01:02:04,456 INFO next\n" : ""), {"x.log", "n1"}, {}, kinds);
      REQUIRE(read.nodes.size() == 1);
      const auto& messages = read.nodes[0].messages;
      CHECK(std::any_of(messages.begin(), messages.end(), [&](const logs::Message& message) {
        const std::vector<schedule::Frame> frames = explain::said_frames(read.text(message));
        return std::any_of(frames.begin(), frames.end(), [&, want = innermost](const schedule::Frame& frame) { return frame.function == want; }) &&
               std::any_of(frames.begin(), frames.end(), [&, want = outer](const schedule::Frame& frame) { return frame.function == want; });
      }));
    }
    Case one;
    for (int i = 0; i < 5; ++i) {
      one.add(Group::failing, failing(2 * i).says_trace(110, 7, text));
      one.add(Group::sound, sound(2 * i + 1));
    }
    const explain::Explanation e = one.explain();
    REQUIRE(e.suspects.size() >= 2);
    CHECK(e.suspects[0].function == innermost);
    CHECK(e.suspects[0].line == line);
    CHECK(e.suspects[0].why.find("stack trace") != std::string::npos);
    CHECK(std::any_of(e.suspects.begin(), e.suspects.end(), [&, want = outer](const auto& s) { return s.function == want; }));
    CHECK(std::none_of(e.suspects.begin(), e.suspects.end(), [](const auto& s) { return s.function.find("File.length") != std::string::npos || s.function == "main.other"; }));
  }
  for (const char* none : {"", "an ordinary line", "goroutine 5 [running]:", "Traceback (most recent call last):\n  File \"x", "\tat ", "goroutine 1 [x]:\nf(\n.go:",
                           "    at ", "    at f (", "    at (:1)", ".rb::in `", "a.rb:1:in ", " at f() in :line ", "stack backtrace:\n  0: \n at ", "stack backtrace:\n: \nat :1"})
    CHECK(explain::said_frames(none).empty());
}

TEST_CASE("a stack trace counts whatever else differs before it is logged", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    script::Run run = failing(2 * i);
    for (int k = 0; k < 10; ++k) run.enters(103 + k, "elect" + std::to_string(k), 2 + k, "n2");
    one.add(Group::failing, run.says_trace(120, 7, "java.lang.NullPointerException\n\tat org.x.Database.limit(Database.java:279)\n\tat org.x.Learner.run(Learner.java:61)\n"));
    one.add(Group::sound, sound(2 * i + 1));
  }
  const explain::Explanation e = one.explain();
  REQUIRE_FALSE(e.suspects.empty());
  CHECK(e.suspects[0].function == "org.x.Database.limit");
}

TEST_CASE("what the fault brings without the bug, too, is less of a suspect where something comes with the bug alone", "[explain]") {
  const auto score_of_retry = [](bool forgets) {
    Case one;
    for (int i = 0; i < 5; ++i) {
      script::Run run = failing(3 * i).enters(103, "retry");
      if (forgets) run.enters(104, "forget", 3, "n2");
      one.add(Group::failing, run);
      one.add(Group::sound, sound(3 * i + 1));
      one.add(Group::near, failing(3 * i + 2).enters(103, "retry"));
    }
    const explain::Explanation e = one.explain();
    for (const explain::Suspect& s : e.suspects)
      if (s.function == "retry") return s.score;
    return 0.0;
  };
  CHECK(score_of_retry(false) > 0.6);
  CHECK(score_of_retry(true) < 0.8 * score_of_retry(false));
}

TEST_CASE("a library's function that only failing runs enter is a difference, and no suspect", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    script::Run run = failing(2 * i).enters(103, "crypto/sha256.Sum256").enters(104, "main.recover").enters(105, "sum/of.Parts");
    run.enters(106, "crypto/sha256.Sum256", 3, "n2");
    one.add(Group::failing, run);
    one.add(Group::sound, sound(2 * i + 1));
  }
  one.input.place = [](const std::string&, const std::string& function) {
    if (function == "crypto/sha256.Sum256") return explain::Place{"/usr/local/go/src/crypto/sha256/sha256.go", 0};
    return explain::Place{"/srv/" + function + ".go", 0};
  };
  const explain::Explanation e = one.explain();
  const auto suspected = [&](std::string_view name) {
    return std::any_of(e.suspects.begin(), e.suspects.end(), [&](const explain::Suspect& s) { return s.function == name; });
  };
  CHECK(suspected("main.recover"));
  CHECK(suspected("sum/of.Parts"));
  CHECK_FALSE(suspected("crypto/sha256.Sum256"));
  CHECK(std::any_of(e.differences.begin(), e.differences.end(), [](const auto& told) { return told.words.find("crypto/sha256.Sum256") != std::string::npos; }));
}

TEST_CASE("a function is one suspect, whether a stack or a symbol names it", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, failing(2 * i).stack({frame("save")}).enters(103, "(anonymous namespace)::save(int, char*)"));
    one.add(Group::sound, sound(2 * i + 1));
  }
  const explain::Explanation e = one.explain();
  CHECK(std::count_if(e.suspects.begin(), e.suspects.end(), [](const auto& s) { return s.function.find("save") != std::string::npos; }) == 1);
  REQUIRE_FALSE(e.suspects.empty());
  CHECK(e.suspects[0].function == "(anonymous namespace)::save(int, char*)");
  CHECK(e.suspects[0].line == 10);
  CHECK(e.suspects[0].score > 0.95);
}

TEST_CASE("without a stack, what the thread had entered is told when runs differ", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, failing(2 * i).enters(103, "give_up"));
    one.add(Group::sound, sound(2 * i + 1));
  }
  const explain::Explanation e = one.explain();
  const auto save = std::find_if(e.suspects.begin(), e.suspects.end(), [](const auto& s) { return s.function == "save"; });
  REQUIRE(save != e.suspects.end());
  CHECK(save->why.find("no stack is known") != std::string::npos);
  CHECK(std::any_of(e.limits.begin(), e.limits.end(), [](const auto& limit) { return limit.starts_with("no stack is known"); }));
}

TEST_CASE("a limit of memory hits the process that dies of it, when it does", "[explain]") {
  Case one;
  one.input.schedule.faults[0].kind = schedule::FaultKind::memory;
  one.input.schedule.faults[0].when.resize(1);
  one.input.schedule.faults[0].when[0].kind = schedule::ConditionKind::elapsed;
  for (int i = 0; i < 5; ++i) {
    const auto both = [&](int number) { return script::Run(number).enters(90, "merge", 7).of_process(7).enters(100, "request").enters(101, "save"); };
    one.add(Group::failing, both(2 * i).faulted(102, 0).enters(130, "request").enters(140, "grow", 7).of_process(7).enters(141, "answer").out_of_memory(150, 7));
    one.add(Group::sound, both(2 * i + 1).enters(130, "request").enters(140, "grow", 7).of_process(7).enters(141, "answer"));
  }
  const explain::Explanation e = one.explain();
  CHECK(e.verdict == explain::Verdict::explained);
  CHECK(std::any_of(e.differences.begin(), e.differences.end(), [](const auto& d) { return d.words == "a process crashed by SIGKILL, out of memory"; }));
  REQUIRE(e.suspects.size() == 2);
  CHECK(e.suspects[0].function == "grow");
  CHECK(e.suspects[0].why.find("before the kernel ended the process for its memory") != std::string::npos);
  CHECK(e.suspects[1].function == "merge");
}

TEST_CASE("the faulted thread goes before the same node, and that before other nodes", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, failing(2 * i).enters(103, "here", 1).enters(103, "beside", 2).enters(103, "far", 3, "n2"));
    one.add(Group::sound, sound(2 * i + 1));
  }
  const explain::Explanation e = one.explain();
  std::vector<std::string> order;
  for (const explain::Suspect& s : e.suspects)
    if (s.function == "here" || s.function == "beside" || s.function == "far") order.push_back(s.function);
  CHECK(order == std::vector<std::string>{"here", "beside", "far"});
}

TEST_CASE("a failed call accuses the function that its thread was in", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, failing(2 * i).enters(300, "reload", 5).fails(301, "openat", 2, "/data/epoch", 5));
    one.add(Group::sound, sound(2 * i + 1).enters(300, "reload", 5));
  }
  const explain::Explanation e = one.explain();
  const auto reload = std::find_if(e.suspects.begin(), e.suspects.end(), [](const auto& s) { return s.function == "reload"; });
  REQUIRE(reload != e.suspects.end());
  CHECK(reload->why.find("openat fails with ENOENT") != std::string::npos);
}

TEST_CASE("of methods of Java that an exception leaves in failing runs only, though all runs enter them, the outermost was broken off", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, failing(2 * i).enters(300, "x.Learner.sync", 5).enters(300, "x.Packet.read", 5).enters(301, "x.Packet.read throws java.io.EOFException", 5)
                                .enters(301, "x.Learner.sync throws java.io.EOFException", 5));
    one.add(Group::sound, sound(2 * i + 1).enters(300, "x.Learner.sync", 5).enters(300, "x.Packet.read", 5));
  }
  const explain::Explanation e = one.explain();
  const auto sync = std::find_if(e.suspects.begin(), e.suspects.end(), [](const auto& s) { return s.function == "x.Learner.sync"; });
  REQUIRE(sync != e.suspects.end());
  const auto read = std::find_if(e.suspects.begin(), e.suspects.end(), [](const auto& s) { return s.function == "x.Packet.read"; });
  REQUIRE(read != e.suspects.end());
  CHECK(sync->score > read->score);
  CHECK(sync->why.find("left by java.io.EOFException after the fault in 5 of 5 failing and 0 of 5 sound runs") != std::string::npos);
}

TEST_CASE("which node is hit may change from run to run", "[explain]") {
  Case one;
  for (int i = 0; i < 6; ++i) {
    const std::string node = "n" + std::to_string(i % 3 + 1);
    one.add(Group::failing, script::Run(2 * i).enters(100, "lead", 1, node).faulted(101, 1, node).enters(150, "take_over", 2, i % 3 == 0 ? "n2" : "n1"));
    one.add(Group::sound, script::Run(2 * i + 1).enters(100, "lead", 1, node));
  }
  const explain::Explanation e = one.explain();
  CHECK(e.verdict == explain::Verdict::explained);
  CHECK(std::any_of(e.differences.begin(), e.differences.end(), [](const auto& d) { return d.words == "enters take_over" && d.node.empty(); }));
  const auto line = std::find_if(e.story.begin(), e.story.end(), [](const auto& l) { return l.text.starts_with("enters take_over"); });
  REQUIRE(line != e.story.end());
  CHECK(line->node == "n2");
}

TEST_CASE("alternatives of one group are one fault that hits other nodes in other runs", "[explain]") {
  Case one;
  one.input.schedule.faults.clear();
  for (const char* node : {"n1", "n2", "n3"}) {
    schedule::Fault fault;
    fault.kind = schedule::FaultKind::crash;
    fault.id = std::string("kill-") + node;
    fault.node = node;
    fault.group = "leader";
    one.input.schedule.faults.push_back(fault);
  }
  for (int i = 0; i < 6; ++i) {
    const std::string node = "n" + std::to_string(i % 3 + 1);
    one.add(Group::failing, script::Run(2 * i).enters(100, "lead", 1, node).faulted(101, 1, node, "kill-" + node).enters(150, "take_over", 2, i % 3 == 0 ? "n2" : "n1"));
    one.add(Group::sound, script::Run(2 * i + 1).enters(100, "lead", 1, node));
  }
  const explain::Explanation e = one.explain();
  CHECK(e.verdict == explain::Verdict::explained);
  CHECK(std::any_of(e.differences.begin(), e.differences.end(), [](const auto& d) { return d.words == "enters take_over" && d.node.empty(); }));
  CHECK(std::any_of(e.limits.begin(), e.limits.end(), [](const auto& limit) { return limit.find("whichever node") != std::string::npos; }));
}

TEST_CASE("a thread that waits for a node that is cut off is told as such", "[explain]") {
  Case one;
  one.input.schedule.faults[0].kind = schedule::FaultKind::partition;
  for (int i = 0; i < 5; ++i) {
    script::Run run = failing(2 * i).stack({frame("recv", "", 0, "/usr/lib/x86_64-linux-gnu/libc.so.6"), frame("pull", "follow.c", 7)});
    run.result().faults.back().stacks.back().why = "waits in recvfrom for n2 (10.0.0.2:7000), which is cut off";
    one.add(Group::failing, run.enters(103, "give_up"));
    one.add(Group::sound, sound(2 * i + 1));
  }
  const explain::Explanation e = one.explain();
  CHECK(std::any_of(e.suspects.begin(), e.suspects.end(), [](const auto& s) { return s.function == "pull" && s.why.find("which is cut off") != std::string::npos; }));
  CHECK(std::any_of(e.story.begin(), e.story.end(), [](const auto& line) { return line.text == "thread writer waits in recvfrom for n2 (10.0.0.2:7000), which is cut off: in pull (follow.c:7)"; }));
}

TEST_CASE("the story goes from the fault to the symptom, in order, each line with its evidence", "[explain]") {
  Case one;
  one.input.oracle_said = "100 messages acknowledged, 3 of them gone";
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, failing(2 * i).enters(103, "give_up").says(104, 9, "warning: not saved").enters(400, "drop", 7, "n2"));
    one.add(Group::sound, sound(2 * i + 1).enters(103, "commit"));
  }
  const explain::Explanation e = one.explain();
  REQUIRE(e.story.size() >= 4);
  CHECK(e.story.size() <= explain::kMostStoryLines);
  CHECK(e.story.front().kind == explain::StoryLine::Kind::fault);
  CHECK(e.story.back().kind == explain::StoryLine::Kind::symptom);
  CHECK(e.story.back().text.find("3 of them gone") != std::string::npos);
  for (std::size_t i = 1; i < e.story.size(); ++i) CHECK(e.story[i - 1].ts_ns <= e.story[i].ts_ns);
  for (const explain::StoryLine& line : e.story) CHECK_FALSE(line.evidence.empty());
  const auto message = std::find_if(e.story.begin(), e.story.end(), [](const auto& l) { return l.text.starts_with("logs 'warning: not saved'"); });
  REQUIRE(message != e.story.end());
  CHECK(message->evidence.starts_with("n1/stderr.log:1"));
}

TEST_CASE("frames of runtimes are told from those of the application", "[explain]") {
  CHECK(explain::is_library(frame("runtime.futex", "/usr/lib/go/src/runtime/sys_linux_amd64.s")));
  CHECK(explain::is_library(frame("std::vector<int>::push_back(int const&)", "/usr/include/c++/12/bits/stl_vector.h")));
  CHECK(explain::is_library(frame("std::sys::pal::unix::fs::File::write", "/rustc/abc/library/std/src/fs.rs")));
  CHECK(explain::is_library(frame("pwrite64", "", 0, "/lib/x86_64-linux-gnu/libc.so.6")));
  CHECK(explain::is_library(frame("java.io.FileOutputStream.writeBytes", "FileOutputStream.java", 0, "")));
  CHECK_FALSE(explain::is_library(frame("org.x.Store.append", "Store.java", 0, "")));
  CHECK_FALSE(explain::is_library(frame("main.(*shelf).checkpoint", "/src/shelf.go")));
  CHECK(explain::is_library(frame("io/ioutil.ReadFile", "io/ioutil/ioutil.go")));
  CHECK(explain::is_library(frame("encoding/json.(*Decoder).Decode", "/opt/go/src/encoding/json/stream.go")));
  CHECK(explain::is_library(frame("os/signal.signal_recv", "runtime/sigqueue.go")));
  CHECK(explain::is_library(frame("sort.insertionSort_func", "")));  // who calls a suspect may be known by its name alone
  CHECK(explain::is_library(frame("encoding/json.(*Decoder).Decode", "")));
  CHECK_FALSE(explain::is_library(frame("sort.constprop.0", "")));
  CHECK_FALSE(explain::is_library(frame("sort.Rows", "sort/rows.py")));
  CHECK_FALSE(explain::is_library(frame("container/list.Push", "/src/shop/container/list/list.go")));
  CHECK_FALSE(explain::is_library(frame("github.com/x/io.Read", "github.com/x/io@v1.0.0/read.go")));
  CHECK_FALSE(explain::is_library(frame("Store::install(unsigned long)", "store.cc")));
  CHECK_FALSE(explain::is_library(frame("write_all", "", 0, "/opt/app/lib/libc.so")));
}

TEST_CASE("who calls what only failing runs enter is a suspect, behind it", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, failing(3 * i).enters(104, "expire", 7).enters(105, "revoke", 7).enters(106, "retry", 8));
    one.add(Group::sound, sound(3 * i + 1));
    one.add(Group::near, failing(3 * i + 2).enters(106, "retry", 8));
  }
  explain::Explanation e = one.explain();
  const std::vector<std::string> fresh = fresh_functions(e, 10);
  CHECK(fresh == std::vector<std::string>{"expire", "revoke"});
  CHECK(fresh_functions(e, 1).size() == 1);
  const auto call = [](const std::string& function, const std::string& by) {
    schedule::RunResult result;
    result.trace.meta.workload_ts = script::kZero;
    result.faults.push_back({});
    result.faults[0].fired = true;
    result.faults[0].fired_ns = 100;
    for (const std::int64_t at : {50, 150}) {
      schedule::Value value;
      value.ts_ns = script::kZero + at;
      value.text = at == 50 ? "before (a.cc:1)" : by;
      value.node = "n1";
      value.question = 1;
      result.values.push_back(value);
    }
    const std::vector<explain::Call> calls = explain::calls_of(result, {"other:callers", function + ":callers"});
    REQUIRE(calls.size() == 1);
    return calls[0];
  };
  const explain::Call run = call("expire", "Server::run(int) (server.cc:71)");
  CHECK(run.function == "expire");
  CHECK(run.caller == "Server::run(int)");
  CHECK(run.file == "server.cc");
  CHECK(run.line == 71);
  CHECK(call("expire", "run (+0x4f)").file.empty());
  add_callers(e, {run, run, call("revoke", "expire (server.cc:90)"), call("expire", "std::__invoke (invoke.h:3)"), call("retry", "loop (server.cc:12)")});
  const auto at = [&](const std::string& function) {
    return std::find_if(e.suspects.begin(), e.suspects.end(), [&](const auto& s) { return s.function == function; }) - e.suspects.begin();
  };
  CHECK(at("expire") == 0);
  CHECK(at("Server::run(int)") == 1);
  CHECK(e.suspects[1].why == "calls expire (server.cc:71), which only failing runs enter after the fault");
  CHECK(e.suspects[1].file == "server.cc");
  CHECK(e.suspects[1].line == 71);
  CHECK(e.suspects[0].why.ends_with("; called by Server::run(int) (server.cc:71); calls revoke (server.cc:90), which only failing runs enter after the fault"));
  CHECK(e.suspects[static_cast<std::size_t>(at("revoke"))].score < 0.7 * e.suspects[1].score);  // only expire() calls it
  CHECK(std::any_of(e.story.begin(), e.story.end(), [](const auto& line) { return line.first_wrong && line.text.starts_with("enters expire, called by Server::run(int) (server.cc:71): "); }));
  CHECK(std::none_of(e.suspects.begin(), e.suspects.end(), [](const auto& s) { return s.function.starts_with("std::"); }));
  CHECK(std::is_sorted(e.suspects.begin(), e.suspects.end(), [](const auto& a, const auto& b) { return a.score > b.score; }));
  // Of a long name of Java's the last 64 bytes are told.
  const std::string longest = "org.apache.hadoop.hdfs.server.namenode.FSEditLog$JournalAndStream.abort";
  e.path.push_back(longest);
  const explain::Call java = call("expire", longest.substr(longest.size() - 64) + " (line 12)");
  CHECK(java.line == 12);
  CHECK(java.file.empty());
  add_callers(e, {java});
  CHECK(at(longest) < static_cast<long>(e.suspects.size()));
}

TEST_CASE("of a function that only failing runs enter, what it does then says nothing more", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, failing(2 * i).enters(104, "handler", 7).enters(105, "report", 7).fails(106, "unlink", ENOENT, "/srv/kv/a", 7));
    one.add(Group::sound, sound(2 * i + 1));
  }
  const explain::Explanation e = one.explain();
  const auto handler = std::find_if(e.suspects.begin(), e.suspects.end(), [](const auto& s) { return s.function == "handler"; });
  REQUIRE(handler != e.suspects.end());
  CHECK(handler->score < 0.9);
  CHECK(handler->why.find("what its thread does next is another: enters report") != std::string::npos);
}

TEST_CASE("what comes of an error counts less than the way it is returned", "[explain]") {
  for (const schedule::FaultKind kind : {schedule::FaultKind::syscall, schedule::FaultKind::crash}) {
    CAPTURE(schedule::kind_name(kind));
    Case one;
    for (int i = 0; i < 5; ++i) {
      one.add(Group::failing, failing(2 * i).stack({frame("write_epoch", "store.c", 27), frame("save", "store.c", 44)}).enters(104, "warn"));
      one.add(Group::sound, sound(2 * i + 1));
    }
    one.input.schedule.faults[0].kind = kind;
    const explain::Explanation e = one.explain();
    REQUIRE(e.suspects.size() >= 3);
    CHECK(e.suspects[kind == schedule::FaultKind::syscall ? 1 : 2].function == "save");
  }
}
