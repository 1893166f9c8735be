#include "launcher/run.hpp"

#include "launcher/channel_memory.hpp"
#include "launcher/child.hpp"
#include "launcher/command_line.hpp"
#include "launcher/files.hpp"
#include "launcher/machine.hpp"
#include "launcher/program.hpp"
#include "launcher/run_files.hpp"
#include "launcher/run_folder.hpp"
#include "launcher/unusual.hpp"
#include "record/channel.hpp"
#include "record/rank.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <sys/mman.h>
#include <unistd.h>

namespace homing::launcher {
namespace {

/// Variables by which users bind threads (homing/environment.py).
constexpr const char* binding_variables[] = {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY",
                                             "KMP_AFFINITY"};

/// Programs that start the tasks of a job.
constexpr std::string_view starters[] = {
#define HOMING_STARTER(name) name,
#include "starters_table.inc"
#undef HOMING_STARTER
};

bool starts_tasks(const std::vector<std::string>& command) {
    return std::find(std::begin(starters), std::end(starters), file_name(command[0])) != std::end(starters);
}

std::string find_library(const Python& python, const Environment& environment) {
    std::string path = environment.get("HOMING_LIBRARY");
    if (path.empty()) path = python.library();
    // What os.path.abspath() would change is left to it.
    const bool plain = path.find("/.") == std::string::npos && path.find("//") == std::string::npos;
    if (!path.starts_with("/") || !plain || !is_file(path)) leave_to_python();
    return path;
}

/// Bind the program's threads where nobody else did: a line for the user.
std::string bind_threads(const Request& request, Environment& variables) {
    for (const char* name : binding_variables)
        if (!variables.get(name).empty()) leave_to_python();
    if (starts_tasks(request.command) || record::process_rank() >= 0) leave_to_python();
    variables.set("OMP_PROC_BIND", "spread");
    variables.set("OMP_PLACES", "cores");
    return "threads: OMP_PROC_BIND=spread OMP_PLACES=cores";
}

/// Why nothing could be done for the program, as far as the launcher knows; empty: no reason is known.
/// Unusual where Python has more to say of it.
std::string aside(const Environment& variables, const NodeCount& nodes) {
    if (variables.get("HOMING") == "off") return "HOMING=off is set";
    if (std::atof(variables.get("HOMING_ASSUME_NODES").c_str()) >= 2 || nodes.with_cpus > 1) return "";
    if (nodes.online > 1) leave_to_python();
    return "this machine has one NUMA node, so every page is at home (homing run --on lab has four)";
}

/// A run, from the command line to the program's end.
class Run {
  public:
    Run(Request request, const std::string& library, const Environment& own)
        : request_(std::move(request)), folder_(own), variables_(own), pattern_(pattern()),
          channel_(pattern_) {
        prepare(library);
    }

    void go(const std::string& program) {
        variables_.set("HOMING_CHANNEL", channel_.lend());
        const auto begin = std::chrono::steady_clock::now();
        process_ = start(program, request_.command, variables_, signals_);
        status_ = wait_for(process_, signals_);
        channel_.take_back(); // not before: a program that closed its own uses ours
        // A second Ctrl-C that came as the child ended was meant for the child.
        signals_.forget();
        seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }

    int status() const { return status_; }

    /// What there is to tell, where this launcher can tell it; nothing: Python has to.
    std::optional<std::string> told() const;

    /// Become Python, which tells it. Returns where that fails.
    void finish_in(const Python& python) const;

    /// The signal that came before the program was started, and ends the run; 0: none.
    int interrupted() {
        const int number = signals_.ending();
        if (number != 0) signals_.forget();
        return number;
    }

  private:
    std::string pattern() const { return record_pattern(request_, folder_.path()); }
    void prepare(const std::string& library);
    void leave_note() const;
    std::string state() const;
    std::string held_by_user() const;

