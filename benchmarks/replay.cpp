// Shows recorded touches to the model, and says what it would move.
//
//     replay FILE          a table: local share of the touches that were not shown, after n touches an area
//     replay FILE steps    touch by touch, what is believed and would move
//
// FILE is a recording (tests/recordings/README.md): a team, areas, homes, and touches in the order in which
// they came. For the table, all pages lie on the first node at first (serial initialisation); n touches drawn
// at random of each area are shown, and the moves judged by all others: the share of them (each area counts
// by its touches) whose thread is on the node of the page. `right` is the same with pages that lie where most
// of their touches in the recording come from (harm).
#include "model/belief.hpp"
#include "model/verdict.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace model = homing::model;

namespace {

constexpr int counts[] = {4, 8, 20, 40, 100};
constexpr int draws = 5;

struct RecordedArea {
    std::string name;
    std::uint64_t granules = 0;
    std::vector<model::Touch> touches;
    std::vector<std::uint32_t> iterations; ///< of the touches
};

struct Recording {
    std::vector<model::Node> node_of;
    int nodes = 0;
    std::map<int, RecordedArea> areas;
    std::vector<std::pair<int, std::size_t>> order; ///< area and index of its touch, as they came
};

[[noreturn]] void fail(const std::string& why) {
    std::fprintf(stderr, "replay: %s\n", why.c_str());
    std::exit(2);
}

Recording read(const char* path) {
    std::ifstream file(path);
    if (!file) fail(std::string(path) + ": cannot be read");
    Recording recording;
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
        std::istringstream words(line);
        std::string what;
        if (!(words >> what) || what[0] == '#') continue;
        int id = 0;
        if (what == "team") {
            for (int node = 0; words >> node;) {
                recording.node_of.push_back(static_cast<model::Node>(node));
                recording.nodes = std::max(recording.nodes, node + 1);
            }
            continue;
        }
        words >> id;
        RecordedArea& area = recording.areas[id];
        if (what == "area") {
            words >> area.granules;
            std::getline(words >> std::ws, area.name);
        } else if (what == "touch") {
            model::Touch touch;
            int write = 0;
            std::uint32_t iteration = 0;
            words >> touch.page >> touch.thread >> write >> iteration;
            touch.write = write != 0;
            // Recordings from before touches knew their byte end with the place.
            if (std::string region, place; words >> region >> place)
                if (float within = 0; words >> within && within >= 0 && within < 1) touch.within = within;
            if (touch.page >= area.granules || touch.thread >= recording.node_of.size())
                fail(std::string(path) + ":" + std::to_string(number) + ": a touch outside its area or team");
            recording.order.emplace_back(id, area.touches.size());
            area.touches.push_back(touch);
            area.iterations.push_back(iteration);
        } else if (what != "home") {
            fail(std::string(path) + ":" + std::to_string(number) + ": unknown line '" + what + "'");
        }
        if (!words && !words.eof())
            fail(std::string(path) + ":" + std::to_string(number) + ": a number is missing");
    }
    if (recording.node_of.empty()) fail(std::string(path) + ": no team");
    return recording;
}

/// What the model makes of the touches of one area that it was shown last.
class Learner {
  public:
    explicit Learner(const Recording& recording)
        : team_(recording.node_of, recording.nodes), formulas_(team_.threads()), prior_(formulas_) {}
    void learn(const RecordedArea& area, const std::vector<model::Touch>& touches,
               const std::vector<model::Node>& homes) {
        belief_.emplace(formulas_, team_, area.granules, touches, prior_, homes);
    }
    /// Where the page would be sent; unknown_node: it stays.
    model::Node wanted(std::uint64_t page, model::Node home) {
        belief_->prospect(page, home, prospect_);
        return model::is_spread(prospect_) ? model::unknown_node : model::better_home(prospect_, home);
    }
    std::string words() const {
        char percent[16];
        std::snprintf(percent, sizeof percent, "  %.0f %%", 100 * belief_->probability(belief_->likeliest()));
        return belief_->words() + percent;
    }

  private:
    model::Team team_;
    model::Formulas formulas_;
    model::Prior prior_;
    std::optional<model::Belief> belief_;
    model::Prospect prospect_;
};

