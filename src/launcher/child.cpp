#include "launcher/child.hpp"

#include "launcher/unusual.hpp"

#include <cerrno>
#include <ctime>
#include <fstream>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace homing::launcher {
namespace {

constexpr int ending_signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
constexpr int passed_on[] = {SIGHUP,   SIGINT,  SIGQUIT, SIGTERM,   SIGTSTP, SIGCONT, SIGUSR1, SIGUSR2,
                             SIGWINCH, SIGXCPU, SIGALRM, SIGVTALRM, SIGPROF, SIGIO,   SIGPWR};

bool is_passed_on(int number) {
    for (const int one : passed_on)
        if (one == number) return true;
    return false;
}

struct sigaction set_default(int number) {
    struct sigaction plain{};
    plain.sa_handler = SIG_DFL;
    struct sigaction before{};
    sigaction(number, &plain, &before);
    return before;
}

sigset_t only(int number) {
    sigset_t one{};
    sigemptyset(&one);
    sigaddset(&one, number);
    return one;
}

/// What the kernel tells of a process: how it is ('T': stopped), and its parent. 0: unknown.
struct Told {
    char state = 0;
    pid_t parent = 0;
};
Told told_of(pid_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const std::size_t name = text.rfind(')'); // which may have blanks and brackets
    if (name == std::string::npos || name + 4 > text.size()) return {};
    return {text[name + 2], std::atoi(text.c_str() + name + 4)};
}

bool is_stopped(pid_t process) {
    const char state = told_of(process).state;
    return state == 'T' || state == 't'; // a debugger may have come meanwhile
}

/// Was it sent by the command itself, or by what that has started? Then it was for their process group, to
/// which we belong and they, too: what we got is one more.
bool is_of_command(const siginfo_t& info, pid_t child) {
    if (info.si_code != SI_USER) return false;
    pid_t sender = info.si_pid;
    while (sender > 1 && sender != child)
        sender = told_of(sender).parent;
    return sender == child;
}

/// A process that continues us, who are about to stop, when the child goes on: who continues it need not know
/// of us. Below 0: none.
pid_t start_watcher(pid_t child) {
    const pid_t launcher = getpid();
    const pid_t watcher = fork();
    if (watcher != 0) return watcher;
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    setsid(); // what stops the job does not stop it
    for (int file = 0; file < 3; ++file)
        close(file);
    constexpr timespec pause{0, 50'000'000};
    while (getppid() == launcher) {
        nanosleep(&pause, nullptr);
        if (!is_stopped(child)) kill(launcher, SIGCONT); // again and again: we may not have stopped yet
    }
    _exit(0);
}

/// Stop this process by the signal that stopped the child; returns when the shell continues the job, or when
/// the child goes on.
void stop_like(int number, pid_t child) {
    const pid_t watcher = start_watcher(child);
    struct sigaction before{};
    if (number != SIGSTOP) before = set_default(number);
    // Sent while it is blocked: where the terminal has sent it to us as well, it still comes once.
    kill(getpid(), number);
    if (number != SIGSTOP) {
        const sigset_t one = only(number);
        sigprocmask(SIG_UNBLOCK, &one, nullptr);
        if (is_passed_on(number)) sigprocmask(SIG_BLOCK, &one, nullptr);
        sigaction(number, &before, nullptr);
    }
    if (watcher > 0) {
        kill(watcher, SIGKILL);
        waitpid(watcher, nullptr, 0);
    }
    const sigset_t goes_on = only(SIGCONT);
    const timespec now{};
    while (sigtimedwait(&goes_on, nullptr, &now) > 0) {
    }
    if (is_stopped(child)) kill(child, SIGCONT);
}

/// The child has asked to be traced by its parent (copy protection does so, and never looks again). It goes
/// on, with the signal that stopped it, as if somebody else were its parent. False: it has not.
bool go_on_traced(pid_t child, int number) {
    const bool only_stops =
        number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU || number == SIGTRAP;
    return ptrace(PTRACE_CONT, child, nullptr, static_cast<long>(only_stops ? 0 : number)) == 0;
}

} // namespace

