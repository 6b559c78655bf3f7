#include "jvm/agent/values.h"

#include <cstring>

#include "jvm/agent/stacks.h"
#include "jvm/agent/stubs.h"
#include "jvm/agent/system.h"
#include "jvm/agent/text.h"

namespace rose::jvm {
namespace {

// at most this many values per request and second, because reading a variable may briefly stop the JVM's threads
constexpr std::uint64_t kMostASecond = 300;
constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int32_t kMostCharacters = 64;
// The form in which the BPF program reads a value. bpf/tracer.h defines the same numbers, but the agent cannot include
// it.
enum class Form : std::uint8_t {
  none = 0,
  integer = 1,
  boolean = 2,
  character = 3,
  single_float = 4,
  double_float = 5,
  text = 6,
  object = 7,
  constant = 8,
  caller = 9
};
enum class Failure : std::uint8_t { none = 0, unreadable = 1, null = 2, too_many = 3 };

struct Report {
  std::uint32_t fetch = 0;
  Failure failed = Failure::none;
  std::uint8_t length = 0;
  Form form = Form::none;
  std::uint8_t pad = 0;
  std::uint64_t word = 0;
  unsigned char text[64] = {};
};
static_assert(sizeof(Report) == 80);

void send(const AskSpec& spec, Report& report) {
  report.fetch = spec.fetch;
  rose_jvm_value(&report, spec.place);
}

// Limits the number of reports per second. The first report above the limit is replaced by one that says that values
// are missing.
bool may_report(AskSpec& spec) {
  const std::int64_t now = now_ns(), begin = __atomic_load_n(&spec.second_ns, __ATOMIC_RELAXED);
  if (now - begin > kSecondNs) {
    __atomic_store_n(&spec.second_ns, now, __ATOMIC_RELAXED);
    __atomic_store_n(&spec.in_second, 0, __ATOMIC_RELAXED);
  }
  const std::uint64_t before = __atomic_fetch_add(&spec.in_second, 1, __ATOMIC_RELAXED);
  if (before < kMostASecond) return true;
  if (before == kMostASecond) {
    Report report;
    report.failed = Failure::too_many;
    send(spec, report);
  }
  return false;
}

void put_text(Report& report, std::string_view text) {
  report.length = static_cast<std::uint8_t>(text.size() < sizeof report.text ? text.size() : sizeof report.text);
  std::memcpy(report.text, text.data(), report.length);
  report.word = text.size();
}

// Converts UTF-16 to UTF-8. If the text is too long, it is cut between characters.
void put_string(Jni jni, Object string, Report& report) {
  const std::int32_t length = jni.string_length(string);
  const std::int32_t part = length < kMostCharacters ? length : kMostCharacters;
  std::uint16_t units[kMostCharacters];
  jni.string_region(string, 0, part, units);
  std::string text;
  for (std::int32_t i = 0; i < part; ++i) {
    std::uint32_t c = units[i];
    if (c >= 0xd800 && c < 0xdc00 && i + 1 < part) c = 0x10000 + ((c - 0xd800) << 10) + (units[++i] - 0xdc00U);
    char bytes[4];
    std::size_t n = 0;
    if (c < 0x80) {
      bytes[n++] = static_cast<char>(c);
    } else if (c < 0x800) {
      bytes[n++] = static_cast<char>(0xc0 | c >> 6);
    } else if (c < 0x10000) {
      bytes[n++] = static_cast<char>(0xe0 | c >> 12);
      bytes[n++] = static_cast<char>(0x80 | (c >> 6 & 0x3f));
    } else {
      bytes[n++] = static_cast<char>(0xf0 | c >> 18);
      bytes[n++] = static_cast<char>(0x80 | (c >> 12 & 0x3f));
      bytes[n++] = static_cast<char>(0x80 | (c >> 6 & 0x3f));
    }
    if (c >= 0x80) bytes[n++] = static_cast<char>(0x80 | (c & 0x3f));
    if (text.size() + n > sizeof report.text) break;
    text.append(bytes, n);
  }
  put_text(report, text);
  report.word = static_cast<std::uint64_t>(length) > text.size() && length > part ? static_cast<std::uint64_t>(length)
                                                                                  : text.size();
  report.form = Form::text;
}

void put_number(Report& report, Value value, char type) {
  switch (type) {
    case 'Z': report.form = Form::boolean; break;
    case 'C': report.form = Form::character; break;
    case 'F': report.form = Form::single_float; break;
    case 'D': report.form = Form::double_float; break;
    default: report.form = Form::integer; break;
  }
  if (type == 'F') std::memcpy(&report.word, &value.f, sizeof value.f);
  else if (type == 'D') std::memcpy(&report.word, &value.d, sizeof value.d);
  else report.word = static_cast<std::uint64_t>(value.j);
}

std::string signature_of(Jvmti jvmti, Object klass) {
  char* text = nullptr;
  if (klass == nullptr || jvmti.class_signature(klass, &text) != kNone) return {};
  std::string out(text);
  jvmti.deallocate(text);
  return out;
}

struct Field {
  FieldId id = nullptr;
  Object klass = nullptr;  // the class that declares the field
  char type = 0;
  bool fixed = false;  // the field is static
};

// Searches the class and its superclasses.
Field find_field(Jvmti jvmti, Jni jni, Object klass, std::string_view wanted) {
  Field found;
  for (int up = 0; klass != nullptr && found.id == nullptr && up < 64;
       ++up, klass = found.id == nullptr ? jni.superclass(klass) : klass) {
    std::int32_t count = 0;
    FieldId* fields = nullptr;
    if (jvmti.class_fields(klass, &count, &fields) != kNone) continue;
    for (std::int32_t i = 0; i < count && found.id == nullptr; ++i) {
      char *name = nullptr, *signature = nullptr;
      if (jvmti.field_name(klass, fields[i], &name, &signature) != kNone) continue;
      if (wanted == name) {
        std::int32_t flags = 0;
        (void)jvmti.field_modifiers(klass, fields[i], &flags);
        found = {fields[i], klass, signature[0], (flags & static_cast<std::int32_t>(MethodFlags::kStatic)) != 0};
      }
      jvmti.deallocate(name);
      jvmti.deallocate(signature);
    }
    jvmti.deallocate(fields);
  }
  return found;
}

bool is_boxed(std::string_view signature) {
  for (const std::string_view one :
       {"Ljava/lang/Integer;", "Ljava/lang/Long;", "Ljava/lang/Short;", "Ljava/lang/Byte;", "Ljava/lang/Boolean;",
        "Ljava/lang/Character;", "Ljava/lang/Float;", "Ljava/lang/Double;",
        "Ljava/util/concurrent/atomic/AtomicInteger;", "Ljava/util/concurrent/atomic/AtomicLong;"})
    if (signature == one) return true;
  return false;
}

// "[[I" gives "int[][]".
std::string array_name(std::string_view signature) {
  std::string brackets;
  while (!signature.empty() && signature.front() == '[') brackets += "[]", signature.remove_prefix(1);
  std::string name = parameters_of("(" + std::string(signature) + ")V");
  if (name.size() > 2) name = name.substr(1, name.size() - 2);
  return name + brackets;
}

void put_object(Jvmti jvmti, Jni jni, Object object, Report& report) {
  if (object == nullptr) {
    report.failed = Failure::null;
    return;
  }
  const Object klass = jni.class_of(object);
  const std::string signature = signature_of(jvmti, klass);
  if (signature == "Ljava/lang/String;") return put_string(jni, object, report);
  if (!signature.empty() && signature.front() == '[') {
    std::string name = array_name(signature);
    const auto end = name.find("[]");
    name.insert(end == std::string::npos ? name.size() : end + 1, decimal(jni.array_length(object)));
    put_text(report, name);
    report.form = Form::object;
    return;
  }
  if (is_boxed(signature)) {
    const Field field = find_field(jvmti, jni, klass, "value");
    if (field.id != nullptr && !is_object(field.type))
      return put_number(report, jni.field(object, field.id, field.type, false), field.type);
  }
  // A constant of an enumeration may have a class of its own, which is a subclass of the enumeration.
  Object above = jni.superclass(klass);
  for (int up = 0; up < 2 && above != nullptr; ++up, above = jni.superclass(above)) {
    if (signature_of(jvmti, above) != "Ljava/lang/Enum;") continue;
    const Field field = find_field(jvmti, jni, above, "name");
    const Object name = field.id != nullptr && field.type == 'L' ? jni.field(object, field.id, 'L', false).l : nullptr;
    if (name == nullptr) break;
    put_string(jni, name, report);
    report.form = Form::constant;
    return;
  }
  put_text(report, class_of_signature(signature));
  report.form = Form::object;
}

// Follows the requested fields from this value on, and reports the value found at the end.
void report_value(Jvmti jvmti, Jni jni, const PlacedQuery& asking, Value value, char type, std::string& missing) {
  Report report;
  for (const std::string& member : asking.spec->members) {
    if (!is_object(type)) {
      missing = "'" + member + "' cannot be read: the value that should have this field is not an object";
      return;
    }
    if (value.l == nullptr) {
      report.failed = Failure::unreadable;
      return send(*asking.spec, report);
    }
    const Object klass = jni.class_of(value.l);
    if (type == '[' || signature_of(jvmti, klass).substr(0, 1) == "[") {
      if (member != "length") {
        missing = "an array has no field '" + member + "'";
        return;
      }
      Value length;
      length.j = jni.array_length(value.l);
      value = length;
      type = 'I';
      continue;
    }
    const Field field = find_field(jvmti, jni, klass, member);
    if (field.id == nullptr) {
      missing = class_of_signature(signature_of(jvmti, klass)) + " has no field '" + member + "'";
      return;
    }
    value = jni.field(field.fixed ? field.klass : value.l, field.id, field.type, field.fixed);
    type = field.type;
  }
  if (is_object(type)) put_object(jvmti, jni, value.l, report);
  else put_number(report, value, type);
  send(*asking.spec, report);
}

// Frees local references at the end of a callback. Otherwise they would belong to the application's frame and stay
// until its method returns.
class LocalFrame {
 public:
  explicit LocalFrame(Jni jni) : jni_(jni), pushed_(jni.push_frame(64) == 0) {}
  ~LocalFrame() {
    if (jni_.exception() != nullptr) jni_.clear_exception();
    if (pushed_) (void)jni_.pop_frame();
  }
  LocalFrame(const LocalFrame&) = delete;
  LocalFrame& operator=(const LocalFrame&) = delete;

