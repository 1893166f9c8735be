// What the loader has loaded, read without a call of the loader's or of any other library: hooks ask before
// this library is relocated, and a look-up by dlsym allocates, for the message about a name that is not
// there.
#pragma once

#include "base/own_strings.hpp"
#include "base/pages.hpp"

#include <cstdint>
#include <elf.h>
#include <link.h>

namespace homing::hooks {

/// An address in the table of a loaded object, to which most loaders have added the base already.
inline ElfW(Addr) loaded_at(ElfW(Addr) base, ElfW(Addr) address) noexcept {
    return address < base ? base + address : address;
}

/// Tables of versions are chains: each entry tells how far it is to the next one, the last one 0.
template <class T> const T* next_in_chain(const void* entry, std::size_t distance) noexcept {
    return distance ? reinterpret_cast<const T*>(static_cast<const char*>(entry) + distance) : nullptr;
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
            if (entry->d_tag == DT_HASH) old_hash_ = at<std::uint32_t>(entry->d_un.d_ptr);
            if (entry->d_tag == DT_VERSYM) versions_ = at<ElfW(Half)>(entry->d_un.d_ptr);
            if (entry->d_tag == DT_VERDEF) own_versions_ = at<ElfW(Verdef)>(entry->d_un.d_ptr);
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
    /// tell. `version`: null for the one that programs are linked with today.
    bool find(const char* name, void*& function, const char* version = nullptr) const noexcept {
        const std::uint32_t symbol = is_complete() ? look_up(name, version) : look_up_old(name, version);
        if (symbol == STN_UNDEF || !symbols_) return false;
        auto* address = reinterpret_cast<void*>(base_ + symbols_[symbol].st_value);
        if (kind(symbol) == STT_FUNC || kind(symbol) == STT_OBJECT) function = address;
#if defined(__x86_64__)
        // One that chooses among several: elsewhere it wants to be told what the loader knows of the CPU.
        if (kind(symbol) == STT_GNU_IFUNC) function = reinterpret_cast<void* (*)()>(address)();
#endif
        return true;
    }

    /// Does the object want a function of this name from another one?
    bool refers_to(const char* name) const noexcept {
        if (!symbols_ || !names_) return false;
        // In front of the newer table are those that are no definitions; the older one has all.
        const std::uint32_t end = hash_ ? first() : old_hash_ ? old_hash_[1] : 0;
        for (std::uint32_t symbol = 1; symbol < end; ++symbol)
            if (symbols_[symbol].st_shndx == SHN_UNDEF && own_equal(names_ + symbols_[symbol].st_name, name))
                return true;
        return false;
    }

    bool is_c_library() const noexcept {
        void* function = nullptr;
        return find("gnu_get_libc_version", function);
    }

  private:
    /// The definition of the name; STN_UNDEF: there is none.
    std::uint32_t look_up(const char* name, const char* version) const noexcept {
        std::uint32_t hash = 5381;
        for (const char* letter = name; *letter; ++letter)
            hash = hash * 33 + static_cast<unsigned char>(*letter);
        constexpr std::uint32_t bits = 8 * sizeof(ElfW(Addr));
        const ElfW(Addr) word = filter()[hash / bits % hash_[2]];
        if (!(word >> hash % bits & word >> (hash >> hash_[3]) % bits & 1)) return STN_UNDEF;
        std::uint32_t symbol = buckets()[hash % bucket_count()];
        if (symbol < first()) return STN_UNDEF;
        for (;; ++symbol) {
            if ((chain(symbol) | 1) == (hash | 1) && is_definition(symbol, version) &&
                own_equal(names_ + symbols_[symbol].st_name, name))
                return symbol;
            if (chain(symbol) & 1) return STN_UNDEF;
        }
    }
    /// The same in the table of the System V standard, which is all that some linkers write.
    std::uint32_t look_up_old(const char* name, const char* version) const noexcept {
        if (!symbols_ || !names_ || !old_hash_ || old_hash_[0] == 0) return STN_UNDEF;
        std::uint32_t hash = 0;
        for (const char* letter = name; *letter; ++letter) {
            hash = (hash << 4) + static_cast<unsigned char>(*letter);
            hash = (hash ^ (hash >> 24 & 0xf0)) & 0xfffffff;
        }
        const std::uint32_t* const first_of = old_hash_ + 2;
        const std::uint32_t* const next_of = first_of + old_hash_[0];
        for (std::uint32_t symbol = first_of[hash % old_hash_[0]]; symbol; symbol = next_of[symbol])
            if (is_definition(symbol, version) && own_equal(names_ + symbols_[symbol].st_name, name))
                return symbol;
        return STN_UNDEF;
    }
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
    bool is_definition(std::uint32_t symbol, const char* version) const noexcept {
        constexpr ElfW(Half) hidden = 0x8000; // an older version of a function, for programs that ask for it
        if (symbols_[symbol].st_shndx == SHN_UNDEF) return false;
        if (!versions_) return !version;
        return version ? own_equal(version_of(versions_[symbol] & ~hidden), version)
                       : !(versions_[symbol] & hidden);
    }
    const char* version_of(int number) const noexcept {
        for (const auto* one = own_versions_; one; one = next_in_chain<ElfW(Verdef)>(one, one->vd_next))
            if (one->vd_ndx == number)
                return names_ + next_in_chain<ElfW(Verdaux)>(one, one->vd_aux)->vda_name;
        return "";
    }
    template <class T> const T* at(ElfW(Addr) address) const noexcept {
        return reinterpret_cast<const T*>(loaded_at(base_, address));
    }

    ElfW(Addr) base_;
    const ElfW(Sym) * symbols_ = nullptr;
    const char* names_ = nullptr;
    const std::uint32_t* hash_ = nullptr;
    const std::uint32_t* old_hash_ = nullptr;
    const ElfW(Half) * versions_ = nullptr;
    const ElfW(Verdef) * own_versions_ = nullptr;
};

/// The first of all loaded objects, the program; and this library. Null: unknown.
const link_map* first_object() noexcept;
const link_map* own_object() noexcept;

inline const ElfW(Phdr) * segments_of(ElfW(Addr) base, int& count) noexcept {
    const auto& header = *reinterpret_cast<const ElfW(Ehdr)*>(base);
    count = header.e_phnum;
    return reinterpret_cast<const ElfW(Phdr)*>(base + header.e_phoff);
}

/// Of a library, whose header is loaded where it begins.
inline bool contains(const link_map& library, Address address) noexcept {
    int count = 0;
    const auto* segments = segments_of(library.l_addr, count);
    for (int i = 0; i < count; ++i) {
        const Address begin = library.l_addr + segments[i].p_vaddr;
        if (segments[i].p_type == PT_LOAD && Range{begin, begin + segments[i].p_memsz}.contains(address))
            return true;
    }
    return false;
}

/// The libraries that the C library consists of.
class CLibrary {
  public:
    CLibrary() noexcept {
        for (const link_map* object = first_object(); object && count_ < most; object = object->l_next)
            if (is_part(object->l_name)) parts_[count_++] = object;
    }
    bool holds(Address address) const noexcept {
        for (int i = 0; i < count_; ++i)
            if (contains(*parts_[i], address)) return true;
        return false;
    }
    /// Null: it has none, or only the loader can tell.
    void* find(const char* name, const char* version) const noexcept {
        void* function = nullptr;
        for (int i = 0; i < count_; ++i)
            if (Definitions(*parts_[i]).find(name, function, version)) return function;
        return nullptr;
    }

  private:
    static bool is_part(const char* path) noexcept {
        const char* name = path ? path : "";
        for (const char* at = name; *at; ++at)
            if (*at == '/') name = at + 1;
        for (const char* begin : {"libc.so", "libm.so", "ld-linux", "libpthread.so", "libdl.so", "librt.so"})
            if (own_starts_with(name, begin)) return true;
        for (const char* begin : {"libc-", "libm-", "ld-", "libpthread-", "libdl-", "librt-"}) // libc-2.31.so
            if (own_starts_with(name, begin) && name[own_length(begin)] >= '0' &&
                name[own_length(begin)] <= '9')
                return true;
        return false;
    }

    static constexpr int most = 8;
    const link_map* parts_[most] = {};
    int count_ = 0;
};

} // namespace homing::hooks
