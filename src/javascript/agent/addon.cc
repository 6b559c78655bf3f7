// This addon is loaded into Node.js by agent.js. It reports entries of functions to a BPF program that is attached to
// rose_jvm_enter. It uses only Node-API (node_api.h, stable since Node.js 10), so it needs no header of Node.js. All
// threads of the process share the names of functions.
#include <cstddef>
#include <cstdint>

extern "C" {
using napi_env = struct napi_env__*;
using napi_value = struct napi_value__*;
using napi_callback_info = struct napi_callback_info__*;
using napi_callback = napi_value (*)(napi_env, napi_callback_info);
int napi_create_function(napi_env, const char* name, std::size_t size, napi_callback, void* data, napi_value* out);
int napi_set_named_property(napi_env, napi_value object, const char* name, napi_value value);
int napi_get_cb_info(napi_env, napi_callback_info, std::size_t* count, napi_value* arguments, napi_value* self,
                     void** data);
int napi_get_value_string_utf8(napi_env, napi_value, char* to, std::size_t room, std::size_t* size);
int napi_get_value_uint32(napi_env, napi_value, std::uint32_t* out);
int napi_create_uint32(napi_env, std::uint32_t, napi_value* out);

// `let_go` is 1 if the following entries are not reported, because the function has reached the limit of reports.
__attribute__((noinline, visibility("default"))) void rose_jvm_enter(const char*, std::uint32_t /*let_go*/) {
  __asm__ volatile("nop" ::: "memory");
}
}

namespace {

constexpr std::uint32_t kMostFunctions = 8192;  // the number 0 means no function
constexpr std::size_t kName = 160, kWhole = static_cast<std::size_t>(-1);

char names[kMostFunctions][kName];
std::uint32_t next = 1;

// define(name) returns the function's number, or 0 if there are too many functions.
napi_value define(napi_env env, napi_callback_info info) {
  napi_value argument = nullptr, out = nullptr;
  std::size_t count = 1, size = 0;
  std::uint32_t number = 0;
  if (napi_get_cb_info(env, info, &count, &argument, nullptr, nullptr) == 0 && count == 1 &&
      __atomic_load_n(&next, __ATOMIC_RELAXED) < kMostFunctions) {
    number = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
    if (number >= kMostFunctions ||
        napi_get_value_string_utf8(env, argument, names[number], kName, &size) != 0)  // the name is cut to fit
      number = 0;
  }
  napi_create_uint32(env, number, &out);
  return out;
}

// enter(number, let_go) reports an entry.
napi_value enter(napi_env env, napi_callback_info info) {
  napi_value arguments[2] = {};
  std::size_t count = 2;
  std::uint32_t number = 0, let_go = 0;
  if (napi_get_cb_info(env, info, &count, arguments, nullptr, nullptr) == 0 && count == 2 &&
      napi_get_value_uint32(env, arguments[0], &number) == 0 &&
      napi_get_value_uint32(env, arguments[1], &let_go) == 0 && number > 0 && number < kMostFunctions)
    rose_jvm_enter(names[number], let_go);
  return nullptr;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) napi_value napi_register_module_v1(napi_env env, napi_value exports) {
  napi_value function = nullptr;
  if (napi_create_function(env, "define", kWhole, define, nullptr, &function) == 0)
    napi_set_named_property(env, exports, "define", function);
  if (napi_create_function(env, "enter", kWhole, enter, nullptr, &function) == 0)
    napi_set_named_property(env, exports, "enter", function);
  return exports;
}
