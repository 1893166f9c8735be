#include "hooks/export.hpp"

#include "base/fnv_hash.hpp"
#include "base/own_strings.hpp"
#include "base/raw_calls.hpp"

#include <cstdint>
#include <elf.h>
#include <link.h>

namespace homing::hooks {
namespace {

struct Known {
    const char* name; ///< null: an empty slot
    void* function;   ///< null: not found yet
};

constexpr std::size_t slots = 2048; ///< a power of two, several times the exports
struct Table {
    Known known[slots];
    std::size_t count;
};
constinit std::atomic<Table*> the_table{nullptr};

std::size_t place_of(const char* name) noexcept {
    const std::uint64_t hash = fnv_hash({name, own_length(name)});
    return (hash ^ hash >> 32) & (slots - 1);
}

/// The slot of the name, or the empty one where it would be.
Known& find(Table& table, const char* name) noexcept {
    std::size_t at = place_of(name);
    while (table.known[at].name && !own_equal(table.known[at].name, name))
        at = (at + 1) & (slots - 1);
    return table.known[at];
}

/// The functions that a loaded object defines, as the loader finds them: through the hash table of its
/// dynamic symbols.
class Definitions {
  public:
    explicit Definitions(const link_map& object) noexcept : Definitions(object.l_addr, object.l_ld) {}
    Definitions(ElfW(Addr) base, const ElfW(Dyn) * dynamic) noexcept : base_(base) {
        for (const ElfW(Dyn)* entry = dynamic; entry->d_tag != DT_NULL; ++entry) {
            if (entry->d_tag == DT_SYMTAB) symbols_ = at<ElfW(Sym)>(entry->d_un.d_ptr);
            if (entry->d_tag == DT_STRTAB) names_ = at<char>(entry->d_un.d_ptr);
            if (entry->d_tag == DT_GNU_HASH) hash_ = at<std::uint32_t>(entry->d_un.d_ptr);
            if (entry->d_tag == DT_VERSYM) versions_ = at<ElfW(Half)>(entry->d_un.d_ptr);
        }
    }

    template <class Visit> void each_function(Visit&& visit) const {
        if (!is_complete()) return;
        for (std::uint32_t i = 0; i < bucket_count(); ++i) {
            if (buckets()[i] < first()) continue; // empty
            for (std::uint32_t symbol = buckets()[i];; ++symbol) {
                if (kind(symbol) == STT_FUNC) visit(names_ + symbols_[symbol].st_name);
                if (chain(symbol) & 1) break; // the last of its bucket
            }
        }
    }

    /// Is the name defined here? Then `function` is it (or the object), or null where only the loader can
    /// tell.
    bool find(const char* name, void*& function) const noexcept {
        if (!is_complete()) return false;
        std::uint32_t hash = 5381;
        for (const char* letter = name; *letter; ++letter)
            hash = hash * 33 + static_cast<unsigned char>(*letter);
        constexpr std::uint32_t bits = 8 * sizeof(ElfW(Addr));
        const ElfW(Addr) word = filter()[hash / bits % hash_[2]];
        if (!(word >> hash % bits & word >> (hash >> hash_[3]) % bits & 1)) return false;
        std::uint32_t symbol = buckets()[hash % bucket_count()];
        if (symbol < first()) return false;
        for (;; ++symbol) {
            if ((chain(symbol) | 1) == (hash | 1) && is_definition(symbol) &&
                own_equal(names_ + symbols_[symbol].st_name, name))
                break;
            if (chain(symbol) & 1) return false;
        }
        auto* address = reinterpret_cast<void*>(base_ + symbols_[symbol].st_value);
        if (kind(symbol) == STT_FUNC || kind(symbol) == STT_OBJECT) function = address;
#if defined(__x86_64__)
        // One that chooses among several: elsewhere it wants to be told what the loader knows of the CPU.
        if (kind(symbol) == STT_GNU_IFUNC) function = reinterpret_cast<void* (*)()>(address)();
#endif
        return true;
    }

    bool is_c_library() const noexcept {
        void* function = nullptr;
        return find("gnu_get_libc_version", function);
    }

  private:
    bool is_complete() const noexcept { return symbols_ && names_ && hash_; }
    std::uint32_t bucket_count() const noexcept { return hash_[0]; }
    std::uint32_t first() const noexcept { return hash_[1]; }
    const ElfW(Addr) * filter() const noexcept { return reinterpret_cast<const ElfW(Addr)*>(hash_ + 4); }
    const std::uint32_t* buckets() const noexcept {
        return reinterpret_cast<const std::uint32_t*>(filter() + hash_[2]);
    }
    std::uint32_t chain(std::uint32_t symbol) const noexcept {
        return (buckets() + bucket_count())[symbol - first()];
    }
    unsigned kind(std::uint32_t symbol) const noexcept { return symbols_[symbol].st_info & 0xf; }
    bool is_definition(std::uint32_t symbol) const noexcept {
        constexpr ElfW(Half) hidden = 0x8000; // an older version of a function, for programs that ask for it
        return symbols_[symbol].st_shndx != SHN_UNDEF && !(versions_ && versions_[symbol] & hidden);
    }
    /// Most loaders have added the base already.
    template <class T> const T* at(ElfW(Addr) address) const noexcept {
        return reinterpret_cast<const T*>(address < base_ ? base_ + address : address);
    }

