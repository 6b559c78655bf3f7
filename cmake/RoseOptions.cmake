# Compiler flags shared by every target; warnings are errors.

# A user's build contains no debug information, because debug information would take most of the build time and 95 % of
# the size. Builds of the presets debug, asan-ubsan and tsan contain it.
set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")

find_package(Threads REQUIRED)
set(ROSE_SANITIZE "" CACHE STRING "Comma-separated sanitizers, e.g. address,undefined")

add_library(rose_options INTERFACE)
target_compile_options(rose_options INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wcast-align -Wformat=2 -Werror
  -fstack-protector-strong)
target_compile_definitions(rose_options INTERFACE _GNU_SOURCE)
# Every target gets -pthread, because some libraries add it to their users, and precompiled headers need equal flags.
target_compile_options(rose_options INTERFACE -pthread)
target_link_libraries(rose_options INTERFACE Threads::Threads)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 warns without reason of concatenations of std::string in libstdc++ (GCC PR 105651).
  target_compile_options(rose_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
  # In unity builds, source files are included, and g++ then warns of types that have file-local types as members.
  target_compile_options(rose_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  # These parameters let the compiler collect its garbage only above 1 GiB, which no file here reaches. This saves 8 %
  # of the compiler's time and costs a quarter more memory (0.85 GiB at most).
  target_compile_options(rose_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-heapsize=1048576>")
endif()
if(ROSE_SANITIZE)
  # Undefined behaviour is checked in the tested libraries, not in the tests (targets with ROSE_TEST_CODE), whose checks
  # would take half of their compile time.
  string(REPLACE "," ";" sanitize_tests ${ROSE_SANITIZE})
  list(REMOVE_ITEM sanitize_tests undefined)
  list(JOIN sanitize_tests "$<COMMA>" sanitize_tests)
  string(REPLACE "," "$<COMMA>" sanitize_all ${ROSE_SANITIZE})
  if(sanitize_tests)
    set(sanitize "-fsanitize=$<IF:$<BOOL:$<TARGET_PROPERTY:ROSE_TEST_CODE>>,${sanitize_tests},${sanitize_all}>")
  else()
    set(sanitize -fsanitize=${ROSE_SANITIZE})
  endif()
  # -g1 is enough for the line numbers in sanitizer reports.
  target_compile_options(rose_options INTERFACE -g1 ${sanitize} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND ROSE_SANITIZE MATCHES "address.*undefined")
    # Checks for null and misaligned pointers precede each use of a pointer and take a quarter of the compile time. A
    # null pointer ends the program without them, too; the preset fuzz, which uses clang, still checks for misaligned
    # pointers.
    target_compile_options(rose_options INTERFACE -fno-sanitize=null,alignment)
  endif()
  target_link_options(rose_options INTERFACE -fsanitize=${ROSE_SANITIZE})
  # Sanitizer instrumentation makes -Wmaybe-uninitialized unreliable (GCC PR 105562). The other builds report all
  # warnings of the libraries, and checking for them takes a tenth of the compile time.
  target_compile_options(rose_options INTERFACE
    $<IF:$<BOOL:$<TARGET_PROPERTY:ROSE_TEST_CODE>>,$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>,-w>)
endif()

# Turns off optimiser passes that take a sixth of the compile time; without them the code has the same size.
# tree-dominator-opts stays on, because without it g++ warns wrongly that variables "may be used uninitialized".
set(ROSE_QUICK_OPTIONS "")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT ROSE_SANITIZE)
  foreach(pass tree-pta ipa-modref ipa-pure-const if-conversion if-conversion2 tree-slsr tree-sink tree-ch ssa-phiopt
      tree-dse guess-branch-probability ssa-backprop split-wide-types shrink-wrap reorder-blocks tree-bit-ccp
      ipa-reference ipa-profile tree-phiprop tree-scev-cprop move-loop-invariants branch-count-reg dse tree-copy-prop)
    list(APPEND ROSE_QUICK_OPTIONS $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-fno-${pass}>)
  endforeach()
endif()

# rose_precompiled(TARGET [OWNER NAME LIKE LIBRARY HEADERS ...]): the standard library, fmt and the headers that many
# libraries include are parsed once, not in every file. The target OWNER compiles them into a precompiled header, with
# the flags of LIKE. TARGET uses this header, so it must have the same flags. Of rose's own headers, only unity builds
# with g++ precompile some. Source files still include what they need, for the other builds and for ROSE_PRECOMPILE=OFF.
# Libraries below `schedule` share one header, the others (ROSE_UPPER_LIBRARIES) a larger one; the two are compiled in
# parallel. With clang, precompiled headers save a fifth of the processor time of a build with sanitizers.
option(ROSE_PRECOMPILE "Precompile the standard library's headers" ON)
function(rose_precompiled target)
  cmake_parse_arguments(ARG "" "OWNER;LIKE" "HEADERS" ${ARGN})
  if(NOT ROSE_PRECOMPILE OR NOT CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
    return()
  endif()
  if(NOT ARG_OWNER)
    set(ARG_OWNER rose_precompiled)
    set(ARG_LIKE rose_options ${ROSE_FMT})
    # The compiler reports no warnings in precompiled headers, so the debug build precompiles none of rose's headers.
    set(own_headers OFF)
    if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      set(own_headers ON)
    endif()
    if(own_headers AND ROSE_UPPER_LIBRARIES)
      set(ARG_OWNER rose_precompiled_upper)
      set(ARG_HEADERS
        ${PROJECT_SOURCE_DIR}/cmake/precompiled_lower.h ${PROJECT_SOURCE_DIR}/cmake/precompiled_upper.h)
    elseif(own_headers)
      set(ARG_HEADERS ${PROJECT_SOURCE_DIR}/cmake/precompiled_lower.h)
    endif()
  endif()
  if(NOT TARGET ${ARG_OWNER})
    set(source ${CMAKE_BINARY_DIR}/${ARG_OWNER}.cc)
    file(GENERATE OUTPUT ${source} CONTENT "// Owns precompiled headers.\n")
    add_library(${ARG_OWNER} STATIC ${source})
    target_link_libraries(${ARG_OWNER} PRIVATE ${ARG_LIKE})
    target_include_directories(${ARG_OWNER} PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_precompile_headers(${ARG_OWNER} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/precompiled.h ${ARG_HEADERS})
    get_target_property(test_code ${target} ROSE_TEST_CODE)
    # Do not use ccache here: it may return a header that was precompiled from other files, and gcc then reports
    # redefinitions.
    set_target_properties(${ARG_OWNER} PROPERTIES ROSE_TEST_CODE "${test_code}" CXX_COMPILER_LAUNCHER "")
  endif()
  target_precompile_headers(${target} REUSE_FROM ${ARG_OWNER})
endfunction()

# rose_units(TARGET SOURCE ...): cuts a library into the units of a unity build. The units have similar sizes, so that
# all processors finish at the same time. They have at most ROSE_UNIT_BYTES bytes, so that a changed line is compiled
# and linked in seconds. A full build would be faster with larger units, because the same templates are compiled fewer
# times; half as many units take a fifth less time.
set(ROSE_UNIT_BYTES 100000)
function(rose_units target)
  if(NOT CMAKE_UNITY_BUILD)
    return()
  endif()
  set(total 0)
  foreach(source IN LISTS ARGN)
    file(SIZE ${source} bytes)
    math(EXPR total "${total} + ${bytes}")
  endforeach()
  math(EXPR units "(${total} + ${ROSE_UNIT_BYTES} - 1) / ${ROSE_UNIT_BYTES}")
  set(before 0)
  foreach(source IN LISTS ARGN)
    file(SIZE ${source} bytes)
    math(EXPR unit "(${before} + ${bytes} / 2) * ${units} / ${total}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${unit})
    math(EXPR before "${before} + ${bytes}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# rose_own_code(TARGET SOURCE ...): compile options of rose's own code.
function(rose_own_code target)
  target_compile_options(${target} PRIVATE ${ROSE_QUICK_OPTIONS})
  rose_precompiled(${target})
  rose_units(${target} ${ARGN})
endfunction()

# A fast linker for rose and its tests. librose-rr, which other programs use, is linked by the compiler's default
# linker.
include(CheckLinkerFlag)
set(ROSE_LINK_OPTIONS "")
set(linkers mold lld gold)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  list(REMOVE_ITEM linkers gold)  # gold fails with "relocation overflow" if the address of an embedded file is odd
endif()
foreach(linker IN LISTS linkers)
  check_linker_flag(CXX -fuse-ld=${linker} ROSE_HAVE_${linker})
  if(ROSE_HAVE_${linker})
    set(ROSE_LINK_OPTIONS -fuse-ld=${linker})
    break()
  endif()
endforeach()

find_program(ROSE_CCACHE ccache)
if(ROSE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ROSE_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${ROSE_CCACHE})
endif()

# rose_library(NAME DEPENDS ... FOLDERS ...): makes one folder of src into a library, from every .cc in it and in its
# subfolders FOLDERS.
function(rose_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;FOLDERS" ${ARGN})
  list(TRANSFORM ARG_FOLDERS APPEND "/*.cc" OUTPUT_VARIABLE further)
  file(GLOB sources CONFIGURE_DEPENDS *.cc ${further})
  list(FILTER sources EXCLUDE REGEX "/fmt_library\\.cc$")  # compiled in RoseDependencies.cmake
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PUBLIC rose_options ${ARG_DEPENDS})
  rose_own_code(${name} ${sources})
endfunction()
