// This agent is loaded into Python processes (see site.py). It reports the entries of the application's functions, the
// functions that exceptions leave and those that catch them, to a BPF program that is attached to rose_jvm_enter. It
// also stores which functions each thread is executing (python/stacks_layout.h). It uses only functions that every
// CPython since 3.6 exports, and the C library of the process. It calls functions of Python only while it holds the
// interpreter's lock. Forked processes share the file.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "python/stacks_layout.h"

extern "C" {
struct PyObject;
using Profile = int (*)(PyObject*, PyObject* frame, int what, PyObject*);
void PyEval_SetProfile(Profile, PyObject*);
PyObject* PyObject_GetAttrString(PyObject*, const char*);
const char* PyUnicode_AsUTF8(PyObject*);
long PyLong_AsLong(PyObject*);
void PyErr_Clear();
void Py_IncRef(PyObject*);
void Py_DecRef(PyObject*);
__attribute__((weak)) PyObject* PyFrame_GetCode(PyObject* frame);  // from 3.9 on, as the next one
__attribute__((weak)) PyObject* PyFrame_GetBack(PyObject* frame);  // the caller's frame; null for the outermost one

// `let_go` is 1 if the following entries are not reported, because the function has reached the limit of reports.
__attribute__((noinline, visibility("default"))) void rose_jvm_enter(const char*, std::uint32_t /*let_go*/) {
  __asm__ volatile("nop" ::: "memory");
}
}

