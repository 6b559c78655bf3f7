#include "kernel/syscalls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <unordered_map>

#include "kernel/syscalls_arm64.h"

namespace rose::kernel {

namespace {

using Index = std::int8_t;

// Constructors for common argument lists. The numbers are argument positions.
constexpr SyscallInfo plain(int number, std::string_view name) {
  SyscallInfo info;
  info.number = number;
  info.name = name;
  return info;
}
constexpr SyscallInfo path(int number, std::string_view name, Index path) {
  SyscallInfo info = plain(number, name);
  info.path = path;
  return info;
}
constexpr SyscallInfo at(int number, std::string_view name, Index dirfd, Index path) {
  SyscallInfo info = plain(number, name);
  info.dirfd = dirfd;
  info.path = path;
  return info;
}
constexpr SyscallInfo two(int number, std::string_view name, Index path, Index path2) {
  SyscallInfo info = plain(number, name);
  info.path = path;
  info.path2 = path2;
  return info;
}
constexpr SyscallInfo at_two(int number, std::string_view name, Index dirfd, Index path, Index dirfd2, Index path2) {
  SyscallInfo info = two(number, name, path, path2);
  info.dirfd = dirfd;
  info.dirfd2 = dirfd2;
  return info;
}
constexpr SyscallInfo on_fd(int number, std::string_view name, Index fd) {
  SyscallInfo info = plain(number, name);
  info.fd = fd;
  return info;
}
constexpr SyscallInfo fd_path(int number, std::string_view name, Index fd, Index path) {
  SyscallInfo info = on_fd(number, name, fd);
  info.path = path;
  return info;
}
constexpr SyscallInfo fd_at_path(int number, std::string_view name, Index fd, Index dirfd, Index path) {
  SyscallInfo info = on_fd(number, name, fd);
  info.dirfd = dirfd;
  info.path = path;
  return info;
}
constexpr SyscallInfo sock(int number, std::string_view name, Index fd, Index sockaddr) {
  SyscallInfo info = on_fd(number, name, fd);
  info.sockaddr = sockaddr;
  return info;
}
constexpr SyscallInfo changing(SyscallInfo info) {
  info.state_changing = true;
  return info;
}

// Numbers up to 450 are those of asm/unistd_64.h (Linux 6.1); 335, 336 and 451 to 469 were added up to Linux 6.18.
// Where more than one choice is possible:
// - symlink, symlinkat, mount: `path` is what is created (the link, the mount point), and `path2` is the link's target
// or the source of the mount, which need not be a path.
// - calls that move data between two descriptors (sendfile, splice, tee, copy_file_range): `fd` is the descriptor that
// is written to, because a full or broken disk shows there. For epoll_ctl, it is the watched descriptor.
// - sendmsg and similar calls pass their address in a msghdr and have no `sockaddr` here.
// - names of message queues, memfds, keys and file system types are not paths.
constexpr auto kTable = std::to_array<SyscallInfo>({
    on_fd(0, "read", 0),
    on_fd(1, "write", 0),
    changing(path(2, "open", 0)),
    on_fd(3, "close", 0),
    path(4, "stat", 0),
    on_fd(5, "fstat", 0),
    path(6, "lstat", 0),
    plain(7, "poll"),
    on_fd(8, "lseek", 0),
    on_fd(9, "mmap", 4),
    plain(10, "mprotect"),
    plain(11, "munmap"),
    plain(12, "brk"),
    plain(13, "rt_sigaction"),
    plain(14, "rt_sigprocmask"),
    plain(15, "rt_sigreturn"),
    on_fd(16, "ioctl", 0),
    on_fd(17, "pread64", 0),
    on_fd(18, "pwrite64", 0),
    on_fd(19, "readv", 0),
    on_fd(20, "writev", 0),
    path(21, "access", 0),
    plain(22, "pipe"),
    plain(23, "select"),
    plain(24, "sched_yield"),
    plain(25, "mremap"),
    changing(plain(26, "msync")),
    plain(27, "mincore"),
    plain(28, "madvise"),
    plain(29, "shmget"),
    plain(30, "shmat"),
    plain(31, "shmctl"),
    on_fd(32, "dup", 0),
    on_fd(33, "dup2", 0),
    plain(34, "pause"),
    plain(35, "nanosleep"),
    plain(36, "getitimer"),
    plain(37, "alarm"),
    plain(38, "setitimer"),
    plain(39, "getpid"),
    on_fd(40, "sendfile", 0),
    plain(41, "socket"),
    changing(sock(42, "connect", 0, 1)),
    changing(on_fd(43, "accept", 0)),
    sock(44, "sendto", 0, 4),
    on_fd(45, "recvfrom", 0),
    on_fd(46, "sendmsg", 0),
    on_fd(47, "recvmsg", 0),
    on_fd(48, "shutdown", 0),
    sock(49, "bind", 0, 1),
    changing(on_fd(50, "listen", 0)),
    on_fd(51, "getsockname", 0),
    on_fd(52, "getpeername", 0),
    plain(53, "socketpair"),
    on_fd(54, "setsockopt", 0),
    on_fd(55, "getsockopt", 0),
    plain(56, "clone"),
    plain(57, "fork"),
    plain(58, "vfork"),
    changing(path(59, "execve", 0)),
    plain(60, "exit"),
    plain(61, "wait4"),
    plain(62, "kill"),
    plain(63, "uname"),
    plain(64, "semget"),
    plain(65, "semop"),
    plain(66, "semctl"),
    plain(67, "shmdt"),
    plain(68, "msgget"),
    plain(69, "msgsnd"),
    plain(70, "msgrcv"),
    plain(71, "msgctl"),
    on_fd(72, "fcntl", 0),
    on_fd(73, "flock", 0),
    changing(on_fd(74, "fsync", 0)),
    changing(on_fd(75, "fdatasync", 0)),
    changing(path(76, "truncate", 0)),
    changing(on_fd(77, "ftruncate", 0)),
    on_fd(78, "getdents", 0),
    plain(79, "getcwd"),
    path(80, "chdir", 0),
    on_fd(81, "fchdir", 0),
    changing(two(82, "rename", 0, 1)),
    changing(path(83, "mkdir", 0)),
    changing(path(84, "rmdir", 0)),
    changing(path(85, "creat", 0)),
    changing(two(86, "link", 0, 1)),
    changing(path(87, "unlink", 0)),
    changing(two(88, "symlink", 1, 0)),
    path(89, "readlink", 0),
    path(90, "chmod", 0),
    on_fd(91, "fchmod", 0),
    path(92, "chown", 0),
    on_fd(93, "fchown", 0),
    path(94, "lchown", 0),
    plain(95, "umask"),
    plain(96, "gettimeofday"),
    plain(97, "getrlimit"),
    plain(98, "getrusage"),
    plain(99, "sysinfo"),
    plain(100, "times"),
    plain(101, "ptrace"),
    plain(102, "getuid"),
    plain(103, "syslog"),
    plain(104, "getgid"),
    plain(105, "setuid"),
    plain(106, "setgid"),
    plain(107, "geteuid"),
    plain(108, "getegid"),
    plain(109, "setpgid"),
    plain(110, "getppid"),
    plain(111, "getpgrp"),
    plain(112, "setsid"),
    plain(113, "setreuid"),
    plain(114, "setregid"),
    plain(115, "getgroups"),
    plain(116, "setgroups"),
    plain(117, "setresuid"),
    plain(118, "getresuid"),
    plain(119, "setresgid"),
    plain(120, "getresgid"),
    plain(121, "getpgid"),
    plain(122, "setfsuid"),
    plain(123, "setfsgid"),
    plain(124, "getsid"),
    plain(125, "capget"),
    plain(126, "capset"),
    plain(127, "rt_sigpending"),
    plain(128, "rt_sigtimedwait"),
    plain(129, "rt_sigqueueinfo"),
    plain(130, "rt_sigsuspend"),
    plain(131, "sigaltstack"),
    path(132, "utime", 0),
    changing(path(133, "mknod", 0)),
    path(134, "uselib", 0),
    plain(135, "personality"),
    plain(136, "ustat"),
    path(137, "statfs", 0),
    on_fd(138, "fstatfs", 0),
    plain(139, "sysfs"),
    plain(140, "getpriority"),
    plain(141, "setpriority"),
    plain(142, "sched_setparam"),
    plain(143, "sched_getparam"),
    plain(144, "sched_setscheduler"),
    plain(145, "sched_getscheduler"),
    plain(146, "sched_get_priority_max"),
    plain(147, "sched_get_priority_min"),
    plain(148, "sched_rr_get_interval"),
    plain(149, "mlock"),
    plain(150, "munlock"),
    plain(151, "mlockall"),
    plain(152, "munlockall"),
    plain(153, "vhangup"),
    plain(154, "modify_ldt"),
    two(155, "pivot_root", 0, 1),
    plain(156, "_sysctl"),
    plain(157, "prctl"),
    plain(158, "arch_prctl"),
    plain(159, "adjtimex"),
    plain(160, "setrlimit"),
    path(161, "chroot", 0),
    changing(plain(162, "sync")),
    path(163, "acct", 0),
    plain(164, "settimeofday"),
    two(165, "mount", 1, 0),
    path(166, "umount2", 0),
    path(167, "swapon", 0),
    path(168, "swapoff", 0),
    plain(169, "reboot"),
    plain(170, "sethostname"),
    plain(171, "setdomainname"),
    plain(172, "iopl"),
    plain(173, "ioperm"),
    plain(174, "create_module"),
    plain(175, "init_module"),
    plain(176, "delete_module"),
    plain(177, "get_kernel_syms"),
    plain(178, "query_module"),
    path(179, "quotactl", 1),
    plain(180, "nfsservctl"),
    plain(181, "getpmsg"),
    plain(182, "putpmsg"),
    plain(183, "afs_syscall"),
    plain(184, "tuxcall"),
    plain(185, "security"),
    plain(186, "gettid"),
    on_fd(187, "readahead", 0),
    path(188, "setxattr", 0),
    path(189, "lsetxattr", 0),
    on_fd(190, "fsetxattr", 0),
    path(191, "getxattr", 0),
    path(192, "lgetxattr", 0),
    on_fd(193, "fgetxattr", 0),
    path(194, "listxattr", 0),
    path(195, "llistxattr", 0),
    on_fd(196, "flistxattr", 0),
    path(197, "removexattr", 0),
    path(198, "lremovexattr", 0),
    on_fd(199, "fremovexattr", 0),
    plain(200, "tkill"),
    plain(201, "time"),
    plain(202, "futex"),
    plain(203, "sched_setaffinity"),
    plain(204, "sched_getaffinity"),
    plain(205, "set_thread_area"),
    plain(206, "io_setup"),
    plain(207, "io_destroy"),
    plain(208, "io_getevents"),
    plain(209, "io_submit"),
    plain(210, "io_cancel"),
    plain(211, "get_thread_area"),
    plain(212, "lookup_dcookie"),
    plain(213, "epoll_create"),
    plain(214, "epoll_ctl_old"),
    plain(215, "epoll_wait_old"),
    plain(216, "remap_file_pages"),
    on_fd(217, "getdents64", 0),
    plain(218, "set_tid_address"),
    plain(219, "restart_syscall"),
    plain(220, "semtimedop"),
    on_fd(221, "fadvise64", 0),
    plain(222, "timer_create"),
    plain(223, "timer_settime"),
    plain(224, "timer_gettime"),
    plain(225, "timer_getoverrun"),
    plain(226, "timer_delete"),
    plain(227, "clock_settime"),
    plain(228, "clock_gettime"),
    plain(229, "clock_getres"),
    plain(230, "clock_nanosleep"),
    plain(231, "exit_group"),
    on_fd(232, "epoll_wait", 0),
    on_fd(233, "epoll_ctl", 2),
    plain(234, "tgkill"),
    path(235, "utimes", 0),
    plain(236, "vserver"),
    plain(237, "mbind"),
    plain(238, "set_mempolicy"),
    plain(239, "get_mempolicy"),
    plain(240, "mq_open"),
    plain(241, "mq_unlink"),
    on_fd(242, "mq_timedsend", 0),
    on_fd(243, "mq_timedreceive", 0),
    on_fd(244, "mq_notify", 0),
    on_fd(245, "mq_getsetattr", 0),
    plain(246, "kexec_load"),
    plain(247, "waitid"),
    plain(248, "add_key"),
    plain(249, "request_key"),
    plain(250, "keyctl"),
    plain(251, "ioprio_set"),
    plain(252, "ioprio_get"),
    plain(253, "inotify_init"),
    fd_path(254, "inotify_add_watch", 0, 1),
    on_fd(255, "inotify_rm_watch", 0),
    plain(256, "migrate_pages"),
    changing(at(257, "openat", 0, 1)),
    changing(at(258, "mkdirat", 0, 1)),
    changing(at(259, "mknodat", 0, 1)),
    at(260, "fchownat", 0, 1),
    at(261, "futimesat", 0, 1),
    at(262, "newfstatat", 0, 1),
    changing(at(263, "unlinkat", 0, 1)),
    changing(at_two(264, "renameat", 0, 1, 2, 3)),
    changing(at_two(265, "linkat", 0, 1, 2, 3)),
    changing(at_two(266, "symlinkat", 1, 2, -1, 0)),
    at(267, "readlinkat", 0, 1),
    at(268, "fchmodat", 0, 1),
    at(269, "faccessat", 0, 1),
    plain(270, "pselect6"),
    plain(271, "ppoll"),
    plain(272, "unshare"),
    plain(273, "set_robust_list"),
    plain(274, "get_robust_list"),
    on_fd(275, "splice", 2),
    on_fd(276, "tee", 1),
    changing(on_fd(277, "sync_file_range", 0)),
    on_fd(278, "vmsplice", 0),
    plain(279, "move_pages"),
    at(280, "utimensat", 0, 1),
    on_fd(281, "epoll_pwait", 0),
    on_fd(282, "signalfd", 0),
    plain(283, "timerfd_create"),
    plain(284, "eventfd"),
    changing(on_fd(285, "fallocate", 0)),
    on_fd(286, "timerfd_settime", 0),
    on_fd(287, "timerfd_gettime", 0),
    changing(on_fd(288, "accept4", 0)),
    on_fd(289, "signalfd4", 0),
    plain(290, "eventfd2"),
    plain(291, "epoll_create1"),
    on_fd(292, "dup3", 0),
    plain(293, "pipe2"),
    plain(294, "inotify_init1"),
    on_fd(295, "preadv", 0),
    on_fd(296, "pwritev", 0),
    plain(297, "rt_tgsigqueueinfo"),
    plain(298, "perf_event_open"),
    on_fd(299, "recvmmsg", 0),
    plain(300, "fanotify_init"),
    fd_at_path(301, "fanotify_mark", 0, 3, 4),
    plain(302, "prlimit64"),
    at(303, "name_to_handle_at", 0, 1),
    on_fd(304, "open_by_handle_at", 0),
    plain(305, "clock_adjtime"),
    changing(on_fd(306, "syncfs", 0)),
    on_fd(307, "sendmmsg", 0),
    on_fd(308, "setns", 0),
    plain(309, "getcpu"),
    plain(310, "process_vm_readv"),
    plain(311, "process_vm_writev"),
    plain(312, "kcmp"),
    on_fd(313, "finit_module", 0),
    plain(314, "sched_setattr"),
    plain(315, "sched_getattr"),
    changing(at_two(316, "renameat2", 0, 1, 2, 3)),
    plain(317, "seccomp"),
    plain(318, "getrandom"),
    plain(319, "memfd_create"),
    on_fd(320, "kexec_file_load", 0),
    plain(321, "bpf"),
    changing(at(322, "execveat", 0, 1)),
    plain(323, "userfaultfd"),
    plain(324, "membarrier"),
    plain(325, "mlock2"),
    on_fd(326, "copy_file_range", 2),
    on_fd(327, "preadv2", 0),
    on_fd(328, "pwritev2", 0),
    plain(329, "pkey_mprotect"),
    plain(330, "pkey_alloc"),
    plain(331, "pkey_free"),
    at(332, "statx", 0, 1),
    plain(333, "io_pgetevents"),
    plain(334, "rseq"),
    plain(335, "uretprobe"),
    plain(336, "uprobe"),
    on_fd(424, "pidfd_send_signal", 0),
    plain(425, "io_uring_setup"),
    on_fd(426, "io_uring_enter", 0),
    on_fd(427, "io_uring_register", 0),
    at(428, "open_tree", 0, 1),
    at_two(429, "move_mount", 0, 1, 2, 3),
    plain(430, "fsopen"),
    on_fd(431, "fsconfig", 0),
    on_fd(432, "fsmount", 0),
    at(433, "fspick", 0, 1),
    plain(434, "pidfd_open"),
    plain(435, "clone3"),
    plain(436, "close_range"),
    changing(at(437, "openat2", 0, 1)),
    on_fd(438, "pidfd_getfd", 0),
    at(439, "faccessat2", 0, 1),
    on_fd(440, "process_madvise", 0),
    on_fd(441, "epoll_pwait2", 0),
    at(442, "mount_setattr", 0, 1),
    on_fd(443, "quotactl_fd", 0),
    plain(444, "landlock_create_ruleset"),
    on_fd(445, "landlock_add_rule", 0),
    on_fd(446, "landlock_restrict_self", 0),
    plain(447, "memfd_secret"),
    on_fd(448, "process_mrelease", 0),
    plain(449, "futex_waitv"),
    plain(450, "set_mempolicy_home_node"),
    on_fd(451, "cachestat", 0),
    at(452, "fchmodat2", 0, 1),
    plain(453, "map_shadow_stack"),
    plain(454, "futex_wake"),
    plain(455, "futex_wait"),
    plain(456, "futex_requeue"),
    plain(457, "statmount"),
    plain(458, "listmount"),
    plain(459, "lsm_get_self_attr"),
    plain(460, "lsm_set_self_attr"),
    plain(461, "lsm_list_modules"),
    plain(462, "mseal"),
    at(463, "setxattrat", 0, 1),
    at(464, "getxattrat", 0, 1),
    at(465, "listxattrat", 0, 1),
    at(466, "removexattrat", 0, 1),
    at(467, "open_tree_attr", 0, 1),
    at(468, "file_getattr", 0, 1),
    at(469, "file_setattr", 0, 1),
});

constexpr bool table_is_ordered() {
  for (std::size_t i = 1; i < kTable.size(); ++i) {
    if (kTable[i - 1].number >= kTable[i].number) return false;
  }
  return kTable.back().number < kMostSyscalls;
}
static_assert(table_is_ordered());

#ifdef __aarch64__
// The table with this processor's numbers. Calls that this processor does not have get numbers that its kernel does not
// use, so that schedules and dumps of other machines can name them.
constexpr int kUnusedNumbers = 300;
constexpr std::array<SyscallInfo, kTable.size()> native_table() {
  std::array<SyscallInfo, kTable.size()> table = kTable;
  int unused = kUnusedNumbers;
  for (SyscallInfo& info : table) {
    if (info.number >= kSharedNumbers) continue;
    const auto* const found = std::find_if(kArm64Calls.begin(), kArm64Calls.end(),
                                           [&](const NumberedName& call) { return call.name == info.name; });
    info.number = found != kArm64Calls.end() ? found->number : unused++;
  }
  return unused < 403 ? table : throw "no numbers are left";
}
constexpr auto kNative = native_table();
#else
constexpr const auto& kNative = kTable;
#endif

using Name = NumberedName;

constexpr auto kErrnos = std::to_array<Name>({
    {1, "EPERM"},
    {2, "ENOENT"},
    {3, "ESRCH"},
    {4, "EINTR"},
    {5, "EIO"},
    {6, "ENXIO"},
    {7, "E2BIG"},
    {8, "ENOEXEC"},
    {9, "EBADF"},
    {10, "ECHILD"},
    {11, "EAGAIN"},
    {12, "ENOMEM"},
    {13, "EACCES"},
    {14, "EFAULT"},
    {15, "ENOTBLK"},
    {16, "EBUSY"},
    {17, "EEXIST"},
    {18, "EXDEV"},
    {19, "ENODEV"},
    {20, "ENOTDIR"},
    {21, "EISDIR"},
    {22, "EINVAL"},
    {23, "ENFILE"},
    {24, "EMFILE"},
    {25, "ENOTTY"},
    {26, "ETXTBSY"},
    {27, "EFBIG"},
    {28, "ENOSPC"},
    {29, "ESPIPE"},
    {30, "EROFS"},
    {31, "EMLINK"},
    {32, "EPIPE"},
    {33, "EDOM"},
    {34, "ERANGE"},
    {35, "EDEADLK"},
    {36, "ENAMETOOLONG"},
    {37, "ENOLCK"},
    {38, "ENOSYS"},
    {39, "ENOTEMPTY"},
    {40, "ELOOP"},
    {42, "ENOMSG"},
    {43, "EIDRM"},
    {44, "ECHRNG"},
    {45, "EL2NSYNC"},
    {46, "EL3HLT"},
    {47, "EL3RST"},
    {48, "ELNRNG"},
    {49, "EUNATCH"},
    {50, "ENOCSI"},
    {51, "EL2HLT"},
    {52, "EBADE"},
    {53, "EBADR"},
    {54, "EXFULL"},
    {55, "ENOANO"},
    {56, "EBADRQC"},
    {57, "EBADSLT"},
    {59, "EBFONT"},
    {60, "ENOSTR"},
    {61, "ENODATA"},
    {62, "ETIME"},
    {63, "ENOSR"},
    {64, "ENONET"},
    {65, "ENOPKG"},
    {66, "EREMOTE"},
    {67, "ENOLINK"},
    {68, "EADV"},
    {69, "ESRMNT"},
    {70, "ECOMM"},
    {71, "EPROTO"},
    {72, "EMULTIHOP"},
    {73, "EDOTDOT"},
    {74, "EBADMSG"},
    {75, "EOVERFLOW"},
    {76, "ENOTUNIQ"},
    {77, "EBADFD"},
    {78, "EREMCHG"},
    {79, "ELIBACC"},
    {80, "ELIBBAD"},
    {81, "ELIBSCN"},
    {82, "ELIBMAX"},
    {83, "ELIBEXEC"},
    {84, "EILSEQ"},
    {85, "ERESTART"},
    {86, "ESTRPIPE"},
    {87, "EUSERS"},
    {88, "ENOTSOCK"},
    {89, "EDESTADDRREQ"},
    {90, "EMSGSIZE"},
    {91, "EPROTOTYPE"},
    {92, "ENOPROTOOPT"},
    {93, "EPROTONOSUPPORT"},
    {94, "ESOCKTNOSUPPORT"},
    {95, "EOPNOTSUPP"},
    {96, "EPFNOSUPPORT"},
    {97, "EAFNOSUPPORT"},
    {98, "EADDRINUSE"},
    {99, "EADDRNOTAVAIL"},
    {100, "ENETDOWN"},
    {101, "ENETUNREACH"},
    {102, "ENETRESET"},
    {103, "ECONNABORTED"},
    {104, "ECONNRESET"},
    {105, "ENOBUFS"},
    {106, "EISCONN"},
    {107, "ENOTCONN"},
    {108, "ESHUTDOWN"},
    {109, "ETOOMANYREFS"},
    {110, "ETIMEDOUT"},
    {111, "ECONNREFUSED"},
    {112, "EHOSTDOWN"},
    {113, "EHOSTUNREACH"},
    {114, "EALREADY"},
    {115, "EINPROGRESS"},
    {116, "ESTALE"},
    {117, "EUCLEAN"},
    {118, "ENOTNAM"},
    {119, "ENAVAIL"},
    {120, "EISNAM"},
    {121, "EREMOTEIO"},
    {122, "EDQUOT"},
    {123, "ENOMEDIUM"},
    {124, "EMEDIUMTYPE"},
    {125, "ECANCELED"},
    {126, "ENOKEY"},
    {127, "EKEYEXPIRED"},
    {128, "EKEYREVOKED"},
    {129, "EKEYREJECTED"},
    {130, "EOWNERDEAD"},
    {131, "ENOTRECOVERABLE"},
    {132, "ERFKILL"},
    {133, "EHWPOISON"},
    {524, "ENOTSUPP"},
});
constexpr int kMostErrno = 4095;  // MAX_ERRNO of the kernel

// Aliases, which are accepted but not printed.
constexpr auto kErrnoAliases = std::to_array<Name>({
    {11, "EWOULDBLOCK"},
    {35, "EDEADLOCK"},
    {95, "ENOTSUP"},
});

constexpr auto kSignals = std::to_array<Name>({
    {1, "SIGHUP"},   {2, "SIGINT"},     {3, "SIGQUIT"},  {4, "SIGILL"},     {5, "SIGTRAP"},  {6, "SIGABRT"},
    {7, "SIGBUS"},   {8, "SIGFPE"},     {9, "SIGKILL"},  {10, "SIGUSR1"},   {11, "SIGSEGV"}, {12, "SIGUSR2"},
    {13, "SIGPIPE"}, {14, "SIGALRM"},   {15, "SIGTERM"}, {16, "SIGSTKFLT"}, {17, "SIGCHLD"}, {18, "SIGCONT"},
    {19, "SIGSTOP"}, {20, "SIGTSTP"},   {21, "SIGTTIN"}, {22, "SIGTTOU"},   {23, "SIGURG"},  {24, "SIGXCPU"},
    {25, "SIGXFSZ"}, {26, "SIGVTALRM"}, {27, "SIGPROF"}, {28, "SIGWINCH"},  {29, "SIGIO"},   {30, "SIGPWR"},
    {31, "SIGSYS"},
});
constexpr int kMostSignal = 64;

constexpr auto kSignalAliases = std::to_array<Name>({
    {6, "SIGIOT"},
    {17, "SIGCLD"},
    {29, "SIGPOLL"},
});

// The decimal number after `prefix` if the text contains nothing else and is in canonical form (no leading zeros).
std::optional<int> number_after(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <typename Container>
std::unordered_map<std::string_view, int> by_name(const Container& names) {
  std::unordered_map<std::string_view, int> map;
  for (const auto& entry : names) map.emplace(entry.name, entry.number);
  return map;
}

}  // namespace

const SyscallInfo* find_syscall(int number) {
  static const auto index = [] {
    std::array<const SyscallInfo*, kMostSyscalls> table{};
    for (const SyscallInfo& info : kNative) table[static_cast<std::size_t>(info.number)] = &info;
    return table;
  }();
  if (number < 0 || number >= kMostSyscalls) return nullptr;
  return index[static_cast<std::size_t>(number)];
}

const SyscallInfo* find_syscall(std::string_view name) {
  static const auto numbers = by_name(kNative);
  const auto found = numbers.find(name);
  return found == numbers.end() ? nullptr : find_syscall(found->second);
}

const std::vector<SyscallInfo>& all_syscalls() {
  static const std::vector<SyscallInfo> all(kNative.begin(), kNative.end());
  return all;
}

std::string syscall_name(int number) {
  if (const SyscallInfo* info = find_syscall(number)) return std::string(info->name);
  return fmt::format("syscall_{}", number);
}

std::optional<int> syscall_number(std::string_view name) {
  if (const SyscallInfo* info = find_syscall(name)) return info->number;
  const std::optional<int> number = number_after(name, "syscall_");
  if (!number || *number >= kMostSyscalls) return std::nullopt;
  return number;
}

int portable_call(int number) {
  if (number < 0 || number >= kSharedNumbers) return number;
  const SyscallInfo* info = find_syscall(number);
  return info == nullptr ? number : kTable[static_cast<std::size_t>(info - kNative.data())].number;
}

int native_call(int portable) {
  if (portable < 0 || portable >= kSharedNumbers) return portable;
  const auto found = std::lower_bound(kTable.begin(), kTable.end(), portable,
                                      [](const SyscallInfo& info, int number) { return info.number < number; });
  if (found == kTable.end() || found->number != portable) return portable;
  return kNative[static_cast<std::size_t>(found - kTable.begin())].number;
}

bool names_own_address(std::string_view syscall) {
  return syscall == "accept" || syscall == "accept4" || syscall == "bind" || syscall == "listen";
}

bool names_peer_in_message(std::string_view syscall) { return syscall == "sendmsg" || syscall == "sendmmsg"; }

bool sends_datagrams(std::string_view syscall) { return syscall == "sendto" || names_peer_in_message(syscall); }

std::vector<std::string> syscall_names() {
  std::vector<std::string> names;
  names.reserve(kNative.size());
  for (const SyscallInfo& info : kNative) names.emplace_back(info.name);
  return names;
}

std::string errno_name(int err) {
  static const auto names = [] {
    std::unordered_map<int, std::string_view> map;
    for (const Name& entry : kErrnos) map.emplace(entry.number, entry.name);
    return map;
  }();
  const auto found = names.find(err);
  return found != names.end() ? std::string(found->second) : fmt::format("E{}", err);
}

std::optional<int> errno_number(std::string_view name) {
  static const auto numbers = [] {
    auto map = by_name(kErrnos);
    map.merge(by_name(kErrnoAliases));
    return map;
  }();
  if (const auto found = numbers.find(name); found != numbers.end()) return found->second;
  const std::optional<int> number = number_after(name, "E");
  if (!number || *number < 1 || *number > kMostErrno) return std::nullopt;
  return number;
}

std::vector<std::string> errno_names() {
  std::vector<std::string> names;
  names.reserve(kErrnos.size());
  for (const Name& entry : kErrnos) names.emplace_back(entry.name);
  return names;
}

bool resource_error(int err) {
  switch (err) {
    case EIO:
    case ENOSPC:
    case EDQUOT:
    case EROFS:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ESTALE:
    case EUCLEAN:
    case EBADMSG:
    case ENODEV:
    case EREMOTEIO: return true;
    default: return false;
  }
}

bool runtime_asks(int err, std::string_view syscall, std::string_view path) {
  if (path.find("/LC_MESSAGES/") != std::string_view::npos) return true;
  return (err == EPERM && syscall == "epoll_ctl") || (err == ENOTTY && syscall == "ioctl") ||
         (err == ESPIPE && syscall == "lseek");
}

std::string signal_name(int signal) {
  if (signal >= 1 && static_cast<std::size_t>(signal) <= kSignals.size())
    return std::string(kSignals[static_cast<std::size_t>(signal) - 1].name);
  return fmt::format("SIG{}", signal);
}

std::optional<int> signal_number(std::string_view name) {
  for (const Name& entry : kSignals) {
    if (entry.name == name) return entry.number;
  }
  for (const Name& entry : kSignalAliases) {
    if (entry.name == name) return entry.number;
  }
  const std::optional<int> number = number_after(name, "SIG");
  if (!number || *number < 1 || *number > kMostSignal) return std::nullopt;
  return number;
}

}  // namespace rose::kernel
