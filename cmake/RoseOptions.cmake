# Compiler flags shared by every target; warnings are errors.
set(ROSE_SANITIZE "" CACHE STRING "Comma-separated sanitizers, e.g. address,undefined")

add_library(rose_options INTERFACE)
target_compile_options(rose_options INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wcast-align -Wformat=2 -Werror
  -fstack-protector-strong)
target_compile_definitions(rose_options INTERFACE _GNU_SOURCE)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports a libstdc++ false positive in std::string concatenation (GCC PR 105651).
  target_compile_options(rose_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(ROSE_SANITIZE)
  target_compile_options(rose_options INTERFACE
    -fsanitize=${ROSE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(rose_options INTERFACE -fsanitize=${ROSE_SANITIZE})
  # Sanitizer instrumentation makes -Wmaybe-uninitialized unreliable (GCC PR 105562).
  target_compile_options(rose_options INTERFACE -Wno-maybe-uninitialized)
endif()

find_program(ROSE_CCACHE ccache)
if(ROSE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ROSE_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${ROSE_CCACHE})
endif()

# rose_library(NAME DEPENDS ...): one folder of src is one library, made of every .cc in it.
function(rose_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc)
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PUBLIC rose_options ${ARG_DEPENDS})
endfunction()