namespace rose::python {
namespace {

// PyTrace_CALL, PyTrace_RETURN, PyTrace_C_CALL, PyTrace_C_EXCEPTION
constexpr int kCall = 0, kReturn = 3, kCallOfC = 4, kExceptionOfC = 5;
// see base/leaving.h
constexpr const char *kThrowsException = " throws exception", *kCatchesException = " catches exception";
constexpr std::uint32_t kCodes = 1 << 15;
constexpr std::uint32_t kForeign = 0xffffffff;
// The limit of reports per function: at most kBurst entries at once, and on average one entry per kEntryNs.
constexpr std::uint32_t kBurst = 1000;
constexpr std::int64_t kEntryNs = 10'000'000;

StacksFile* stacks = nullptr;
std::uint32_t forks = 0;  // number of forks since the first process

struct Budget {
  std::uint32_t reported;  // number of reports that count against kBurst
  std::int64_t paid_ns;    // `reported` was last reduced at this time, by one for each kEntryNs
  bool silent;             // the last report said that later ones are left out
};
struct Code {
  PyObject* code;          // the agent holds a reference, so that no other object gets this address
  std::uint32_t function;  // number of the function; 0: there are too many; kForeign: not part of the application
  Budget entries, exceptions, catches;
};
Code codes[kCodes];
std::uint32_t known = 0;

std::int64_t now_ns() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

// Copies a text. If it is too long, its end is kept, because the end distinguishes files.
void copy(char* to, std::size_t room, const char* from) {
  const std::size_t size = std::strlen(from);
  if (size >= room) from += size - (room - 1);
  std::strncpy(to, from, room - 1);
  to[room - 1] = 0;
}

void append(char* to, std::size_t room, const char* from) {
  const std::size_t used = std::strlen(to);
  std::strncpy(to + used, from, room - used - 1);
  to[room - 1] = 0;
}

// The installed packages that are the application: "/celery/". See rose_python_own().
char own_packages[1024] = "";

// True for files of an installed package that is the application: "/usr/lib/python3/dist-packages/patroni/ha.py".
bool is_own_package(const char* file) {
  constexpr const char* kFolder = "-packages/";
  const char* name = nullptr;
  for (const char* at = std::strstr(file, kFolder); at != nullptr; at = std::strstr(name, kFolder))
    name = at + std::strlen(kFolder);
  if (name == nullptr) return false;
  char wanted[128];
  const std::size_t size = std::strcspn(name, "/.");
  if (size == 0 || size + 3 > sizeof wanted) return false;
  wanted[0] = '/';
  std::memcpy(wanted + 1, name, size);
  std::strcpy(wanted + 1 + size, "/");
  return std::strstr(own_packages, wanted) != nullptr;
}

// True for the standard library, for installed packages that are not the application, and for code without a file.
bool is_foreign(const char* file) {
  if (is_own_package(file)) return false;
  return file[0] == '<' || std::strstr(file, "lib/python") != nullptr || std::strstr(file, "lib64/python") != nullptr ||
         std::strstr(file, "-packages/") != nullptr || std::strstr(file, "/rose.python/") != nullptr;
}

// Writes the module's name to `to`: "store" for "/srv/store.py", "store/__init__.py" and "store/__main__.py".
void put_module(char* to, std::size_t room, const char* file) {
  char path[512];
  copy(path, sizeof path, file);
  const auto cut = [&](const char* end) {
    const std::size_t size = std::strlen(path), tail = std::strlen(end);
    if (size > tail && std::strcmp(path + size - tail, end) == 0) path[size - tail] = 0;
  };
  cut(".py");
  cut("/__init__");
  cut("/__main__");
  const char* slash = std::strrchr(path, '/');
  copy(to, room, slash != nullptr ? slash + 1 : path);
}

// An attribute that is a text. Valid as long as the object exists; null if there is no such attribute.
const char* text_of(PyObject* code, const char* attribute) {
  PyObject* value = PyObject_GetAttrString(code, attribute);
  const char* text = value != nullptr ? PyUnicode_AsUTF8(value) : nullptr;
  if (text == nullptr) PyErr_Clear();
  if (value != nullptr) Py_DecRef(value);
  return text;
}

// True for the body of a class, which is executed once when its module is loaded. It has its own code object, like a
// function, but uses no local variables (CO_OPTIMIZED in Python's inspect module). The body of a module has the name
// "<module>".
bool is_class_body(PyObject* code, const char* name) {
  constexpr long kOptimized = 1;
  if (name[0] == '<') return false;
  PyObject* flags = PyObject_GetAttrString(code, "co_flags");
  if (flags == nullptr) {
    PyErr_Clear();
    return false;
  }
  const long value = PyLong_AsLong(flags);
  Py_DecRef(flags);
  return (value & kOptimized) == 0;
}

// True for a comprehension or a generator expression. It has its own code object, but is a part of the function in
// which it is written. (Since 3.12, list, set and dict comprehensions have none.)
bool is_comprehension(const char* name) {
  const std::size_t length = std::strlen(name);
  constexpr const char* kEnds[] = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"};
  for (const char* end : kEnds) {
    const std::size_t size = std::strlen(end);
    if (length >= size && std::strcmp(name + length - size, end) == 0) return true;
  }
  return false;
}

std::uint32_t make_function(PyObject* code) {
  const char* file = text_of(code, "co_filename");
  const char* name = text_of(code, "co_qualname");  // from 3.11 on
  if (name == nullptr) name = text_of(code, "co_name");
  if (file == nullptr || name == nullptr || is_foreign(file) || is_class_body(code, name) || is_comprehension(name))
    return kForeign;
  if (__atomic_load_n(&stacks->functions, __ATOMIC_RELAXED) >= kMostFunctions) return 0;
  const std::uint32_t number = __atomic_fetch_add(&stacks->functions, 1, __ATOMIC_RELAXED);
  if (number == 0 || number >= kMostFunctions) return 0;
  StackFunction& function = stacks->function[number];
  put_module(function.name, sizeof function.name, file);
  append(function.name, sizeof function.name, ".");
  // Leave out "<locals>." in a name such as "outer.<locals>.inner".
  for (const char* part = name; *part != 0;) {
    constexpr const char* kLocals = "<locals>.";
    if (std::strncmp(part, kLocals, std::strlen(kLocals)) == 0) {
      part += std::strlen(kLocals);
      continue;
    }
    const char one[2] = {*part++, 0};
    append(function.name, sizeof function.name, one);
  }
  copy(function.file, sizeof function.file, file);
  PyObject* line = PyObject_GetAttrString(code, "co_firstlineno");
  if (line != nullptr) {
    function.line = static_cast<std::uint32_t>(PyLong_AsLong(line));
    Py_DecRef(line);
  } else {
    PyErr_Clear();
  }
  return number;
}

Code* find(PyObject* code) {
  auto at = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(code) >> 4) * 2654435761u % kCodes;
  for (;; at = (at + 1) % kCodes) {
    if (codes[at].code == code) return &codes[at];
    if (codes[at].code != nullptr) continue;
    if (known >= kCodes / 2) return nullptr;
    ++known;
    Py_IncRef(code);
    codes[at].code = code;
    codes[at].function = make_function(code);
    return &codes[at];
  }
}

StackThread& thread_of() {
  static __thread std::uint32_t own = 0, own_forks = 0;
  if (own == 0 || own_forks != forks) own = static_cast<std::uint32_t>(::syscall(SYS_gettid)), own_forks = forks;
  StackThread& thread = stacks->thread[own % kThreads];
  if (thread.tid != own) thread.tid = own, thread.depth = 0;
  return thread;
}

void report(Budget& budget, const char* name) {
  const std::int64_t now = now_ns();
  if (budget.reported == 0) budget.paid_ns = now;
  const auto paid = static_cast<std::uint64_t>((now - budget.paid_ns) / kEntryNs);
  if (paid > 0) {
    budget.reported = budget.reported > paid ? budget.reported - static_cast<std::uint32_t>(paid) : 0;
    budget.paid_ns = now;
    budget.silent = false;
  }
  if (budget.silent) return;
  budget.silent = ++budget.reported >= kBurst;
  rose_jvm_enter(name, budget.silent ? 1 : 0);
}

// Reports what happened to an exception in the function. CPython does not tell the profile function which exception it
// is.
void report_exception(const Code& code, Budget& budget, const char* what) {
  const char* function = stacks->function[code.function].name;
  char name[sizeof stacks->function[0].name + 32];
  copy(name, sizeof name - std::strlen(what), function);
  append(name, sizeof name, what);
  report(budget, name);
}

// The code of a frame; null if it is not part of the application.
Code* own_code(PyObject* frame) {
  PyObject* object = PyFrame_GetCode != nullptr ? PyFrame_GetCode(frame) : PyObject_GetAttrString(frame, "f_code");
  if (object == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  Code* code = find(object);
  Py_DecRef(object);
  return code == nullptr || code->function == kForeign || code->function == 0 ? nullptr : code;
}

// true: an exception has left a function of the application, and the thread has not reported anything since
__thread bool exception_is_passing = false;

// Determines which function caught the exception that left a function of the application: the one in which the thread
// goes on. A function with a `finally` block goes on, too, and is then left by the exception; explain leaves it out. If
// a library caught the exception, nothing is reported.
void find_catcher(PyObject* frame, int what, PyObject* result) {
  if (what == kExceptionOfC || (what == kReturn && result == nullptr)) return;  // the exception passes on
  exception_is_passing = false;
  Code* code = nullptr;
  if (what == kCallOfC || what == kReturn) {
    code = own_code(frame);
  } else if (what == kCall && PyFrame_GetBack != nullptr) {
    if (PyObject* back = PyFrame_GetBack(frame); back != nullptr) {
      code = own_code(back);
      Py_DecRef(back);
    }
  }
  if (code != nullptr) report_exception(*code, code->catches, kCatchesException);
}

int profile(PyObject*, PyObject* frame, int what, PyObject* result) {
  if (exception_is_passing) find_catcher(frame, what, result);
  if (what != kCall && what != kReturn) return 0;
  Code* code = own_code(frame);
  if (code == nullptr) return 0;
  StackThread& thread = thread_of();
  if (what == kCall) {
    if (thread.depth < kFrames) thread.functions[thread.depth] = code->function;
    ++thread.depth;
    report(code->entries, stacks->function[code->function].name);
    return 0;
  }
  if (result == nullptr) {
    report_exception(*code, code->exceptions, kThrowsException);
    exception_is_passing = true;
  }
  if (thread.depth > kFrames || (thread.depth > 0 && thread.functions[thread.depth - 1] == code->function)) {
    --thread.depth;  // the return of a function that was entered before the thread was watched is ignored
  }
  return 0;
}

}  // namespace
}  // namespace rose::python

