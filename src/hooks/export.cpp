#include "hooks/export.hpp"

#include "base/fnv_hash.hpp"
#include "base/own_strings.hpp"
#include "base/raw_calls.hpp"
#include "hooks/loaded_objects.hpp"

#include <cstdint>

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

} // namespace

const link_map* first_object() noexcept {
    const r_debug* debug = is_relocated() ? &_r_debug : find_debug();
    return debug ? debug->r_map : nullptr;
}

extern "C" __attribute__((visibility("hidden"))) const ElfW(Ehdr) __ehdr_start; // where this library lies

const link_map* own_object() noexcept {
    const auto here = reinterpret_cast<ElfW(Addr)>(&__ehdr_start);
    const link_map* object = first_object();
    while (object && object->l_addr != here)
        object = object->l_next;
    return object;
}

namespace {

// What the program was started with: this library, and the objects behind it up to the C library. The
// program's allocator, which may be a sanitizer's or one that was preloaded, comes back to us with any call;
// so dlsym is not asked. The list of objects is as it is for debuggers.

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
