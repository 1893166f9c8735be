// The loader takes the first definition of a name for all objects: the program's, where it has one. A C
// program may have a function log() of its own that writes a line, or an open() of a valve, and never notice
// that the C library's is hidden behind it. This library calls log() and open(), too.
#include "hooks/own_imports.hpp"

#include "base/raw_calls.hpp"
#include "hooks/loaded_objects.hpp"
#include "hooks/shadowed.hpp"

#include <sys/mman.h>

namespace homing::hooks {
namespace {

/// The program's allocator serves us, too: what the C library allocates for its caller to free is of it.
constexpr const char* allocators[] = {"malloc", "calloc",         "realloc",       "reallocarray",
                                      "free",   "posix_memalign", "aligned_alloc", "memalign",
                                      "valloc", "pvalloc"};

bool is_allocator(const char* name) noexcept {
    for (const char* one : allocators)
        if (own_equal(one, name)) return true;
    return false;
}

#if defined(__x86_64__)
bool is_slot(unsigned long kind) noexcept { return kind == R_X86_64_JUMP_SLOT || kind == R_X86_64_GLOB_DAT; }
#elif defined(__aarch64__)
bool is_slot(unsigned long kind) noexcept {
    return kind == R_AARCH64_JUMP_SLOT || kind == R_AARCH64_GLOB_DAT;
}
#else
bool is_slot(unsigned long) noexcept { return false; }
#endif

/// The slots through which an object calls others, and what each stands for.
class Slots {
  public:
    explicit Slots(const link_map& object) noexcept : base_(object.l_addr) {
        for (const ElfW(Dyn)* entry = object.l_ld; entry->d_tag != DT_NULL; ++entry) {
            const ElfW(Addr) value = entry->d_un.d_ptr;
            const ElfW(Addr) address = loaded_at(base_, value);
            switch (entry->d_tag) {
            case DT_SYMTAB:
                symbols_ = reinterpret_cast<const ElfW(Sym)*>(address);
                break;
            case DT_STRTAB:
                names_ = reinterpret_cast<const char*>(address);
                break;
            case DT_VERSYM:
                versions_ = reinterpret_cast<const ElfW(Half)*>(address);
                break;
            case DT_VERNEED:
                needed_ = reinterpret_cast<const ElfW(Verneed)*>(address);
                break;
            case DT_JMPREL:
                tables_[0] = reinterpret_cast<const ElfW(Rela)*>(address);
                break;
            case DT_RELA:
                tables_[1] = reinterpret_cast<const ElfW(Rela)*>(address);
                break;
            case DT_PLTRELSZ:
                bytes_[0] = value;
                break;
            case DT_RELASZ:
                bytes_[1] = value;
                break;
            default:
                break;
            }
        }
    }

    /// Calls visit(slot, name, version or null, own definition or null) for each function.
    template <class Visit> void each(Visit&& visit) const {
        if (!symbols_ || !names_) return;
        for (int table = 0; table < 2; ++table) {
            const std::size_t count = tables_[table] ? bytes_[table] / sizeof(ElfW(Rela)) : 0;
            for (std::size_t i = 0; i < count; ++i) {
                const ElfW(Rela)& one = tables_[table][i];
                if (!is_slot(ELF64_R_TYPE(one.r_info))) continue;
                const std::size_t number = ELF64_R_SYM(one.r_info);
                const ElfW(Sym)& symbol = symbols_[number];
                if ((symbol.st_info & 0xf) == STT_OBJECT) continue;
                void* const own =
                    symbol.st_shndx == SHN_UNDEF ? nullptr : reinterpret_cast<void*>(base_ + symbol.st_value);
                visit(reinterpret_cast<void**>(base_ + one.r_offset), names_ + symbol.st_name,
                      own ? nullptr : version_of(number), own);
            }
        }
    }

  private:
    const char* version_of(std::size_t symbol) const noexcept {
        const int number = versions_ ? versions_[symbol] & 0x7fff : 0;
        for (const auto* file = needed_; file; file = next_in_chain<ElfW(Verneed)>(file, file->vn_next))
            for (const auto* one = next_in_chain<ElfW(Vernaux)>(file, file->vn_aux); one;
                 one = next_in_chain<ElfW(Vernaux)>(one, one->vna_next))
                if (one->vna_other == number) return names_ + one->vna_name;
        return nullptr;
    }

    ElfW(Addr) base_;
    const ElfW(Sym) * symbols_ = nullptr;
    const char* names_ = nullptr;
    const ElfW(Half) * versions_ = nullptr;
    const ElfW(Verneed) * needed_ = nullptr;
    const ElfW(Rela) * tables_[2] = {};
    std::size_t bytes_[2] = {};
};

/// What the loader has made read-only once it was filled: writable while this lives.
class Writable {
  public:
    explicit Writable(const link_map& object) noexcept {
        int count = 0;
        const auto* segments = segments_of(object.l_addr, count);
        for (int i = 0; i < count; ++i) {
            if (segments[i].p_type != PT_GNU_RELRO) continue;
            const Address begin = object.l_addr + segments[i].p_vaddr;
            pages_ = {align_down(begin, page_bytes()), align_down(begin + segments[i].p_memsz, page_bytes())};
        }
        is_ = protect(PROT_READ | PROT_WRITE);
    }
    ~Writable() { protect(PROT_READ); }
    Writable(const Writable&) = delete;
    Writable& operator=(const Writable&) = delete;
    explicit operator bool() const noexcept { return is_; }

  private:
    bool protect(int rights) noexcept {
        return pages_.empty() || raw::call(SYS_mprotect, pages_.begin, pages_.bytes(), rights) == 0;
    }

    Range pages_;
    bool is_ = false;
};

} // namespace

void bind_own_imports() noexcept {
    const link_map* own = own_object();
    if (!own || own == first_object()) return;
    const CLibrary c_library;
    const Slots slots(*own);
    const auto each_foreign = [&](auto&& visit) {
        slots.each([&](void** slot, const char* name, const char* version, void* here) {
            const auto bound = reinterpret_cast<Address>(*slot);
            const bool shadowed = here && is_shadowed(name);
            const bool good =
                shadowed ? c_library.holds(bound) : contains(*own, bound) || c_library.holds(bound);
            if (!bound || good || is_allocator(name)) return;
            void* const function = here && !shadowed ? here : c_library.find(name, version);
            if (function) visit(slot, function);
        });
    };
    bool any = false;
    each_foreign([&any](void**, void*) { any = true; });
    if (!any) return;
    const Writable table(*own);
    if (table) each_foreign([](void** slot, void* function) { *slot = function; });
}

} // namespace homing::hooks
