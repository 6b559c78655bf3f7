# Every library comes from a Debian 12 package; deps.txt lists these packages for the set-up scripts.
find_package(PkgConfig REQUIRED)

# With ROSE_STATIC, rose is one file that runs on any distribution: it needs no shared library, not even the C library.
option(ROSE_STATIC "Link rose statically" OFF)
if(ROSE_STATIC)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
endif()

find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(BZip2 REQUIRED)
pkg_check_modules(LIBBPF REQUIRED IMPORTED_TARGET libbpf)
pkg_check_modules(LIBELF REQUIRED IMPORTED_TARGET libelf)
pkg_check_modules(LIBDW REQUIRED IMPORTED_TARGET libdw)
pkg_check_modules(LIBLZMA REQUIRED IMPORTED_TARGET liblzma)
pkg_check_modules(MINIZIP REQUIRED IMPORTED_TARGET minizip)
pkg_check_modules(LIBZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(RE2 REQUIRED IMPORTED_TARGET re2)
pkg_check_modules(TOMLPP REQUIRED IMPORTED_TARGET tomlplusplus)
pkg_check_modules(YAMLCPP REQUIRED IMPORTED_TARGET yaml-cpp)

if(ROSE_STATIC)
  # Debian packages fmt as a shared library only; its functions are compiled here (base/fmt_library.cc).
  set_target_properties(fmt::fmt-header-only PROPERTIES INTERFACE_COMPILE_DEFINITIONS "")
  add_library(rose_fmt STATIC ${PROJECT_SOURCE_DIR}/src/base/fmt_library.cc)
  target_link_libraries(rose_fmt PUBLIC fmt::fmt-header-only)
  set(ROSE_FMT rose_fmt)
  # Dependencies between the static libraries.
  target_link_libraries(PkgConfig::LIBDW INTERFACE PkgConfig::LIBELF PkgConfig::LIBLZMA BZip2::BZip2 ZLIB::ZLIB
    PkgConfig::LIBZSTD)
  target_link_libraries(PkgConfig::LIBBPF INTERFACE PkgConfig::LIBELF ZLIB::ZLIB)
  target_link_libraries(PkgConfig::LIBELF INTERFACE ZLIB::ZLIB)
  target_link_libraries(PkgConfig::MINIZIP INTERFACE ZLIB::ZLIB)
else()
  set(ROSE_FMT fmt::fmt)
endif()
