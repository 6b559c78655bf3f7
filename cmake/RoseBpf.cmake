# The bpf/ -> skel/ pipeline. Skeletons are committed, so a normal build needs neither clang nor
# bpftool; `cmake --build <dir> --target skeletons` refreshes them after a change in bpf/.
#
# rose_bpf_skeleton(NAME): makes target rose_skel_NAME that offers "skel/NAME.skel.h", and adds
# NAME to the refresh and the staleness check (cmake/check-skeletons.sh).
set(ROSE_BPF_CLANG clang-19 CACHE STRING "clang used to compile bpf/*.bpf.c")
set(ROSE_BPF_BPFTOOL bpftool CACHE STRING "bpftool used to generate skeletons")

add_custom_target(skeletons
  COMMAND ${CMAKE_COMMAND} -E env CLANG=${ROSE_BPF_CLANG} BPFTOOL=${ROSE_BPF_BPFTOOL}
          ${PROJECT_SOURCE_DIR}/cmake/make-skeletons.sh
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
  COMMENT "Refreshing skel/ from bpf/"
  VERBATIM)

function(rose_bpf_skeleton name)
  add_library(rose_skel_${name} INTERFACE)
  target_include_directories(rose_skel_${name} SYSTEM INTERFACE ${PROJECT_SOURCE_DIR})
  target_include_directories(rose_skel_${name} INTERFACE ${PROJECT_SOURCE_DIR}/bpf)
  target_link_libraries(rose_skel_${name} INTERFACE PkgConfig::LIBBPF)
endfunction()
