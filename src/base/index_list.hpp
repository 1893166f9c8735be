// The kernel's notation for sets of CPUs and nodes: "0-3,8,10-11".
#pragma once

namespace homing {

/// Calls visit(index) for each index of the list, in its order; false if the text is no list (what was read
/// before the fault has been visited). Indices above a million are a fault: no kernel has them.
template <class Visit> bool for_each_index(const char* text, Visit visit) {
    constexpr long limit = 1'000'000;
    const auto number = [&text](long& value) {
        if (*text < '0' || *text > '9') return false;
        for (value = 0; *text >= '0' && *text <= '9'; ++text) {
            value = value * 10 + (*text - '0');
            if (value > limit) return false;
        }
        return true;
    };
    while (*text == ' ')
        ++text;
    if (*text == '\0' || *text == '\n') return true; // the empty set
    for (;;) {
        long first = 0;
        if (!number(first)) return false;
        long last = first;
        if (*text == '-') {
            ++text;
            if (!number(last) || last < first) return false;
        }
        for (long index = first; index <= last; ++index)
            visit(static_cast<int>(index));
        if (*text == '\0' || *text == '\n') return true;
        if (*text != ',') return false;
        ++text;
    }
}

} // namespace homing
