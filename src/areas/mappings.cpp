// What /proc/self says about the process's mappings: memory that cannot be watched, and huge pages.
#include "areas/areas.hpp"

#include "areas/policies.hpp"
#include "areas/proc_maps.hpp"
#include "base/page_scan.hpp"
#include "base/raw_calls.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace homing {
namespace {

/// The number at the front of `text`, which is taken off; nothing where there is none.
std::optional<std::uint64_t> take_number(std::string_view& text, int base) noexcept {
    std::uint64_t value = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (result.ec != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(result.ptr - text.data()));
    return value;
}

bool take(std::string_view& text, char letter) noexcept {
    if (text.empty() || text[0] != letter) return false;
    text.remove_prefix(1);
    return true;
}

/// The lines of a file of any length, read by the piece. The kernel gives whole mappings only, so that a file
/// of /proc is consistent line by line.
class Lines {
  public:
    explicit Lines(const char* path) noexcept : descriptor_(raw::open(path, O_RDONLY)) {}
    ~Lines() { raw::close(descriptor_); }
    Lines(const Lines&) = delete;
    Lines& operator=(const Lines&) = delete;

    bool next(std::string_view& line) noexcept {
        for (;;) {
            const void* end = std::memchr(buffer_.data() + begin_, '\n', end_ - begin_);
            if (end) {
                const auto length =
                    static_cast<std::size_t>(static_cast<const char*>(end) - buffer_.data()) - begin_;
                line = {buffer_.data() + begin_, length};
                begin_ += length + 1;
                return true;
            }
            if (begin_ > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
            end_ -= begin_;
            begin_ = 0;
            if (end_ == buffer_.size())
                end_ = 0; // a line longer than any the kernel writes: its start is dropped
            if (descriptor_ < 0) return false;
            const long got = raw::call(SYS_read, descriptor_, buffer_.data() + end_, buffer_.size() - end_);
            if (got == -EINTR) continue;
            if (got <= 0) return false;
            end_ += static_cast<std::size_t>(got);
        }
    }

  private:
    int descriptor_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    std::vector<char> buffer_ = std::vector<char>(16384); // the kernel's paths have 4,096 bytes at most
};

/// The page map of the process: which pages are there (8 bytes a page).
class PageMap {
  public:
    PageMap() noexcept : descriptor_(raw::open("/proc/self/pagemap", O_RDONLY)) {}
    ~PageMap() { raw::close(descriptor_); }
    PageMap(const PageMap&) = delete;
    PageMap& operator=(const PageMap&) = delete;

    /// About how many bytes of a range are populated, from a sample. All of it where that cannot be read, or
    /// where it is so small that it is not worth a call.
    std::size_t populated_bytes(Range range) const noexcept {
        constexpr std::size_t not_worth_a_look = std::size_t{32} << 10;
        if (descriptor_ < 0 || range.bytes() <= not_worth_a_look) return range.bytes();
        constexpr std::uint64_t present_or_swapped = std::uint64_t{3} << 62;
        const std::size_t pages = range.bytes() / page_bytes();
        const std::size_t pieces = std::min<std::size_t>(pages / 16 + 1, 256);
        std::size_t seen = 0;
        std::size_t there = 0;
        for (std::size_t i = 0; i < pieces; ++i) {
            std::uint64_t entries[16];
            const std::size_t first = pages / pieces * i;
            const std::size_t count = std::min<std::size_t>(16, pages - first);
            const long got = raw::read_at(descriptor_, entries, count * sizeof entries[0],
                                          (range.begin / page_bytes() + first) * sizeof entries[0]);
            for (long k = 0; k < got / static_cast<long>(sizeof entries[0]); ++k) {
                ++seen;
                if (entries[k] & present_or_swapped) ++there;
            }
        }
        if (seen == 0) return range.bytes();
        return static_cast<std::size_t>(static_cast<double>(range.bytes()) * static_cast<double>(there) /
                                        static_cast<double>(seen));
    }