    HeldSignals signals_;
    Request request_;
    RunFolder folder_;
    Environment variables_;
    std::string pattern_;
    ChannelMemory channel_;
    std::vector<std::string> notes_;
    std::string aside_;
    pid_t process_ = 0;
    int status_ = 0;
    double seconds_ = 0;
};

std::string json_list(const std::vector<std::string>& texts) {
    std::string list;
    for (const std::string& text : texts)
        list += (list.empty() ? "" : ",") + json_text(text);
    return "[" + list + "]";
}

void Run::prepare(const std::string& library) {
    leave_note();
    if (request_.bind) notes_.push_back(bind_threads(request_, variables_));
    for (const auto& [variable, value] : request_.options)
        variables_.set(variable, value);
    const NodeCount nodes = count_nodes("/sys");
    variables_.set("HOMING_COSTS", nodes.with_cpus > 1 ? noted_costs(variables_, "/sys") : "");
    preload(variables_, library, folder_.path());
    aside_ = aside(variables_, nodes);
    variables_.set("HOMING_RECORD", pattern_);
    variables_.remove("HOMING_CHANNEL"); // another launcher's, which started this one
}

void Run::leave_note() const {
    const double now =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    char start[64];
    std::snprintf(start, sizeof start, "%.6f", now);
    folder_.note("{\"process\":" + std::to_string(getpid()) + ",\"command\":" + json_list(request_.command) +
                 ",\"start\":" + start +
                 ",\"records\":" + json_text(request_.record.empty() ? "" : pattern_) +
                 ",\"quiet\":" + (request_.summary == "none" ? "true" : "false") + "}");
}

std::optional<std::string> Run::told() const {
    const ChannelMemory::Said said = channel_.said();
    const bool found = request_.record.empty() ? folder_.has_records() : has_records(pattern_);
    const bool silent = request_.summary == "none" && request_.json.empty();
    if (silent && request_.record.empty()) return "";
    if (said.at_work || found || !request_.json.empty()) return std::nullopt;
    if (request_.summary == "none") return "";
    if (request_.summary != "stderr") return std::nullopt;
    std::string reason = aside_;
    // The sentence of homing/run.py (unseen), where it is the usual one.
    if (reason.empty()) {
        if (!variables_.get("HOMING_ONLY").empty() || said.programs == 0 || starts_tasks(request_.command))
            return std::nullopt;
        const std::string programs = std::to_string(said.programs);
        const std::string where = said.programs == 1 ? "the one program" : programs + " programs";
        const std::string off = ", in " + std::to_string(said.declined) + " of them switched off";
        reason = "no process reported a parallel region (homing was in " + where + " of the run" +
                 (said.declined != 0 ? off : "") +
                 "; not heard of: one that is static, set-uid or started without LD_PRELOAD, without "
                 "HOMING_CHANNEL in its environment, of another user with its inherited descriptors closed, "
                 "or on another host)";
        if (said.programs == said.declined) reason = "HOMING=off is set";
    }
    std::string text = "homing: nothing was done: " + reason + "\n";
    for (const std::string& note : notes_)
        text += "note: " + note + "\n";
    return text;
}

std::string Run::held_by_user() const {
    std::string list;
    for (int number = 1; number < SIGRTMIN; ++number)
        if (sigismember(&signals_.before(), number))
            list += (list.empty() ? "" : ",") + std::to_string(number);
    return "[" + list + "]";
}

std::string Run::state() const {
    std::string options;
    for (const auto& [variable, value] : request_.options)
        options += (options.empty() ? "" : ",") + json_text(variable) + ":" + json_text(value);
    char seconds[64];
    std::snprintf(seconds, sizeof seconds, "%.9f", seconds_);
    const auto field = [](const char* name, const std::string& value) {
        return ",\"" + std::string(name) + "\":" + value;
    };
    return "{\"command\":" + json_list(request_.command) + field("options", "{" + options + "}") +
           field("summary", json_text(request_.summary)) + field("json", json_text(request_.json)) +
           field("record", json_text(request_.record)) + field("notes", json_list(notes_)) +
           field("aside", json_text(aside_)) + field("process", std::to_string(process_)) +
           field("status", std::to_string(status_)) + field("seconds", seconds) +
           field("folder", json_text(folder_.path())) + field("lock", std::to_string(folder_.lock())) +
           field("channel", std::to_string(channel_.descriptor())) +
           field("token", std::to_string(channel_.token())) +
           field("pieces", std::to_string(record::channel::most_pieces)) + field("held", held_by_user()) +
           "}";
}

void Run::finish_in(const Python& python) const {
    const std::string text = state();
    const int file = memfd_create("homing-run", 0);
    if (file < 0 || pwrite(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) return;
    // They belong to the run, which goes on in Python.
    for (const int inherited : {folder_.lock(), channel_.descriptor()})
        fcntl(inherited, F_SETFD, 0);
    python.finish_run(file);
}

/// To standard error, which may be closed or full: then nobody is told.
void say(const std::string& text) {
    for (std::size_t at = 0; at < text.size();) {
        const ssize_t done = write(STDERR_FILENO, text.data() + at, text.size() - at);
        if (done <= 0) return;
        at += static_cast<std::size_t>(done);
    }
}

std::string name_of(int ending_signal) {
    switch (ending_signal) {
    case SIGHUP:
        return "SIGHUP";
    case SIGINT:
        return "SIGINT";
    case SIGQUIT:
        return "SIGQUIT";
    default:
        return "SIGTERM";
    }
}

/// The wait status with which this process is to end, or nothing: Python has to do it all.
std::optional<int> run_here(const std::vector<std::string>& words, const Python& python) {
    const Environment own(environ);
    Request request = read_command_line(words, own);
    check_files(request);
    const std::string program = find_program(request.command[0], own);
    const std::string library = find_library(python, own);
    check_program(program, library);
    Run run(std::move(request), library, own);
    if (const int number = run.interrupted()) {
        say("homing run: interrupted (" + name_of(number) + ")\n");
        return number;
    }
    run.go(program);
    if (const std::optional<std::string> text = run.told())
        say(*text);
    else
        run.finish_in(python);
    return run.status();
}

} // namespace

void run_usual(const std::vector<std::string>& words, const Python& python) {
    try {
        if (const std::optional<int> status = run_here(words, python)) end_like(*status);
    } catch (const Unusual&) {
        return;
    }
}

} // namespace homing::launcher