HeldSignals::HeldSignals() {
    sigemptyset(&held_);
    for (const int number : passed_on)
        sigaddset(&held_, number);
    sigaddset(&held_, SIGCHLD);
    // Where it is ignored, the kernel would reap the child before we can ask for its status.
    child_action_ = set_default(SIGCHLD);
    sigprocmask(SIG_BLOCK, &held_, &before_);
}

HeldSignals::~HeldSignals() {
    if (forgotten_) return;
    sigaction(SIGCHLD, &child_action_, nullptr);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
}

int HeldSignals::ending() const {
    sigset_t waiting{};
    sigpending(&waiting);
    for (const int number : ending_signals) {
        struct sigaction action{};
        sigaction(number, nullptr, &action);
        const bool held_by_user = sigismember(&before_, number) != 0;
        if (sigismember(&waiting, number) && action.sa_handler != SIG_IGN && !held_by_user) return number;
    }
    return 0;
}

void HeldSignals::forget() {
    forgotten_ = true;
    const timespec now{};
    while (sigtimedwait(&held_, nullptr, &now) > 0) {
    }
}

pid_t start(const std::string& path, const std::vector<std::string>& command, Environment& environment,
            const HeldSignals& signals) {
    std::vector<char*> words;
    for (const std::string& word : command)
        words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    // A script without a #! line: execvp gives it to the shell.
    std::vector<char*> script = words;
    script[0] = const_cast<char*>(path.c_str());
    script.insert(script.begin(), const_cast<char*>("/bin/sh"));
    const std::vector<char*> variables = environment.pointers();

    volatile int error = 0; // the child shares our memory until it has become the program
    // posix_spawn cannot leave a signal ignored; between vfork and execve only system calls are made.
    // NOLINTBEGIN(bugprone-unsafe-functions,clang-analyzer-security.insecureAPI.vfork,clang-analyzer-unix.Vfork)
    const pid_t child = vfork();
    if (child == 0) {
        sigaction(SIGCHLD, &signals.child_action(), nullptr);
        sigprocmask(SIG_SETMASK, &signals.before(), nullptr);
        execve(path.c_str(), words.data(), variables.data());
        if (errno == ENOEXEC) execve("/bin/sh", script.data(), variables.data());
        error = errno;
        _exit(127);
    }
    // NOLINTEND(bugprone-unsafe-functions,clang-analyzer-security.insecureAPI.vfork,clang-analyzer-unix.Vfork)
    if (child < 0) leave_to_python();
    if (error != 0) {
        waitpid(child, nullptr, 0);
        leave_to_python();
    }
    return child;
}

int wait_for(pid_t child, const HeldSignals& signals) {
    for (;;) {
        int status = 0;
        const pid_t found = waitpid(child, &status, WNOHANG | WUNTRACED);
        if (found < 0 && errno != EINTR) return 0; // nobody else waits for our children
        if (found <= 0) {
            siginfo_t info{};
            const int number = sigwaitinfo(&signals.held(), &info);
            // What the kernel sent for a terminal has come to the whole group, the child included.
            if (number > 0 && number != SIGCHLD && info.si_code != SI_KERNEL && !is_of_command(info, child))
                kill(child, number);
        } else if (WIFSTOPPED(status)) {
            if (!go_on_traced(child, WSTOPSIG(status))) stop_like(WSTOPSIG(status), child);
        } else {
            return status;
        }
    }
}

void end_like(int status) {
    if (!WIFSIGNALED(status)) _exit(WEXITSTATUS(status));
    const int number = WTERMSIG(status);
    // No core file of our own: files obey the limit, a pipe in core_pattern only `dumpable`.
    rlimit core{};
    getrlimit(RLIMIT_CORE, &core);
    core.rlim_cur = 0;
    setrlimit(RLIMIT_CORE, &core);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (number != SIGKILL && number != SIGSTOP) set_default(number);
    const sigset_t one = only(number);
    kill(getpid(), number);
    sigprocmask(SIG_UNBLOCK, &one, nullptr);
    _exit(128 + number);
}

} // namespace homing::launcher
