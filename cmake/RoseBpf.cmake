# Makes the skeletons in skel/ from the programs in bpf/. Skeletons for x86-64 are committed, so a normal build needs
# neither clang nor bpftool; `cmake --build <dir> --target skeletons` refreshes them after a change in bpf/. A build for
# arm64 makes its own skeletons in <dir>/skel.
#
# rose_bpf_skeleton(NAME): makes the target rose_skel_NAME. Libraries that link this target can include
# "skel/NAME.skel.h".
set(ROSE_BPF_CLANG clang-19 CACHE STRING "clang used to compile bpf/*.bpf.c")
set(ROSE_BPF_BPFTOOL bpftool CACHE STRING "bpftool used to generate skeletons")

set(make_skeletons ${CMAKE_COMMAND} -E env CLANG=${ROSE_BPF_CLANG} BPFTOOL=${ROSE_BPF_BPFTOOL}
  ${PROJECT_SOURCE_DIR}/cmake/make-skeletons.sh)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(ROSE_SKELETONS ${PROJECT_BINARY_DIR})
  file(MAKE_DIRECTORY ${ROSE_SKELETONS}/skel)
  file(GLOB bpf_sources CONFIGURE_DEPENDS bpf/*.bpf.c bpf/*.h bpf/*/*.h)
  set(bpf_skeletons "")
  foreach(name tracer inject network exchange tracer.old inject.old network.old)
    list(APPEND bpf_skeletons ${ROSE_SKELETONS}/skel/${name}.skel.h)
  endforeach()
  add_custom_command(OUTPUT ${bpf_skeletons} DEPENDS ${bpf_sources} ${PROJECT_SOURCE_DIR}/cmake/make-skeletons.sh
    COMMAND ${make_skeletons} --arch arm64 --to ${ROSE_SKELETONS}/skel COMMENT "Making skeletons for arm64" VERBATIM)
  add_custom_target(skeletons DEPENDS ${bpf_skeletons})
else()
  set(ROSE_SKELETONS ${PROJECT_SOURCE_DIR})
  add_custom_target(skeletons COMMAND ${make_skeletons}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} COMMENT "Refreshing skel/ from bpf/" VERBATIM)
endif()

function(rose_bpf_skeleton name)
  add_library(rose_skel_${name} INTERFACE)
  target_include_directories(rose_skel_${name} SYSTEM INTERFACE ${ROSE_SKELETONS} ${PROJECT_SOURCE_DIR})
  target_include_directories(rose_skel_${name} INTERFACE ${PROJECT_SOURCE_DIR}/bpf)
  target_link_libraries(rose_skel_${name} INTERFACE PkgConfig::LIBBPF)
  if(NOT ROSE_SKELETONS STREQUAL PROJECT_SOURCE_DIR)
    add_dependencies(rose_skel_${name} skeletons)
  endif()
endfunction()
