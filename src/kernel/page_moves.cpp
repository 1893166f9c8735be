#include "kernel/page_moves.hpp"

#include "record/record.hpp"

#include <algorithm>
#include <cerrno>
#include <vector>

namespace homing {
namespace {

/// Pages of one system call, which then stays below 20 ms.
constexpr std::size_t most_in_call = 1024;
/// Calls for one batch: each goes on behind the first run of pages that the one before could not move.
constexpr int most_calls = 64;

/// `status`: where each page is now, or minus an errno.
void call_until_tried(Kernel& kernel, std::span<void* const> pages, std::span<const int> targets,
                      std::span<int> status, Moves& result) {
    std::size_t done = 0;
    for (int calls = 0; done < pages.size() && calls < most_calls; ++calls) {
        const std::span<int> rest = status.subspan(done);
        const double begin = record::now();
        const int error = kernel.move(pages.subspan(done), targets.subspan(done), rest);
        ++result.calls;
        result.longest_call = std::max(result.longest_call, record::now() - begin);
        if (error) {
            std::ranges::fill(rest, -error);
            return;
        }
        const auto untried = std::ranges::find(rest, -EAGAIN);
        if (untried == rest.begin()) return; // no progress
        done += static_cast<std::size_t>(untried - rest.begin());
    }
}

void move_batch(Kernel& kernel, std::span<PageMove> moves, Moves& result,
                const std::function<void()>& prepare) {
    std::vector<void*> pages;
    for (const PageMove& move : moves)
        pages.push_back(move.page);
    std::vector<int> status(pages.size(), -ENOENT);
    if (const int error = query_revealed(kernel, pages, status, prepare)) {
        for (PageMove& move : moves) {
            move.tried = true;
            move.error = error;
        }
    } else {
        std::vector<PageMove*> chosen;
        std::vector<int> targets;
        pages.clear();
        for (std::size_t i = 0; i < moves.size(); ++i) {
            PageMove& move = moves[i];
            move.before = std::max(status[i], -1);
            if (status[i] < 0 || status[i] == move.target) continue;
            if (move.expected >= 0 && status[i] != move.expected) continue;
            move.tried = true;
            chosen.push_back(&move);
            pages.push_back(move.page);
            targets.push_back(move.target);
        }
        if (pages.empty()) return;
        status.assign(pages.size(), -EINVAL);
        call_until_tried(kernel, pages, targets, status, result);
        std::vector<int> now(pages.size(), -ENOENT);
        const int query_error = query_revealed(kernel, pages, now, prepare);
        for (std::size_t i = 0; i < chosen.size(); ++i) {
            chosen[i]->moved = query_error == 0 && now[i] == targets[i];
            if (chosen[i]->moved) continue;
            chosen[i]->error = status[i] < 0 ? -status[i] : query_error ? query_error : EBUSY;
        }
    }
    for (const PageMove& move : moves) {
        if (move.moved) result.moved += move.pages;
        if (!move.refused()) continue;
        result.refused += move.pages;
        result.errors[move.error] += move.pages;
    }
}

} // namespace

void move_each(Kernel& kernel, std::span<PageMove> moves, Moves& result,
               const std::function<void()>& prepare) {
    const double begin = record::now();
    for (std::size_t at = 0; at < moves.size(); at += most_in_call)
        move_batch(kernel, moves.subspan(at, std::min(most_in_call, moves.size() - at)), result, prepare);
    result.seconds += record::now() - begin;
}

} // namespace homing
