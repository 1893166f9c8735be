#include "launcher/python.hpp"

#include "launcher/files.hpp"
#include "launcher/unusual.hpp"

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <glob.h>
#include <unistd.h>

namespace homing::launcher {
namespace {

/// The folder that this program lies in, links followed; empty where /proc is not there.
std::string own_folder() {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0) return "";
    return folder_of(std::string(path, static_cast<std::size_t>(length)));
}

/// The first file that a pattern of the shell names; empty: none.
std::string first_match(const std::string& pattern) {
    glob_t found{};
    std::string path;
    if (glob(pattern.c_str(), 0, nullptr, &found) == 0 && found.gl_pathc > 0) path = found.gl_pathv[0];
    globfree(&found);
    return path;
}

/// Without what the shell takes for a pattern.
std::string literal(const std::string& path) {
    std::string text;
    for (const char letter : path)
        text += std::strchr("*?[\\", letter) ? std::string("\\") + letter : std::string(1, letter);
    return text;
}

/// "3.11" of .../lib/python3.11/site-packages/homing.
std::string version_of(const std::string& package) {
    constexpr std::string_view mark = "/python";
    const auto at = package.rfind(mark);
    if (at == std::string::npos) return "";
    const auto begin = at + mark.size();
    return package.substr(begin, package.find('/', begin) - begin);
}

} // namespace

Python::Python(const std::string& stated) {
    const std::string here = own_folder();
    if (here.empty()) {
        interpreter_ = stated.empty() ? "python3" : stated;
        return;
    }
    const std::string up = folder_of(here);
    const std::string tree = folder_of(folder_of(up)); // of TREE/build/release/launcher
    const std::string roots = literal(up);
    std::string note = first_match(roots + "/lib*/homing/python/interpreter");
    if (note.empty()) note = first_match(roots + "/lib/*/homing/python/interpreter"); // Debian's
    if (is_file(tree + "/homing/cli.py") && is_file(tree + "/CMakeLists.txt")) {
        package_ = tree + "/homing";
        interpreter_ = tree + "/.venv/bin/python";
    } else if (!note.empty()) {
        package_ = folder_of(note) + "/homing";
        interpreter_ = read_text(note); // written by tools/install_command.py
    } else {
        // A wheel: pip has put this program into the bin/ of its environment.
        package_ = folder_of(first_match(roots + "/lib*/python3*/*-packages/homing/cli.py"));
        const std::string version = version_of(package_);
        for (const std::string& name : {"python" + version, std::string("python3")}) {
            std::string path = here;
            path.append("/").append(name);
            if (interpreter_.empty() && access(path.c_str(), X_OK) == 0) interpreter_ = path;
        }
        if (interpreter_.empty()) interpreter_ = version.empty() ? "python3" : "python" + version;
        package_ = version.empty() ? "" : package_;
    }
    if (!stated.empty()) interpreter_ = stated;
}

std::string Python::library() const {
    if (package_.empty()) return "";
    const std::string beside = folder_of(package_);
    std::vector<std::string> folders = {package_ + "/lib"};
    if (beside.ends_with("/homing/python")) folders.push_back(folder_of(folder_of(beside)));
    folders.push_back(beside + "/build/release");
    for (const std::string& folder : folders)
        if (is_file(folder + "/libhoming.so")) return folder + "/libhoming.so";
    return "";
}

void Python::run_command(const std::vector<std::string>& words) const {
    // While Python starts, an interrupt would find it where nobody says more of it than where that was.
    sigset_t interrupt, before;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigprocmask(SIG_BLOCK, &interrupt, &before);
    const bool held = sigismember(&before, SIGINT) == 0;
    become(held ? "from homing.cli import command; command(held=True)"
                : "from homing.cli import command; command()",
           words, true);
}

void Python::finish_run(int state) const {
    // Without a package of ours beside it, homing itself lies in what `site` finds (homing/late_site.py).
    // While it imports modules Python would look through all of them time and again, for garbage.
    become("import gc; gc.set_threshold(50_000); from homing import bundle; bundle.use(); "
           "from homing.run_finish import main; main()",
           {std::to_string(state)}, package_.empty());
}

void Python::become(const std::string& code, const std::vector<std::string>& words, bool site) const {
    // The current folder is no place for modules; the package that lies with this launcher is, whatever
    // PYTHONPATH says.
    const std::string begin = "import sys; sys.path[:1] = [one for one in sys.path[:1] if one]; "
                              "path = sys.argv.pop(1); path and sys.path.insert(0, path); ";
    const std::string all = begin + code;
    const std::string beside = folder_of(package_);
    std::vector<const char*> arguments = {"python3"};
    if (!site) arguments.push_back("-S");
    arguments.insert(arguments.end(), {"-c", all.c_str(), beside.c_str()});
    for (const std::string& word : words)
        arguments.push_back(word.c_str());
    arguments.push_back(nullptr);
    arguments[0] = interpreter_.c_str();
    execvp(interpreter_.c_str(), const_cast<char**>(arguments.data()));
    std::fprintf(stderr, "homing: Python (%s) cannot be started: %s\n", interpreter_.c_str(),
                 std::strerror(errno));
}

} // namespace homing::launcher