    ElfW(Addr) base_;
    const ElfW(Sym) * symbols_ = nullptr;
    const char* names_ = nullptr;
    const std::uint32_t* hash_ = nullptr;
    const ElfW(Half) * versions_ = nullptr;
};

bool is_own_name(const char* name) noexcept {
    return own_starts_with(name, "homing") || own_starts_with(name, "upmlib");
}

/// The loader's own description of the process, without a look into our table of addresses, which is not
/// filled yet: the kernel tells where the loader lies, and its symbols where that is. Null: unknown.
const r_debug* find_debug() noexcept {
    ElfW(auxv_t) entries[48];
    const int file = raw::open("/proc/self/auxv", O_RDONLY);
    const long bytes = file < 0 ? 0 : raw::call(SYS_read, file, static_cast<void*>(entries), sizeof entries);
    raw::close(file);
    ElfW(Addr) base = 0;
    for (long i = 0; i < bytes / static_cast<long>(sizeof entries[0]); ++i)
        if (entries[i].a_type == AT_BASE) base = entries[i].a_un.a_val;
    if (!base) return nullptr;
    const auto& header = *reinterpret_cast<const ElfW(Ehdr)*>(base);
    const auto* segments = reinterpret_cast<const ElfW(Phdr)*>(base + header.e_phoff);
    for (int i = 0; i < header.e_phnum; ++i) {
        if (segments[i].p_type != PT_DYNAMIC) continue;
        void* debug = nullptr;
        const Definitions loader(base, reinterpret_cast<const ElfW(Dyn)*>(base + segments[i].p_vaddr));
        if (loader.find("_r_debug", debug)) return static_cast<const r_debug*>(debug);
    }
    return nullptr;
}

// What the program was started with: this library, and the objects behind it up to the C library. Whoever
// asks dlsym allocates (for the message about a name that is not there), and the program's allocator, which
// may be a sanitizer's or one that was preloaded, comes back to us with any call. So what is there is found
// without a call of the loader's, or of any other library; the list of objects is as it is for debuggers.

extern "C" __attribute__((visibility("hidden"))) const ElfW(Ehdr) __ehdr_start; // where this library lies

const link_map* own_object() noexcept {
    const auto here = reinterpret_cast<ElfW(Addr)>(&__ehdr_start);
    const r_debug* debug = is_relocated() ? &_r_debug : find_debug();
    const link_map* object = debug ? debug->r_map : nullptr;
    while (object && object->l_addr != here)
        object = object->l_next;
    return object;
}

/// Calls visit(Definitions) -> bool for the objects behind ours, until one answers false.
template <class Visit> void each_behind(Visit&& visit) noexcept {
    const link_map* object = own_object();
    while (object && (object = object->l_next)) {
        const Definitions definitions(*object);
        if (!visit(definitions) || definitions.is_c_library()) return;
    }
}

void note_own(Table& table) noexcept {
    const link_map* object = own_object();
    if (!object) return;
    Definitions(*object).each_function([&](const char* name) {
        if (is_own_name(name) || table.count >= slots / 2) return;
        find(table, name).name = name;
        ++table.count;
    });
}

void find_in(Table& table, const Definitions& definitions) noexcept {
    for (Known& known : table.known) {
        if (!known.name || known.function) continue;
        definitions.find(known.name, known.function);
    }
}

} // namespace

namespace relocation {
constinit const volatile char a_place = 0;
constinit const volatile char* volatile relocated_place = &a_place;
} // namespace relocation

[[gnu::noinline]] static void set_reachable(int number) noexcept { errno = number; }
void set_error(int number) noexcept {
    if (is_relocated()) set_reachable(number);
}

void look_up_exports() noexcept {
    auto* table = static_cast<Table*>(raw::map_memory(sizeof(Table)));
    if (!table) return;
    note_own(*table);
    each_behind([table](const Definitions& definitions) {
        find_in(*table, definitions);
        return true;
    });
    for (Known& known : table->known)
        if (known.name && !known.function) known.function = ::dlsym(RTLD_NEXT, known.name);
    ::dlerror(); // of names that have no other definition
    the_table.store(table, std::memory_order_release);
}

void* next_definition(const char* name) noexcept {
    void* function = nullptr;
    if (Table* table = the_table.load(std::memory_order_acquire)) {
        function = find(*table, name).function;
    } else {
        each_behind([&](const Definitions& definitions) { return !definitions.find(name, function); });
    }
    if (function || !is_relocated()) return function;
    function = ::dlsym(RTLD_NEXT, name);
    if (!function) ::dlerror(); // the program has not asked
    return function;
}

} // namespace homing::hooks
