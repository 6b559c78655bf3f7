# `cpack -G DEB` in a build folder makes rose_VERSION_amd64.deb: the program, its units (installed, not enabled),
# example configurations, documents, man pages and completions. Only the component rose is packed, so tests and examples
# stay out.
install(FILES configs/rose-trace.service configs/rose-trace@.service
  DESTINATION lib/systemd/system COMPONENT rose)
install(FILES configs/rose.toml configs/schedule.toml configs/rose-trace.daemonset.yaml
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT rose)
install(FILES README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md SECURITY.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT rose)
file(GLOB rose_pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/configs/*.md)
install(FILES ${rose_pages} DESTINATION ${CMAKE_INSTALL_DOCDIR}/configs COMPONENT rose)
install(FILES src/README.md src/architecture.svg DESTINATION ${CMAKE_INSTALL_DOCDIR}/src COMPONENT rose)
install(FILES examples/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT rose)
# The man pages and completions, which the program prints after it was linked (src/cli/CMakeLists.txt).
install(DIRECTORY ${PROJECT_BINARY_DIR}/help/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT rose)
install(FILES ${PROJECT_BINARY_DIR}/help/bash/rose
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT rose)
install(FILES ${PROJECT_BINARY_DIR}/help/zsh/_rose
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT rose)
install(FILES ${PROJECT_BINARY_DIR}/help/fish/rose.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT rose)
install(FILES LICENSE RENAME copyright DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT rose)

# Packing must not build anything, so that the package contains what was built and tested.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME rose)
set(CPACK_PACKAGE_VENDOR "the rose authors")
set(CPACK_PACKAGE_CONTACT "the rose authors <rose@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "reproduces failures of distributed systems caused by their environment")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "iproute2")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
  "rose trace records failures of a system in production at very low cost and
keeps the most recent ones in memory. From a dump of this record, rose diagnose
finds the faults that reproduce a failure in a test deployment, and rose replay
replays these faults as a regression test.")
include(CPack)
