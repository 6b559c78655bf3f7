#include "jvm/agent/code_file.h"

#include <fcntl.h>
#include <unistd.h>

#include "jvm/agent/text.h"

namespace rose::jvm {

void CodeFile::open(std::string_view path) {
  if (path.empty()) return;
  fd_ = ::open(std::string(path).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
}

void CodeFile::add(std::string_view name, Code code, const ConstantPool& pool, const LineEntry* lines,
                   std::int32_t line_count) {
  text_ += "method\t";
  text_ += name;
  text_ += '\n';
  for (const CallSite& site : call_sites(code, pool)) {
    std::int32_t line = 0;
    Location best = -1;
    for (std::int32_t i = 0; i < line_count; ++i) {
      if (lines[i].start > static_cast<Location>(site.offset) || lines[i].start < best) continue;
      best = lines[i].start;
      line = lines[i].line;
    }
    text_ += "call\t";
    text_ += decimal(site.offset);
    text_ += '\t';
    text_ += decimal(static_cast<std::uint32_t>(line));
    text_ += site.loop ? "\t1\t" : "\t0\t";
    text_ += site.callee;
    text_ += '\n';
  }
}

void CodeFile::flush() {
  if (text_.empty()) return;
  if (text_.size() <= left_) {
    left_ -= text_.size();
    // On a full disk the text is lost, which only makes a search less precise.
    if (::write(fd_, text_.data(), text_.size()) < 0) left_ = 0;
  } else {
    left_ = 0;
  }
  text_.clear();
}

}  // namespace rose::jvm
