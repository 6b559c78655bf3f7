#include "jvm/jar.h"

#include <unzip.h>

#include <memory>
#include <string_view>

#include "base/text.h"

namespace rose::jvm {
namespace {

constexpr std::size_t kMostManifest = std::size_t{1} << 20;
constexpr const char* kManifest = "META-INF/MANIFEST.MF";
constexpr int kMatchCase = 1;

struct Closed {
  void operator()(void* zip) const { ::unzClose(zip); }
};

std::string read_entry(unzFile zip, const char* name) {
  std::string text;
  if (::unzLocateFile(zip, name, kMatchCase) != UNZ_OK || ::unzOpenCurrentFile(zip) != UNZ_OK) return text;
  char part[4096];
  for (int read = 0; (read = ::unzReadCurrentFile(zip, part, sizeof part)) > 0 && text.size() < kMostManifest;)
    text.append(part, static_cast<std::size_t>(read));
  ::unzCloseCurrentFile(zip);
  return text;
}

std::vector<std::string> classes_at_the_top(unzFile zip) {
  constexpr std::string_view kClass = ".class";
  std::vector<std::string> out;
  for (int status = ::unzGoToFirstFile(zip); status == UNZ_OK && out.size() < kMostClasses;
       status = ::unzGoToNextFile(zip)) {
    char name[512] = {};
    unz_file_info entry{};
    if (::unzGetCurrentFileInfo(zip, &entry, name, sizeof name - 1, nullptr, 0, nullptr, 0) != UNZ_OK) break;
    const std::string_view file = name;
    if (file.ends_with(kClass) && file.find('/') == std::string_view::npos)
      out.emplace_back(file.substr(0, file.size() - kClass.size()));
  }
  return out;
}

}  // namespace

std::string main_class(const std::string& manifest) {
  std::vector<std::string> lines;
  for (std::string line : split(manifest, '\n')) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() && !lines.empty()) break;  // the main section ends; sections about single entries follow
    if (line.starts_with(' ') && !lines.empty()) lines.back() += line.substr(1);
    else lines.push_back(std::move(line));
  }
  std::string main;
  for (const std::string& line : lines) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string name = line.substr(0, colon), value = line.substr(colon + 2);
    if (name == "Start-Class") return value;
    if (name == "Main-Class") main = value;
  }
  return main;
}

std::optional<Jar> read_jar(const std::filesystem::path& file) {
  const std::unique_ptr<void, Closed> zip(::unzOpen64(file.c_str()));
  if (!zip) return std::nullopt;
  Jar jar;
  jar.main = main_class(read_entry(zip.get(), kManifest));
  // List the classes only if needed, because an application with its libraries in one jar has tens of thousands of
  // entries.
  if (jar.main.find('.') == std::string::npos) jar.classes = classes_at_the_top(zip.get());
  return jar;
}

}  // namespace rose::jvm
