#include "deploy/libc_recorder.h"

#include <elf.h>
#include <unistd.h>

#include <cstring>

#include "base/embedded_file.h"
#include "base/fd.h"
#include "base/file.h"
#include "kernel/arch.h"

#ifdef ROSE_LIBC_RECORDER
ROSE_EMBED_FILE(rose_libc_recorder, ROSE_LIBC_RECORDER);
#endif

namespace rose::deploy {

Result<std::filesystem::path> place_libc_recorder(const std::filesystem::path& folder) {
#ifdef ROSE_LIBC_RECORDER
  const std::filesystem::path file = folder / kLibcRecorderName;
  ROSE_CHECK(write_file(file, ROSE_EMBEDDED(rose_libc_recorder), 0755));
  return file;
#else
  return fail(ErrorKind::environment, fmt::format("cannot create {}: this build of rose uses sanitizers and contains "
                                                  "no library that records calls of the C library",
                                                  (folder / kLibcRecorderName).string()));
#endif
}

Result<void> check_takes_recorder(const std::filesystem::path& program) {
  const Fd file = open_regular(program);
  Elf64_Ehdr head;
  if (!file || ::pread(file.get(), &head, sizeof head, 0) != static_cast<ssize_t>(sizeof head) ||
      std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
    return {};  // not an ELF file but a script, whose interpreter is not checked
  const char* hint = "link it with librose-rr and record what matters: rose_rr.h";
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != kernel::kElfMachine)
    return fail(
        ErrorKind::input,
        fmt::format("{} is not a 64-bit program for this processor: its calls of the C library cannot be recorded",
                    program.string()),
        hint);
  for (unsigned i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr part;
    if (::pread(file.get(), &part, sizeof part, static_cast<off_t>(head.e_phoff + std::uint64_t{i} * sizeof part)) !=
        static_cast<ssize_t>(sizeof part))
      break;
    if (part.p_type == PT_INTERP) return {};
  }
  return fail(ErrorKind::input,
              fmt::format("{} is statically linked: its calls of the C library cannot be recorded from outside",
                          program.string()),
              hint);
}

void add_libc_recorder(std::map<std::string, std::string>& env, const std::filesystem::path& library,
                       const std::vector<std::string>& sources) {
  std::string& preload = env["LD_PRELOAD"];
  preload = preload.empty() ? library.string() : library.string() + ":" + preload;
  env["ROSE_RR_LIBC"] = fmt::format("{}", fmt::join(sources, ","));
}

}  // namespace rose::deploy
