// libelf 0.188 does not free the sections of some damaged files, which is a few KiB for each file that is read.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libelf.so"; }
