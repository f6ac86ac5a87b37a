# SPDX-License-Identifier: Apache-2.0
# CPack runs this over the files of the Debian package: adds the changelog that Debian wants, and
# compresses it and the man page.
set(doc ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/share/doc/tmap)
string(TIMESTAMP today "%a, %d %b %Y 00:00:00 +0000" UTC)
file(WRITE ${doc}/changelog
  "tmap (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n  * The project's CHANGELOG.md lists what is new.\n\n"
  " -- ${CPACK_PACKAGE_CONTACT}  ${today}\n")
file(GLOB pages ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/share/man/man1/*.1)
execute_process(COMMAND gzip -9nf ${doc}/changelog ${pages} COMMAND_ERROR_IS_FATAL ANY)