using namespace rose::python;

extern "C" {

// Call this first. `path` is the path of the stacks file. Returns 0, or -1 if the file cannot be created.
__attribute__((visibility("default"))) int rose_python_begin(const char* path) {
  if (stacks != nullptr) return 0;
  const int fd = ::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  void* memory = MAP_FAILED;
  if (::ftruncate(fd, sizeof(StacksFile)) == 0)
    memory = ::mmap(nullptr, sizeof(StacksFile), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (memory == MAP_FAILED) return -1;
  stacks = static_cast<StacksFile*>(memory);
  stacks->functions = 1;
  std::memcpy(stacks->magic, kStacksMagic, sizeof kStacksMagic);
  return 0;
}

// Call this in a process that has just been forked.
__attribute__((visibility("default"))) void rose_python_forked() { ++forks; }

// Names the installed packages that are the application, each between slashes. Too long a list is ignored.
__attribute__((visibility("default"))) void rose_python_own(const char* packages) {
  if (std::strlen(packages) < sizeof own_packages) std::strcpy(own_packages, packages);
}

// From now on, reports the functions that the calling thread enters.
__attribute__((visibility("default"))) void rose_python_thread() {
  if (stacks != nullptr) PyEval_SetProfile(profile, nullptr);
}

}  // extern "C"
