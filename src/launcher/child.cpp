#include "launcher/child.hpp"

#include "launcher/unusual.hpp"

#include <cerrno>
#include <ctime>
#include <fstream>
#include <sys/prctl.h>
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

/// 0: unknown.
pid_t parent_of(pid_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    const std::size_t name = text.rfind(')'); // which may have blanks and brackets
    return name == std::string::npos || name + 4 > text.size() ? 0 : std::atoi(text.c_str() + name + 4);
}

/// Was it sent by the command itself, or by what that has started? Then it was for their process group, to
/// which we belong and they, too: what we got is one more.
bool is_of_command(const siginfo_t& info, pid_t child) {
    if (info.si_code != SI_USER) return false;
    pid_t sender = info.si_pid;
    while (sender > 1 && sender != child)
        sender = parent_of(sender);
    return sender == child;
}

/// Stop this process by the signal that stopped the child; returns when the shell continues the job.
void stop_like(int number) {
    struct sigaction before{};
    if (number != SIGSTOP) before = set_default(number);
    // Sent while it is blocked: where the terminal has sent it to us as well, it still comes once.
    kill(getpid(), number);
    if (number == SIGSTOP) return;
    const sigset_t one = only(number);
    sigprocmask(SIG_UNBLOCK, &one, nullptr);
    if (is_passed_on(number)) sigprocmask(SIG_BLOCK, &one, nullptr);
    sigaction(number, &before, nullptr);
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
            stop_like(WSTOPSIG(status));
            kill(child, SIGCONT);
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