  private:
    int descriptor_;
};

/// Has it memory of the process's own making, or shared with others, rather than that of a file?
bool is_memory(const Mapping& mapping) noexcept {
    if (mapping.name.starts_with("[v")) return false; // vdso, vvar, vsyscall
    if (!mapping.shared) return mapping.writable || (mapping.readable && mapping.inode == 0);
    for (const std::string_view kind : {"/dev/zero", "/memfd:", "/SYSV", "/dev/shm/", "/anon_hugepage"})
        if (mapping.name.starts_with(kind)) return mapping.readable;
    return mapping.name.empty();
}

std::string describe(const Mapping& mapping) {
    if (mapping.shared) return "memory that is shared with other processes";
    if (!mapping.writable) return "memory that is only read";
    // What the program maps itself is watched, and what blocks of the allocator cover
    // (areas/block_cover.hpp).
    if (mapping.name.empty())
        return "thread stacks, arenas of blocks below 4 KiB, and what no hook saw mapped";
    if (mapping.name == "[heap]") return "[heap] (blocks below 4 KiB, and free memory)";
    if (mapping.name[0] == '[') return std::string(mapping.name);
    return "data of " + std::string(mapping.name.substr(mapping.name.rfind('/') + 1));
}

/// Linux 6.7 and later: looks at the range only, and stops at the first huge page. Nothing where it cannot be
/// asked.
std::optional<bool> scan_for_huge_pages(Range range) noexcept {
    const int descriptor = raw::open("/proc/self/pagemap", O_RDONLY);
    if (descriptor < 0) return std::nullopt;
    const Range whole = pages_of(range);
    const std::optional<Range> found = first_pages(descriptor, whole, page_is_huge, 0, 1);
    raw::close(descriptor);
    if (!found) return std::nullopt;
    return !found->empty();
}

} // namespace

bool parse_mapping(std::string_view line, Mapping& mapping) noexcept {
    const auto begin = take_number(line, 16);
    if (!begin || !take(line, '-')) return false;
    const auto end = take_number(line, 16);
    if (!end || *end <= *begin || !take(line, ' ') || line.size() < 5) return false;
    mapping.range = {*begin, *end};
    mapping.readable = line[0] == 'r';
    mapping.writable = line[1] == 'w';
    mapping.shared = line[3] == 's';
    line.remove_prefix(4);
    if (!take(line, ' ') || !take_number(line, 16) || !take(line, ' ')) return false;       // offset
    if (!take_number(line, 16) || !take(line, ':') || !take_number(line, 16)) return false; // device
    const auto inode = take(line, ' ') ? take_number(line, 10) : std::nullopt;
    if (!inode) return false;
    mapping.inode = *inode;
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    mapping.name = line;
    return true;
}

std::vector<Unwatched> unwatched_mappings(const std::vector<Range>& watched, std::size_t minimum,
                                          const char* maps) {
    std::vector<Range> sorted = watched;
    std::sort(sorted.begin(), sorted.end(), [](Range a, Range b) { return a.begin < b.begin; });
    minimum = std::max<std::size_t>(minimum, 1);

    std::vector<Unwatched> found;
    std::map<std::string, Unwatched> small; // what is too small to be named, together
    const PageMap page_map;
    Lines lines(maps);
    std::string_view line;
    while (lines.next(line)) {
        Mapping mapping;
        if (!parse_mapping(line, mapping) || !is_memory(mapping)) continue;
        Address at = mapping.range.begin;
        const auto add = [&](Address end) {
            const Range rest{align_up(at, page_bytes()), align_down(end, page_bytes())};
            if (end < at || rest.empty()) return;
            // Every thread reserves megabytes of stack; only what is in use is worth a word.
            const std::size_t there = page_map.populated_bytes(rest);
            if (there >= minimum) {
                found.push_back({rest, there, describe(mapping)});
            } else if (there > 0) {
                const std::string what = "small pieces: " + describe(mapping);
                small.try_emplace(what, Unwatched{rest, 0, what}).first->second.bytes += there;
            }
        };
        for (const Range range : sorted) {
            if (range.begin >= mapping.range.end) break;
            if (range.end <= at) continue;
            add(range.begin);
            at = std::max(at, range.end);
        }
        add(mapping.range.end);
    }
    for (auto& [what, one] : small)
        if (one.bytes >= minimum) found.push_back(std::move(one));
    return found;
}

std::vector<Unwatched> unwatched_mappings(const std::vector<Range>& watched, std::size_t minimum) {
    return unwatched_mappings(watched, minimum, "/proc/self/maps");
}

bool is_mapped(Range range) {
    std::vector<MappedRange> mappings;
    if (!read_mappings("/proc/self/maps", {&range, 1}, mappings)) return true;
    Address at = range.begin;
    for (const MappedRange& mapping : mappings)
        if (mapping.range.begin <= at) at = std::max(at, mapping.range.end);
    return at >= range.end;
}

bool is_of_one_object(Range range, const char* maps) {
    std::vector<char> buffer(16384); // the kernel's paths have 4,096 bytes at most
    Address at = range.begin;
    std::uint64_t inode = 0;
    bool one = true;
    const bool read = each_mapping(maps, buffer, [&](const Mapping& mapping) {
        if (!mapping.range.overlaps(range)) return;
        const bool first = at == range.begin && mapping.range.contains(at);
        one = one && mapping.range.begin <= at && (first || mapping.inode == inode || mapping.inode == 0);
        if (first) inode = mapping.inode;
        at = mapping.range.end;
    });
    return !read || (one && at >= range.end);
}

bool is_of_one_object(Range range) { return is_of_one_object(range, "/proc/self/maps"); }

bool smaps_hold_huge_pages(Range range, const char* smaps) {
    Lines lines(smaps);
    std::string_view line;
    bool inside = false;
    while (lines.next(line)) {
        Mapping mapping;
        if (parse_mapping(line, mapping)) {
            if (mapping.range.begin >= range.end) return false; // mappings are in order
            inside = mapping.range.overlaps(range);
            continue;
        }
        if (!inside) continue;
        // Transparent ones in kB; hugetlbfs shows itself by the size of its pages.
        for (const std::string_view key :
             {"AnonHugePages:", "ShmemPmdMapped:", "FilePmdMapped:", "KernelPageSize:"}) {
            if (!line.starts_with(key)) continue;
            std::string_view value = line.substr(key.size());
            value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
            const std::uint64_t normal = key == "KernelPageSize:" ? page_bytes() / 1024 : 0;
            if (take_number(value, 10).value_or(0) > normal) return true;
        }
    }
    return false;
}

std::size_t huge_granule_bytes() noexcept {
    static const std::size_t bytes = [] {
        char text[32];
        const long length =
            raw::read_file("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", text, sizeof text);
        std::string_view value(text, static_cast<std::size_t>(std::max(length, 0L)));
        const std::uint64_t stated = take_number(value, 10).value_or(0);
        return std::has_single_bit(stated) && stated > page_bytes() ? static_cast<std::size_t>(stated)
                                                                    : huge_page_bytes;
    }();
    return bytes;
}

bool holds_huge_pages(Range range) {
    if (range.empty()) return false;
    const std::optional<bool> scanned = scan_for_huge_pages(range);
    return scanned ? *scanned : smaps_hold_huge_pages(range, "/proc/self/smaps");
}

} // namespace homing
