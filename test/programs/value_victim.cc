// Waits for "go" on stdin, and makes a thousand calls with known arguments and results on four threads. Exits with 0 if
// all calls returned the right results.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

enum class Shade : std::uint8_t { red = 1, green = 2, deep_blue = 40 };
struct Inner {
  long weight;
  const char* label;
};
struct Box {
  int width;
  Inner inner;
  Box* next;
  std::string title;
  short depths[3];
};

int in_all = 7;

extern "C" {

// Six arguments in registers, two more on the stack, and `real` in a floating-point register.
__attribute__((noipa)) int plain(int number, long large, unsigned char small, const char* text, const Box* box,
                                 Shade shade, bool flag, double real, short last) {
  int sum = number;
  for (const char* c = text; *c != '\0'; ++c) sum += *c;
  if (flag) sum += last;
  sum += static_cast<int>(large % 10) + small + box->width + static_cast<int>(shade) + static_cast<int>(real);
  return sum;
}

__attribute__((noipa)) int negated(int number) {
  if (number % 3 == 0) {
    std::string text = "third";
    in_all += static_cast<int>(text.size());
  }
  return -number;
}

__attribute__((noipa)) int ends_in_a_jump(int number) {
  ++in_all;
  return negated(number + 1);
}

}  // extern "C"

class Ledger {
 public:
  explicit Ledger(int start) : total_(start) {}
  __attribute__((noipa)) long enter(const std::string& title, int amount) {
    long before = total_;
    total_ += amount + static_cast<long>(title.size());
    return before;
  }

 private:
  long total_;
};

// With -O2, the value of `gone` no longer exists in the line that is marked "forgets".
__attribute__((noipa)) int forgets(int gone) {
  int doubled = gone * 2;
#ifdef __x86_64__
  asm volatile("" : "+r"(doubled) : : "rdi");
#else
  asm volatile("" : "+r"(doubled) : : "x0");
#endif
  return doubled + in_all;  // line: forgets
}

static int work(int first, int count) {
  int wrong = 0;
  Ledger ledger(1000);
  for (int i = first; i < first + count; ++i) {
    const std::string text = "text-" + std::to_string(i);
    Box second{i + 2, {i + 3L, "second"}, nullptr, "two", {1, 2, 3}};
    const Box box{i + 1, {-5L * i, text.c_str()}, &second, "title of " + text, {4, 5, static_cast<short>(i)}};
    int sum = i;
    for (const char c : text) sum += c;
    const bool flag = i % 2 == 1;
    if (flag) sum += -i;
    sum += static_cast<int>(i * 1'000'000'007L % 10) + static_cast<unsigned char>(i) + box.width +
           static_cast<int>(Shade::deep_blue) + i;
    if (plain(i, i * 1'000'000'007L, static_cast<unsigned char>(i), text.c_str(), &box, Shade::deep_blue, flag, i + 0.5,
              static_cast<short>(-i)) != sum)
      ++wrong;
    if (negated(i) != -i) ++wrong;
    const long before = 1000 + (i - first) * 13L;
    if (ledger.enter("ten chars.", 3) != before) ++wrong;
    if (forgets(i) - 2 * i < 7) ++wrong;
  }
  return wrong;
}

int main(int argc, char** argv) {
  char word[8] = "";
  std::printf("ready 1\n");
  std::fflush(stdout);
  if (std::fgets(word, 3, stdin) == nullptr) return 2;
  if (argc > 1 && std::strcmp(argv[1], "jump") == 0) return ends_in_a_jump(0) + 1;
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&wrong, t] { wrong[static_cast<std::size_t>(t)] = work(t * 250, 250); });
  for (auto& thread : threads) thread.join();
  for (const int one : wrong)
    if (one != 0) return 1;
  std::printf("done %d\n", in_all);
  std::fflush(stdout);
  // Wait until the test lets this program continue, so that the observer can begin first.
  std::fgets(word, 3, stdin);
  return work(0, 10) != 0;
}

// A call in an inlined function; no other function calls this one.
static inline __attribute__((always_inline)) int jot(int number) { return negated(number) + 1; }

extern "C" __attribute__((noipa, used)) int jots_inlined(int number) { return jot(number) + ends_in_a_jump(number); }
