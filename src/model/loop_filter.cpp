#include "model/loop_filter.hpp"

#include "base/lanes.hpp"

#include <cstring>

namespace homing::phases {

void LoopFilter::reset() {
    history_.fill(no_id);
    run_.fill(0);
    head_ = kept;
    loop_ = 0;
    limit_ = longest_loop;
}

void LoopFilter::make_room() {
    std::memcpy(history_.data() + kept, history_.data(), kept * sizeof(std::uint32_t));
    head_ = kept;
}

/// What run_ would be if it had been kept up; as far as it matters, which is a turn.
void LoopFilter::count_runs() {
    const std::uint32_t* past = history_.data() + head_;
    for (std::uint32_t period = 1; period <= longest_loop; ++period) {
        std::uint32_t run = 0;
        while (run < period && past[run] == past[run + period])
            ++run;
        run_[period - 1] = run;
    }
}

bool LoopFilter::push_slowly(std::uint32_t id) {
    if (loop_ != 0) count_runs();
    loop_ = 0;
    const std::uint32_t* past = history_.data() + head_;
    const auto key = static_cast<std::int32_t>(id);
    const Lanes wanted = {key, key, key, key};
    Lanes period = {1, 2, 3, 4};
    Lanes any = {0, 0, 0, 0};
    for (std::uint32_t i = 0; i < longest_loop; i += lanes) {
        const Lanes equal = load(past + i) == wanted;
        const Lanes run = (load(run_.data() + i) + 1) & equal;
        store(run_.data() + i, run);
        any |= run >= period;
        period += static_cast<std::int32_t>(lanes);
    }
    remember(id);
    if (!(any[0] | any[1] | any[2] | any[3])) return true;
    for (std::uint32_t turn = 1; turn <= limit_; ++turn)
        if (run_[turn - 1] >= turn) {
            loop_ = turn;
            return false;
        }
    return true;
}

void LoopFilter::turned(std::span<const std::uint32_t> turn, std::uint32_t position) {
    const auto length = static_cast<std::uint32_t>(turn.size());
    head_ = kept;
    for (std::uint32_t back = 0; back < kept; ++back)
        history_[head_ + back] = turn[(position + length - 1 - back % length) % length];
    count_runs();
    loop_ = length <= limit_ ? length : 0;
}

} // namespace homing::phases
