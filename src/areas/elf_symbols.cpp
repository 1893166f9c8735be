// Static arrays by name, from the symbol tables of the loaded ELF objects. Files are read, not mapped: one
// that is cut short meanwhile gives a short read instead of a SIGBUS.
#include "areas/elf_object.hpp"

#include "areas/symbol_names.hpp"
#include "base/loaded_object.hpp"
#include "base/raw_calls.hpp"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <optional>
#include <unordered_map>

namespace homing {
namespace {

/// Names live as long as the process; the pool is never destroyed, for exit handlers that still use them.
const char* keep(const std::string& name) {
    static auto& pool = *new std::unordered_map<std::string, std::string>;
    return pool.try_emplace(name, name).first->second.c_str();
}

/// The sum, or nothing where it leaves the address space.
std::optional<std::uint64_t> sum(std::uint64_t a, std::uint64_t b) noexcept {
    std::uint64_t result = 0;
    if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
    return result;
}

class File {
  public:
    explicit File(const char* path) noexcept : descriptor_(raw::open(path, O_RDONLY | O_NOCTTY)) {}
    ~File() { raw::close(descriptor_); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    /// How much of [offset, offset + bytes) could be read.
    std::size_t read(void* buffer, std::size_t bytes, std::uint64_t offset) const noexcept {
        if (descriptor_ < 0 || offset > LLONG_MAX || !sum(offset, bytes)) return 0;
        const long got = raw::read_at(descriptor_, buffer, bytes, offset);
        return got < 0 ? 0 : static_cast<std::size_t>(got);
    }
    template <class T> bool read_object(T& value, std::uint64_t offset) const noexcept {
        return read(&value, sizeof value, offset) == sizeof value;
    }

  private:
    int descriptor_;
};

struct Symbol {
    Range range;
    std::uint32_t name;
    bool global;
};

struct SymbolTable {
    ElfW(Shdr) symbols {};
    ElfW(Shdr) strings {};
};

bool is_readable_header(const ElfW(Ehdr) & header) noexcept {
    constexpr unsigned char byte_order = __BYTE_ORDER == __LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB;
    return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
           header.e_ident[EI_DATA] == byte_order && header.e_phentsize == sizeof(ElfW(Phdr));
}

bool is_loaded_file(const File& file, const ElfW(Ehdr) & header, const LoadedObject& object) {
    if (header.e_phnum != object.headers.size() || header.e_phnum == 0) return false;
    std::vector<ElfW(Phdr)> in_file(header.e_phnum);
    const std::size_t bytes = in_file.size() * sizeof in_file[0];
    return file.read(in_file.data(), bytes, header.e_phoff) == bytes &&
           std::memcmp(in_file.data(), object.headers.data(), bytes) == 0;
}

/// .symtab, else .dynsym.
std::optional<SymbolTable> find_symbols(const File& file, const ElfW(Ehdr) & header, bool& complete) {
    if (header.e_shoff == 0 || header.e_shentsize != sizeof(ElfW(Shdr))) return std::nullopt;
    const auto section = [&](std::uint64_t index, ElfW(Shdr) & out) {
        // index < 2^32 and the header's size small: only the sum can overflow.
        const auto at = sum(header.e_shoff, index * sizeof(ElfW(Shdr)));
        return at && file.read_object(out, *at);
    };
    std::uint64_t count = header.e_shnum;
    if (count == 0) { // 65,280 sections or more: the number is in the first one
        ElfW(Shdr) first;
        if (!section(0, first)) return std::nullopt;
        count = std::min<std::uint64_t>(first.sh_size, 1u << 20);
    }
    std::optional<SymbolTable> found;
    for (std::uint64_t index = 0; index < count; ++index) {
        ElfW(Shdr) candidate;
        if (!section(index, candidate)) break;
        if (candidate.sh_type != SHT_SYMTAB && candidate.sh_type != SHT_DYNSYM) continue;
        if (candidate.sh_entsize != sizeof(ElfW(Sym))) continue;
        SymbolTable table{candidate, {}};
        if (!section(candidate.sh_link, table.strings) || table.strings.sh_type != SHT_STRTAB) continue;
        complete = candidate.sh_type == SHT_SYMTAB;
        found = table;
        if (complete) break;
    }
    return found;
}

/// Writable memory of the object that stays writable: its data segments without what the loader protects
/// after relocation.
std::vector<Range> writable_ranges(const LoadedObject& object) {
    std::vector<Range> ranges;
    for (const auto& header : object.headers) {
        if (header.p_type != PT_LOAD || !(header.p_flags & PF_W)) continue;
        const auto begin = sum(object.bias, header.p_vaddr);
        const auto end = begin ? sum(*begin, header.p_memsz) : std::nullopt;
        if (end) ranges.push_back({*begin, *end});
    }
    for (const auto& header : object.headers) {
        if (header.p_type != PT_GNU_RELRO) continue;
        const auto begin = sum(object.bias, header.p_vaddr);
        const auto end = begin ? sum(*begin, header.p_memsz) : std::nullopt;
        if (!end) continue;
        std::vector<Range> rest;
        for (const Range range : ranges) {
            const Range before{range.begin, std::min(range.end, *begin)};
            const Range after{std::max(range.begin, *end), range.end};
            if (!before.empty()) rest.push_back(before);
            if (!after.empty()) rest.push_back(after);
        }
        ranges = std::move(rest);
    }
    std::sort(ranges.begin(), ranges.end(), [](Range a, Range b) { return a.begin < b.begin; });
    return ranges;
}

std::vector<Symbol> read_symbols(const File& file, const SymbolTable& table, const LoadedObject& object,
                                 const std::vector<Range>& writable, std::size_t minimum) {
    std::vector<Symbol> found;
    constexpr std::size_t piece = 2048;
    std::vector<ElfW(Sym)> symbols(piece);
    const std::uint64_t count = table.symbols.sh_size / sizeof(ElfW(Sym));
    for (std::uint64_t first = 0; first < count; first += piece) {
        const std::size_t wanted = std::min<std::uint64_t>(piece, count - first) * sizeof(ElfW(Sym));
        const auto at = sum(table.symbols.sh_offset, first * sizeof(ElfW(Sym)));
        const std::size_t got = at ? file.read(symbols.data(), wanted, *at) : 0;
        for (std::size_t i = 0; i < got / sizeof(ElfW(Sym)); ++i) {
            const ElfW(Sym)& symbol = symbols[i];
            const unsigned type = ELF64_ST_TYPE(symbol.st_info);
            if (type != STT_OBJECT && type != STT_COMMON) continue;
            if (symbol.st_size < minimum || symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS)
                continue;
            const auto begin = sum(object.bias, symbol.st_value);
            const auto end = begin ? sum(*begin, symbol.st_size) : std::nullopt;
            if (!end) continue;
            const bool inside = std::any_of(writable.begin(), writable.end(), [&](Range range) {
                return range.begin <= *begin && *end <= range.end;
            });
            if (inside)
                found.push_back({{*begin, *end}, symbol.st_name, ELF64_ST_BIND(symbol.st_info) != STB_LOCAL});
        }
        if (got < wanted) break;
    }
    return found;
}

std::string read_name(const File& file, const ElfW(Shdr) & strings, std::uint32_t offset) {
    constexpr std::size_t longest = 4096; // templates make long ones
    if (offset >= strings.sh_size) return {};
    const auto at = sum(strings.sh_offset, offset);
    std::string name(std::min<std::uint64_t>(longest, strings.sh_size - offset), '\0');
    const std::size_t got = at ? file.read(name.data(), name.size(), *at) : 0;
    name.resize(::strnlen(name.data(), got));
    for (char& letter : name) {
        if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f) letter = '?';
    }
    return name;
}

/// One area for each address: of aliases the widest and most public name; what lies in another array is part
/// of it.
void remove_overlaps(std::vector<Symbol>& symbols) {
    std::sort(symbols.begin(), symbols.end(), [](const Symbol& a, const Symbol& b) {
        if (a.range.begin != b.range.begin) return a.range.begin < b.range.begin;
        if (a.range.end != b.range.end) return a.range.end > b.range.end;
        return a.global > b.global;
    });
    std::size_t kept = 0;
    for (Symbol symbol : symbols) {
        if (kept > 0) symbol.range.begin = std::max(symbol.range.begin, symbols[kept - 1].range.end);
        if (!symbol.range.empty()) symbols[kept++] = symbol;
    }
    symbols.resize(kept);
}

std::string_view file_name(std::string_view path) noexcept { return path.substr(path.rfind('/') + 1); }

} // namespace

Address LoadedObject::begin() const noexcept {
    Address lowest = ~Address{0};
    for (const auto& header : headers) {
        if (header.p_type == PT_LOAD) lowest = std::min(lowest, bias + header.p_vaddr);
    }
    return lowest;
}

void object_areas(const LoadedObject& object, std::size_t minimum, std::vector<AreaEntry>& out) {
    minimum = std::max<std::size_t>(minimum, 1);
    std::vector<Range> writable = writable_ranges(object);
    std::erase_if(writable, [minimum](Range range) { return range.bytes() < minimum; });
    if (writable.empty()) return; // most libraries: not even opened

    const char* const path = keep(object.path);
    const std::size_t first = out.size();
    bool complete = false;
    const File file(object.file.c_str());
    ElfW(Ehdr) header;
    if (file.read_object(header, 0) && is_readable_header(header) && is_loaded_file(file, header, object)) {
        if (const auto table = find_symbols(file, header, complete)) {
            std::vector<Symbol> symbols = read_symbols(file, *table, object, writable, minimum);
            remove_overlaps(symbols);
            for (const Symbol& symbol : symbols) {
                std::string name = readable_symbol(read_name(file, table->strings, symbol.name));
                if (name.empty()) name = "[data of " + std::string(file_name(object.path)) + "]";
                AreaEntry area;
                area.range = symbol.range;
                area.kind = AreaKind::static_array;
                area.name = keep(name);
                area.object = path;
                out.push_back(area);
            }
        }
    }
    if (complete) return;
    // Stripped: what no exported array covers is one nameless area.
    const std::size_t named = out.size();
    for (const Range range : writable) {
        Address at = range.begin;
        const auto add_rest = [&](Address end) {
            if (end < at || end - at < minimum) return;
            AreaEntry area;
            area.range = {at, end};
            area.kind = AreaKind::segment;
            area.name = keep("[data of " + std::string(file_name(object.path)) + "]");
            area.object = path;
            out.push_back(area);
        };
        for (std::size_t i = first; i < named; ++i) {
            const Range taken = out[i].range; // a copy: out grows
            if (!range.overlaps(taken)) continue;
            add_rest(taken.begin);
            at = taken.end;
        }
        add_rest(range.end);
    }
    std::sort(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(),
              [](const AreaEntry& a, const AreaEntry& b) { return a.range.begin < b.range.begin; });
}

bool is_runtime_object(std::string_view path) noexcept {
    const std::string_view name = file_name(path);
    static constexpr std::string_view prefixes[] = {
        "libhoming", "ld-linux", "ld-musl", "ld.so", "ld64.so", "linux-vdso", "linux-gate", "libc.so",
        "libc-", "libm.so", "libmvec.so", "libdl.so", "librt.so", "libpthread",
        // Allocators: their data are touched where a thread ends,
        // which has all signals blocked by then.
        "libjemalloc", "libtcmalloc", "libmimalloc", "libgomp", "libomp", "libiomp5", "libgcc_s.so",
        "libstdc++.so", "libc++", "libgfortran", "libquadmath", "libhwloc", "libnuma.so", "libFortranRuntime",
        "libFortranDecimal", "libflang_rt"};
    return std::any_of(std::begin(prefixes), std::end(prefixes),
                       [name](std::string_view prefix) { return name.starts_with(prefix); });
}

namespace {

struct Collected {
    std::vector<LoadedObject> objects;
    bool main_seen = false;
};

// Runs with the loader's lock held: copies, and nothing else.
int collect_object(dl_phdr_info* info, std::size_t, void* data) {
    auto& collected = *static_cast<Collected*>(data);
    LoadedObject object;
    const bool main_program = !collected.main_seen;
    collected.main_seen = true;
    const char* name = info->dlpi_name ? info->dlpi_name : "";
    if (!main_program && (!*name || is_runtime_object(name) || is_this_library(*info))) return 0;
    object.file = main_program ? "/proc/self/exe" : name;
    object.path = name;
    object.bias = info->dlpi_addr;
    object.headers.assign(info->dlpi_phdr, info->dlpi_phdr + info->dlpi_phnum);
    collected.objects.push_back(std::move(object));
    return 0;
}

/// The main program's path, or that of a library that was named relatively.
std::string shown_path(const LoadedObject& object) {
    std::string found(PATH_MAX, '\0');
    if (object.file == "/proc/self/exe") {
        const long length = raw::call(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", found.data(), found.size());
        found.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
        constexpr std::string_view mark = " (deleted)";
        if (found.ends_with(mark)) found.resize(found.size() - mark.size());
        return found.empty() ? "[main program]" : found;
    }
    if (!::realpath(object.path.c_str(), found.data())) return object.path;
    found.resize(std::strlen(found.c_str()));
    return found;
}

} // namespace

void static_areas(std::size_t minimum, std::vector<AreaEntry>& out, std::vector<Address>& known) {
    Collected collected;
    ::dl_iterate_phdr(collect_object, &collected);
    // An address that is free again may belong to another object the next time.
    std::erase_if(known, [&](Address address) {
        return std::none_of(collected.objects.begin(), collected.objects.end(),
                            [address](const LoadedObject& object) { return object.begin() == address; });
    });
    for (LoadedObject& object : collected.objects) {
        const Address begin = object.begin();
        if (std::find(known.begin(), known.end(), begin) != known.end()) continue;
        known.push_back(begin);
        object.path = shown_path(object);
        object_areas(object, minimum, out);
    }
}

} // namespace homing
