#include "areas/page_set.hpp"

namespace homing {

PageSet::PageSet(const std::vector<policy::PageRange>& ranges) {
    std::uint64_t before = 0;
    for (const policy::PageRange& range : ranges) {
        if (range.first >= range.end) continue;
        if (!pieces_.empty() && pieces_.back().end == range.first)
            pieces_.back().end = range.end;
        else
            pieces_.push_back({range, before});
        before += range.size();
    }
}

bool PageSet::contains(std::uint64_t page) const {
    const auto piece = first_beyond(page);
    return piece != pieces_.end() && piece->first <= page;
}

std::uint64_t PageSet::below(std::uint64_t page) const {
    const auto piece = first_beyond(page);
    if (piece == pieces_.end()) return size();
    return piece->before + (page > piece->first ? page - piece->first : 0);
}

std::uint64_t PageSet::at(std::uint64_t index) const {
    const auto after =
        std::upper_bound(pieces_.begin(), pieces_.end(), index,
                         [](std::uint64_t value, const Piece& piece) { return value < piece.before; });
    const Piece& piece = *(after - 1);
    return piece.first + (index - piece.before);
}

} // namespace homing
