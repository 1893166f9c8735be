#include "doors/export.hpp"

#include "base/raw_calls.hpp"

#include <cstdint>
#include <cstring>
#include <elf.h>
#include <link.h>
#include <string_view>

namespace homing::doors {
namespace {

struct Known {
    const char* name; ///< null: an empty slot
    void* function;
};

constexpr std::size_t slots = 2048; ///< a power of two, several times the exports
struct Table {
    Known known[slots];
};
constinit std::atomic<Table*> the_table{nullptr};

std::size_t place_of(std::string_view name) noexcept {
    std::uint64_t hash = 14695981039346656037u; // FNV-1a
    for (const char letter : name)
        hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211u;
    return (hash ^ hash >> 32) & (slots - 1);
}

/// The slot of the name, or the empty one where it would be.
Known& find(Table& table, const char* name) noexcept {
    std::size_t at = place_of(name);
    while (table.known[at].name && std::strcmp(table.known[at].name, name) != 0)
        at = (at + 1) & (slots - 1);
    return table.known[at];
}

/// What this library exports, as the loader finds it: through the hash table of its dynamic symbols.
class Exports {
  public:
    explicit Exports(const dl_phdr_info& object) noexcept : base_(object.dlpi_addr) {
        for (int i = 0; i < object.dlpi_phnum; ++i) {
            if (object.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
            const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(base_ + object.dlpi_phdr[i].p_vaddr);
            for (; entry->d_tag != DT_NULL; ++entry) {
                if (entry->d_tag == DT_SYMTAB) symbols_ = at<ElfW(Sym)>(entry->d_un.d_ptr);
                if (entry->d_tag == DT_STRTAB) names_ = at<char>(entry->d_un.d_ptr);
                if (entry->d_tag == DT_GNU_HASH) hash_ = at<std::uint32_t>(entry->d_un.d_ptr);
            }
        }
    }

    template <class Visit> void each_function(Visit&& visit) const {
        if (!symbols_ || !names_ || !hash_) return;
        const std::uint32_t buckets = hash_[0];
        const std::uint32_t first = hash_[1];
        const std::uint32_t* bucket = hash_ + 4 + hash_[2] * (sizeof(ElfW(Addr)) / sizeof *hash_);
        const std::uint32_t* chain = bucket + buckets;
        for (std::uint32_t i = 0; i < buckets; ++i) {
            if (bucket[i] < first) continue; // empty
            for (std::uint32_t symbol = bucket[i];; ++symbol) {
                const ElfW(Sym)& one = symbols_[symbol];
                if ((one.st_info & 0xf) == STT_FUNC) visit(names_ + one.st_name);
                if (chain[symbol - first] & 1) break; // the last of its bucket
            }
        }
    }

  private:
    /// Most loaders have added the base already.
    template <class T> const T* at(ElfW(Addr) address) const noexcept {
        return reinterpret_cast<const T*>(address < base_ ? base_ + address : address);
    }

    ElfW(Addr) base_;
    const ElfW(Sym) * symbols_ = nullptr;
    const char* names_ = nullptr;
    const std::uint32_t* hash_ = nullptr;
};

bool is_own_name(std::string_view name) noexcept {
    return name.starts_with("homing") || name.starts_with("upmlib");
}

int fill_table(dl_phdr_info* object, std::size_t, void* data) noexcept {
    static const char landmark = 0;
    const auto here = reinterpret_cast<ElfW(Addr)>(&landmark);
    bool ours = false;
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr)& part = object->dlpi_phdr[i];
        ours |= part.p_type == PT_LOAD && here - (object->dlpi_addr + part.p_vaddr) < part.p_memsz;
    }
    if (!ours) return 0;
    auto& table = *static_cast<Table*>(data);
    std::size_t count = 0;
    Exports(*object).each_function([&](const char* name) {
        if (is_own_name(name) || ++count > slots / 2) return;
        if (void* function = ::dlsym(RTLD_NEXT, name)) find(table, name) = {name, function};
    });
    return 1;
}

} // namespace

void look_up_exports() noexcept {
    auto* table = static_cast<Table*>(raw::map_memory(sizeof(Table)));
    if (!table) return;
    ::dl_iterate_phdr(fill_table, table);
    ::dlerror(); // of names that have no other definition
    the_table.store(table, std::memory_order_release);
}

void* next_definition(const char* name) noexcept {
    if (Table* table = the_table.load(std::memory_order_acquire))
        if (void* function = find(*table, name).function) return function;
    void* function = ::dlsym(RTLD_NEXT, name);
    if (!function) ::dlerror(); // the program has not asked
    return function;
}

} // namespace homing::doors