void table(const Recording& recording) {
    const model::Team team(recording.node_of, recording.nodes);
    const auto node_of = [&](const model::Touch& touch) { return team.node(static_cast<int>(touch.thread)); };
    std::size_t all = 0, local = 0;
    for (const auto& [id, area] : recording.areas)
        for (const model::Touch& touch : area.touches)
            ++all, local += node_of(touch) == 0;
    std::printf("{\"areas\": %zu, \"touches\": %zu, \"threads\": %d, \"unmoved\": %.1f",
                recording.areas.size(), all, team.threads(),
                all ? 100.0 * static_cast<double>(local) / static_cast<double>(all) : 0);
    Learner learner(recording);
    std::printf(",\n \"after\": {");
    const char* comma = "";
    for (const int count : counts) {
        std::mt19937_64 random(7);
        double sum = 0, right = 0, weight = 0;
        for (const auto& [id, area] : recording.areas) {
            if (area.touches.size() <= static_cast<std::size_t>(count)) continue;
            // Where most of a page's touches come from.
            std::map<std::uint64_t, std::vector<int>> by_page;
            for (const model::Touch& touch : area.touches) {
                auto& nodes = by_page[touch.page];
                nodes.resize(static_cast<std::size_t>(team.nodes()));
                ++nodes[static_cast<std::size_t>(node_of(touch))];
            }
            const auto best = [&](std::uint64_t page) {
                const auto& nodes = by_page[page];
                return static_cast<model::Node>(std::ranges::max_element(nodes) - nodes.begin());
            };
            for (int draw = 0; draw < draws; ++draw) {
                std::vector<model::Touch> touches = area.touches;
                std::ranges::shuffle(touches, random);
                const auto n = static_cast<std::size_t>(count);
                const std::vector<model::Touch> shown(touches.begin(), touches.begin() + count);
                std::vector<model::Node> serial(n, 0), own;
                for (const model::Touch& touch : shown)
                    own.push_back(best(touch.page));
                const double each = static_cast<double>(area.touches.size()) /
                                    static_cast<double>((touches.size() - n) * draws);
                learner.learn(area, shown, serial);
                for (std::size_t i = n; i < touches.size(); ++i) {
                    const model::Node to = learner.wanted(touches[i].page, 0);
                    sum += each * (node_of(touches[i]) == (to < 0 ? 0 : to));
                }
                learner.learn(area, shown, own);
                for (std::size_t i = n; i < touches.size(); ++i) {
                    const model::Node home = best(touches[i].page),
                                      to = learner.wanted(touches[i].page, home);
                    right += each * (node_of(touches[i]) == (to < 0 ? home : to));
                }
            }
            weight += static_cast<double>(area.touches.size());
        }
        if (weight > 0)
            std::printf("%s\"%d\": {\"serial\": %.1f, \"right\": %.1f}", comma, count, 100 * sum / weight,
                        100 * right / weight);
        comma = ", ";
    }
    std::printf("}}\n");
}

void steps(const Recording& recording) {
    Learner learner(recording);
    std::map<int, std::vector<model::Touch>> shown;
    std::map<int, std::string> said;
    std::size_t step = 0;
    for (const auto& [id, index] : recording.order) {
        ++step;
        const RecordedArea& area = recording.areas.at(id);
        auto& touches = shown[id];
        touches.push_back(area.touches[index]);
        for (std::size_t i = 0; i < touches.size(); ++i)
            touches[i].age = area.iterations[index] - std::min(area.iterations[i], area.iterations[index]);
        learner.learn(area, touches, std::vector<model::Node>(touches.size(), 0));
        std::vector<std::uint64_t> pages(static_cast<std::size_t>(recording.nodes), 0);
        std::uint64_t moved = 0;
        for (std::uint64_t page = 0; page < area.granules; ++page)
            if (const model::Node to = learner.wanted(page, 0); to >= 0) {
                ++pages[static_cast<std::size_t>(to)];
                ++moved;
            }
        std::string line = learner.words() + ": " + std::to_string(moved) + " of " +
                           std::to_string(area.granules) + " granules";
        for (std::size_t node = 0; node < pages.size(); ++node)
            if (pages[node] > 0)
                line += ", " + std::to_string(pages[node]) + " to node " + std::to_string(node);
        if (said[id] == line) continue;
        said[id] = line;
        std::cout << "touch " << step << ": " << area.name << " after " << touches.size() << ": " << line
                  << '\n';
    }
}

} // namespace

int main(int count, char** words) {
    const bool by_steps = count == 3 && std::strcmp(words[2], "steps") == 0;
    if (count != 2 && !by_steps) {
        std::fprintf(stderr, "usage: replay FILE [steps]\n");
        return 2;
    }
    const Recording recording = read(words[1]);
    if (by_steps)
        steps(recording);
    else
        table(recording);
}
