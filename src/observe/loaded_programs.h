// The tracer's programs in the kernel. When the kernel loads them, it checks all of their 50,000 instructions, which
// takes half of the processor time that rose spends on a short run. Therefore, a command that makes many runs keeps the
// programs of a tracer that has stopped, and gives them to the next tracer that needs exactly the same programs.
#pragma once

#include <bpf/libbpf.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "bpf/tracer.h"
#include "skel/tracer.skel.h"

namespace rose::observe {

class KeptPrograms;

// Destroys programs, or returns them to the KeptPrograms they belong to.
class ProgramsCloser {
 public:
  ProgramsCloser() = default;
  ProgramsCloser(std::shared_ptr<KeptPrograms> kept, std::string key) : kept_(std::move(kept)), key_(std::move(key)) {}
  void operator()(rose_tracer* programs) const;

 private:
  std::shared_ptr<KeptPrograms> kept_;  // nullptr: the programs are destroyed
  std::string key_;
};
// When an object of this type is destroyed, nothing may be attached to the programs, and none of their maps may be
// mapped.
using Programs = std::unique_ptr<rose_tracer, ProgramsCloser>;

// Shared by the tracers of a command; thread-safe. Keeps no more programs than were in use at the same time.
class KeptPrograms {
 public:
  // Identifies what the kernel would load: settings, sizes of maps, selected programs. Programs with equal keys are
  // interchangeable.
  [[nodiscard]] static std::string key_of(const rose_tracer& opened);
  // Takes programs with this key, whose maps have been cleared. Returns nullptr if there are none.
  [[nodiscard]] rose_tracer* take(const std::string& key);
  // Call it when the caller has loaded programs itself. The caller later passes them to put_back().
  void count_loaded();
  void put_back(std::string key, rose_tracer* programs);
  ~KeptPrograms();

 private:
  struct Kept {
    std::string key;
    rose_tracer* programs;
  };
  std::mutex mutex_;
  std::vector<Kept> kept_;  // oldest first
  std::size_t in_use_ = 0, most_in_use_ = 0;
};

// Loads `opened` into the kernel, or replaces it by equal programs from `kept`. If `kept` is nullptr, always loads.
[[nodiscard]] Result<void> load_programs(Programs& opened, const std::shared_ptr<KeptPrograms>& kept);

}  // namespace rose::observe
