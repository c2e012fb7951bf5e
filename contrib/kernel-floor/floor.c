// The time that the kernel alone takes for a sandbox: a program that does only the system calls which the
// isolation of a native sandbox of root's needs, and nothing twice. No checks of the host, no records, no protocol.
//
//   cc -O2 -o floor floor.c && cc -O2 -static -nostdlib -DINSIDE -o inside floor.c && ./floor FOLDER 200
//
// FOLDER is on the file system to measure. It runs as root. `inside` is the first process of the sandbox: it says that
// it is ready, and waits to be killed. It has no libc, so its start is as short as a program's can be.
#ifdef INSIDE
static long call(long number, long a, long b, long c) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}
void _start(void) {
    call(1, 3, (long)"r", 1);  // write
    for (;;) call(34, 0, 0, 0);  // pause
}
#else
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NEED(what) do { if ((what) < 0) { perror(#what); _exit(1); } } while (0)
static const char *CONTROLLERS[] = {"memory", "cpu", "pids"};
static char folder[400];
static int number, inside;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void put(const char *path, const char *text) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    NEED(file);
    NEED(write(file, text, strlen(text)));
    close(file);
}

static char *at(const char *name) {
    static char paths[8][600];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, 600, "%s/%d/%s", folder, number, name);
    return path;
}

static char *group(const char *controller, const char *file) {
    static char path[300];
    snprintf(path, sizeof path, "/sys/fs/cgroup/%s/eyot-floor-%d%s", controller, number, file);
    return path;
}

// Overlays over /, /usr and /opt; /proc with its masks; devices; memory; the new root.
static void mounts(void) {
    char options[2000];
    NEED(mount("", "/", "", MS_REC | MS_PRIVATE, 0));
    snprintf(options, sizeof options, "lowerdir=%s/lower,upperdir=%s,workdir=%s,userxattr,volatile", folder, at("upper"), at("work"));
    NEED(mount("overlay", at("root"), "overlay", MS_NOSUID | MS_NODEV, options));
    NEED(chdir(at("root")));
    const char *shown[] = {"usr", "opt"};
    for (int i = 0; i < 2; i++) {
        snprintf(options, sizeof options, "lowerdir=%s/lower/empty:/%s,userxattr", folder, shown[i]);
        NEED(mount("overlay", shown[i], "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV, options));
    }
    NEED(mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, ""));
    const char *masks[] = {"fs", "bus", "irq", "keys", "iomem", "locks", "swaps", "crypto", "driver", "vmstat", "cgroups", "cmdline", "ioports",
                           "kallsyms", "pressure", "softirqs", "zoneinfo", "buddyinfo", "diskstats", "interrupts", "partitions"};
    for (unsigned i = 0; i < sizeof masks / sizeof *masks; i++) {
        struct stat found;
        snprintf(options, sizeof options, "proc/%s", masks[i]);
        if (stat(options, &found)) continue;
        NEED(mount(S_ISDIR(found.st_mode) ? "empty" : "/dev/null", options, "", MS_BIND, ""));
    }
    NEED(mount("proc/sys", "proc/sys", "", MS_BIND | MS_REC, ""));
    NEED(mount("", "proc/sys", "", MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, ""));
    const char *devices[] = {"null", "zero", "full", "random", "urandom", "tty"};
    for (int i = 0; i < 6; i++) {
        char from[30], to[30];
        snprintf(from, sizeof from, "/dev/%s", devices[i]);
        snprintf(to, sizeof to, "dev/%s", devices[i]);
        NEED(mount(from, to, "", MS_BIND, ""));
    }
    NEED(mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"));
    NEED(mount("tmpfs", "run", "tmpfs", MS_NOSUID | MS_NODEV, "size=1g,mode=755"));
    NEED(syscall(SYS_pivot_root, ".", "."));
    NEED(umount2(".", MNT_DETACH));
    NEED(chdir("/"));
}

static void confine(void) {
    int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    NEED(ioctl(sock, SIOCSIFFLAGS, &lo));
    NEED(sethostname("floor", 5));
    NEED(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    for (int capability = 0; capability <= 40; capability++) prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
    struct landlock_ruleset_attr rules = {.handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_BLOCK};
    int ruleset = syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
    if (ruleset >= 0) NEED(syscall(SYS_landlock_restrict_self, ruleset, 0));
    // As many instructions as the real filter has; all are passed.
    static struct sock_filter filter[600];
    for (int i = 0; i < 599; i++) filter[i] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
    filter[599] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {600, filter};
    NEED(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

static void create(int ready, int *pidfd, int *pid) {
    int gate[2];
    NEED(pipe2(gate, O_CLOEXEC));
    mkdir(at(""), 0711);
    mkdir(at("upper"), 0755); mkdir(at("work"), 0755); mkdir(at("root"), 0755);
    for (int i = 0; i < 3; i++) NEED(mkdir(group(CONTROLLERS[i], ""), 0755));
    put(group("memory", "/memory.limit_in_bytes"), "2147483648");
    put(group("pids", "/pids.max"), "4096");
    struct clone_args args = {.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | CLONE_PIDFD,
                              .pidfd = (unsigned long)pidfd, .exit_signal = SIGCHLD};
    *pid = syscall(SYS_clone3, &args, sizeof args);
    NEED(*pid);
    if (*pid == 0) {
        char byte;
        close(gate[1]);
        NEED(read(gate[0], &byte, 1));
        for (int i = 0; i < 3; i++) put(group(CONTROLLERS[i], "/tasks"), "0");
        NEED(unshare(CLONE_NEWCGROUP));
        NEED(setresgid(0, 0, 0)); NEED(setresuid(0, 0, 0));
        mounts();
        confine();
        dup2(ready, 3);
        char *none[] = {0};
        NEED(syscall(SYS_execveat, inside, "", none, none, AT_EMPTY_PATH));
    }
    char path[60];
    snprintf(path, sizeof path, "/proc/%d/uid_map", *pid);
    put(path, "0 1879113728 65536");
    snprintf(path, sizeof path, "/proc/%d/gid_map", *pid);
    put(path, "0 1879113728 65536");
    NEED(chown(at("upper"), 1879113728, 1879113728)); NEED(chown(at("work"), 1879113728, 1879113728));
    NEED(write(gate[1], "g", 1));
    close(gate[0]); close(gate[1]);
}

static int by_size(const void *a, const void *b) { return *(double *)a < *(double *)b ? -1 : 1; }
static double median(double *times, int count) { qsort(times, count, sizeof *times, by_size); return times[count / 2]; }

int main(int count, char **words) {
    if (count != 3) return fprintf(stderr, "floor FOLDER ROUNDS\n"), 2;
    int rounds = atoi(words[2]);
    double *spawned = calloc(rounds, 8), *made = calloc(rounds, 8), *ended = calloc(rounds, 8);
    snprintf(folder, sizeof folder, "%s/eyot-floor", words[1]);
    inside = fcntl(open("inside", O_RDONLY | O_CLOEXEC), F_DUPFD_CLOEXEC, 100);
    NEED(inside);
    mkdir(folder, 0711);
    const char *lower[] = {"", "/empty", "/usr", "/opt", "/proc", "/dev", "/dev/pts", "/run"};
    const char *files[] = {"null", "zero", "full", "random", "urandom", "tty"};
    char path[600];
    for (int i = 0; i < 8; i++) { snprintf(path, sizeof path, "%s/lower%s", folder, lower[i]); mkdir(path, 0755); }
    for (int i = 0; i < 6; i++) { snprintf(path, sizeof path, "%s/lower/dev/%s", folder, files[i]); close(open(path, O_CREAT, 0644)); }
    for (number = 0; number < rounds; number++) {
        double since = now();
        pid_t child;
        char *true_words[] = {"/bin/true", 0}, *none[] = {0};
        NEED(-posix_spawn(&child, "/bin/true", 0, 0, true_words, none));
        NEED(waitpid(child, 0, 0));
        spawned[number] = now() - since;
        int ready[2], pidfd = -1, pid;
        since = now();
        NEED(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ready));
        create(ready[1], &pidfd, &pid);
        close(ready[1]);
        char byte;
        if (read(ready[0], &byte, 1) != 1) return fprintf(stderr, "the sandbox ended\n"), 1;
        made[number] = now() - since;
        since = now();
        NEED(kill(pid, SIGKILL));
        NEED(waitpid(pid, 0, 0));
        for (int i = 0; i < 3; i++) NEED(rmdir(group(CONTROLLERS[i], "")));
        unlink(at("work/work/incompat/volatile/dirty"));
        const char *left[] = {"work/work/incompat/volatile", "work/work/incompat", "work/work", "work"};
        for (int i = 0; i < 4; i++) rmdir(at(left[i]));
        rmdir(at("upper")); rmdir(at("root")); rmdir(at(""));
        ended[number] = now() - since;
        close(ready[0]); close(pidfd);
    }
    double spawn = median(spawned, rounds), create_time = median(made, rounds);
    printf("spawn of /bin/true %.0f us, sandbox ready %.0f us (%.2f of it), end and removal %.0f us\n", spawn, create_time, create_time / spawn,
           median(ended, rounds));
}
#endif