 private:
  Jni jni_;
  bool pushed_;
};

}  // namespace

bool parameter(std::string_view descriptor, bool is_static, std::int64_t number, std::int32_t& slot, char& type) {
  slot = is_static ? 0 : 1;
  std::size_t at = 1;
  while (at < descriptor.size() && descriptor[at] != ')') {
    type = descriptor[at];
    while (at < descriptor.size() && descriptor[at] == '[') ++at;
    if (at < descriptor.size() && descriptor[at] == 'L') at = descriptor.find(';', at);
    if (at >= descriptor.size()) return false;
    ++at;
    if (--number == 0) return true;
    slot += type == 'J' || type == 'D' ? 2 : 1;
  }
  return false;
}

std::string_view returned(std::string_view descriptor) {
  const auto end = descriptor.rfind(')');
  return end == std::string_view::npos ? std::string_view("V") : descriptor.substr(end + 1);
}

void report_variable(Jvmti jvmti, Jni jni, const PlacedQuery& asking, std::string& missing) {
  if (!may_report(*asking.spec)) return;
  const LocalFrame frame(jni);
  Value value;
  value.j = 0;
  std::int32_t error = kNone, number = 0;
  switch (asking.type) {
    case 'J': error = jvmti.local_long(asking.slot, &value.j); break;
    case 'F': error = jvmti.local_float(asking.slot, &value.f); break;
    case 'D': error = jvmti.local_double(asking.slot, &value.d); break;
    case 'L':
    case '[': error = jvmti.local_object(asking.slot, &value.l); break;
    default:
      error = jvmti.local_int(asking.slot, &number);
      value.j = number;
      break;
  }
  if (error != kNone) {
    Report report;
    report.failed = Failure::unreadable;
    return send(*asking.spec, report);
  }
  report_value(jvmti, jni, asking, value, asking.type, missing);
}

void report_caller(Jvmti jvmti, Jni jni, const PlacedQuery& asking) {
  if (!may_report(*asking.spec)) return;
  const LocalFrame frame(jni);
  Report report;
  FrameInfo above[1];
  std::int32_t count = 0;
  CodePlace place;
  if (jvmti.stack_trace(nullptr, 1, 1, above, &count) != kNone || count != 1 ||
      !place_of(jvmti, jni, above[0].method, above[0].location, place)) {
    report.failed = Failure::unreadable;
    return send(*asking.spec, report);
  }
  // The end of a long name is more informative than its beginning.
  const std::string_view name = place.function;
  put_text(report, name.size() > sizeof report.text ? name.substr(name.size() - sizeof report.text) : name);
  report.word = place.line;
  report.form = Form::caller;
  send(*asking.spec, report);
}

void report_returned(Jvmti jvmti, Jni jni, const PlacedQuery& asking, Value value, std::string& missing) {
  if (!may_report(*asking.spec)) return;
  const LocalFrame frame(jni);
  // Only the lowest bytes of a narrow value are valid.
  switch (asking.type) {
    case 'Z': value.j = value.j & 0xff; break;
    case 'B': value.j = static_cast<std::int8_t>(value.j); break;
    case 'C': value.j = value.j & 0xffff; break;
    case 'S': value.j = static_cast<std::int16_t>(value.j); break;
    case 'I': value.j = static_cast<std::int32_t>(value.j); break;
    default: break;
  }
  report_value(jvmti, jni, asking, value, asking.type, missing);
}

}  // namespace rose::jvm
