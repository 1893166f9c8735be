// The command `homing`. What is usual of `homing run` is done here, in a few milliseconds; Python does the
// rest: other commands, unusual options, errors, and what there is to tell when a program of the run was at
// work. homing/run.py does all of it, and where both do the same, they do the same
// (tests/python/test_launcher.py).
#include "launcher/python.hpp"
#include "launcher/run.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace {

/// Before everything else: which Python (tools/commands.py starts this program so).
constexpr std::string_view python_flag = "--homing-python=";
constexpr int not_found = 127; // as a shell says it of a command that cannot be started

} // namespace

int main(int count, char** texts) {
    using namespace homing::launcher;
    std::vector<std::string> words(texts + (count > 0 ? 1 : 0), texts + count);
    std::string stated;
    if (!words.empty() && words[0].starts_with(python_flag)) {
        stated = words[0].substr(python_flag.size());
        words.erase(words.begin());
    }
    const Python python(stated);
    if (words.size() > 1 && words[0] == "run") run_usual({words.begin() + 1, words.end()}, python);
    python.run_command(words);
    return not_found;
}
