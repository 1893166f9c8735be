// Static arrays: those of this very program, and ELF files written here, also damaged ones.
#include "areas/elf_object.hpp"
#include "areas/symbol_names.hpp"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <unistd.h>

// Arrays with the symbols that Fortran compilers give theirs.
extern "C" {
double __tests_MOD_field[32768];
double testblock_[32768];
double _QMtestsEgrid[32768];
extern const double homing_test_constants[32768];
const double homing_test_constants[32768] = {1.0};
thread_local double homing_test_thread_local[32768];
char homing_test_small[1024];
}

namespace homing::areas_elf_tests {
namespace {

double local_array[40000];

const AreaEntry* find(const std::vector<AreaEntry>& areas, const void* address) {
    const auto begin = reinterpret_cast<Address>(address);
    const auto found = std::find_if(areas.begin(), areas.end(),
                                    [begin](const AreaEntry& area) { return area.range.begin == begin; });
    return found == areas.end() ? nullptr : &*found;
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool address_sanitizer = true;
#elif defined(__has_feature)
constexpr bool address_sanitizer = __has_feature(address_sanitizer);
#else
constexpr bool address_sanitizer = false;
#endif

TEST(StaticAreas, FindsTheArraysOfThisProgram) {
    std::vector<AreaEntry> areas;
    std::vector<Address> known;
    static_areas(128 << 10, areas, known);

    const AreaEntry* field = find(areas, __tests_MOD_field);
    ASSERT_NE(field, nullptr);
    EXPECT_STREQ(field->name, "tests::field");
    if (address_sanitizer) // its red zone belongs to the symbol
        EXPECT_GE(field->range.bytes(), sizeof __tests_MOD_field);
    else
        EXPECT_EQ(field->range.bytes(), sizeof __tests_MOD_field);
    EXPECT_EQ(field->kind, AreaKind::static_array);
    EXPECT_EQ(std::string(field->object), std::filesystem::read_symlink("/proc/self/exe"));
    ASSERT_NE(find(areas, testblock_), nullptr);
    EXPECT_STREQ(find(areas, testblock_)->name, "/testblock/");
    ASSERT_NE(find(areas, _QMtestsEgrid), nullptr);
    EXPECT_STREQ(find(areas, _QMtestsEgrid)->name, "tests::grid");
    local_array[0] = 1;
    EXPECT_NE(find(areas, local_array), nullptr);

    EXPECT_EQ(find(areas, homing_test_constants), nullptr) << "read-only";
    EXPECT_EQ(find(areas, homing_test_thread_local), nullptr);
    EXPECT_EQ(find(areas, homing_test_small), nullptr) << "below the minimum";
    for (std::size_t i = 1; i < areas.size(); ++i) {
        if (areas[i].object == areas[i - 1].object) {
            EXPECT_LE(areas[i - 1].range.end, areas[i].range.begin);
        }
    }

    const std::size_t before = areas.size();
    static_areas(128 << 10, areas, known);
    EXPECT_EQ(areas.size(), before) << "known objects are skipped";
}

TEST(StaticAreas, RuntimeLibrariesAreNotThePrograms) {
    for (const char* path :
         {"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2", "libgomp.so.1",
          "/usr/lib/llvm-19/lib/libomp.so.5", "linux-vdso.so.1", "/opt/lib/libhoming.so"}) {
        EXPECT_TRUE(is_runtime_object(path)) << path;
    }
    for (const char* path : {"a.out", "/home/u/libcloud.so", "/usr/lib/libmy.so", "libmpi.so.40"}) {
        EXPECT_FALSE(is_runtime_object(path)) << path;
    }
}

TEST(SymbolNames, AreTheAuthors) {
    const std::pair<const char*, const char*> names[] = {
        {"__mo_MOD_marr", "mo::marr"},
        {"__a_b_MOD_c_d", "a_b::c_d"},
        {"blk_", "/blk/"},
        {"my_blk_", "/my_blk/"},
        {"__BLNK__", "//"},
        {"earr.3", "earr"},
        {"buffer.1234.lto_priv.0", "buffer"},
        {"solve.work", "solve.work"},
        {"x", "x"},
        {"u2", "u2"},
        {"_QFEparr", "parr"},
        {"_QFexEearr", "ex::earr"},
        {"_QFexFinnerEiarr", "ex::inner::iarr"},
        {"_QMmoEmarr", "mo::marr"},
        {"_QMmoFmsubEsarr", "mo::msub::sarr"},
        {"_QMmoECtable", "mo::table"},
        {"_QQweird", "_QQweird"},
        {"_Q", "_Q"},
        {"_ZN1a1bE", "a::b"},
        {"_ZL1a.1", "a"},
        {"_ZN12_GLOBAL__N_15fieldE", "(anonymous namespace)::field"},
        {"_ZZ5solveiE4work", "solve(int)::work"},
        {"_ZN4GridIdLi3EE4dataE", "Grid<double, 3>::data"},
        {"_Znonsense", "_Znonsense"},
        {"CamelCase_", "CamelCase_"},
        {"__MOD_", "__MOD_"},
        {"_", "_"},
        {"__", "__"},
        {".5", ".5"},
        {"", ""},
    };
    for (const auto& [symbol, name] : names)
        EXPECT_EQ(readable_symbol(symbol), name) << symbol;
}

TEST(SymbolNames, NeverEmptyNeverLonger) {
    EXPECT_TRUE(rc::check("any text", [](const std::string& text) {
        RC_PRE(!text.starts_with("_Z")); // what is demangled is longer
        const std::string name = readable_symbol(text);
        RC_ASSERT(name.empty() == text.empty());
        RC_ASSERT(name.size() <= text.size() + 1);
    }));
    EXPECT_TRUE(rc::check("flang-like text", [] {
        const auto tail =
            *rc::gen::container<std::string>(rc::gen::element('M', 'F', 'E', 'C', 'B', 'a', 'z', '1'));
        RC_ASSERT(!readable_symbol("_Q" + tail).empty());
    }));
}

/// A small ELF file: one read-only and one writable segment, a symbol table that the test chooses.
struct ElfFile {
    static constexpr Address data_address = 0x200000;
    static constexpr std::size_t data_bytes = 16 << 20;
    std::vector<Elf64_Phdr> headers;
    std::vector<Elf64_Sym> symbols{Elf64_Sym{}};
    std::string strings{'\0'};

    ElfFile() {
        headers.push_back({PT_LOAD, PF_R | PF_X, 0, 0x100000, 0x100000, 0x1000, 0x1000, 0x1000});
        headers.push_back(
            {PT_LOAD, PF_R | PF_W, 0x1000, data_address, data_address, 0x1000, data_bytes, 0x1000});
        headers.push_back({PT_GNU_RELRO, PF_R, 0x1000, data_address, data_address, 0x1000, 0x100000, 1});
    }
    void add(const char* name, Address offset, std::size_t bytes, int type = STT_OBJECT,
             int bind = STB_GLOBAL, int section = 1) {
        Elf64_Sym symbol{};
        symbol.st_name = static_cast<Elf64_Word>(strings.size());
        symbol.st_info = static_cast<unsigned char>(ELF64_ST_INFO(bind, type));
        symbol.st_shndx = static_cast<Elf64_Half>(section);
        symbol.st_value = data_address + offset;
        symbol.st_size = bytes;
        symbols.push_back(symbol);
        strings += name;
        strings += '\0';
    }
    std::string bytes(Elf64_Word table_type) const {
        Elf64_Ehdr header{};
        std::memcpy(header.e_ident, ELFMAG, SELFMAG);
        header.e_ident[EI_CLASS] = ELFCLASS64;
        header.e_ident[EI_DATA] = ELFDATA2LSB;
        header.e_ident[EI_VERSION] = EV_CURRENT;
        header.e_type = ET_DYN;
        header.e_phoff = sizeof header;
        header.e_phentsize = sizeof(Elf64_Phdr);
        header.e_phnum = static_cast<Elf64_Half>(headers.size());
        header.e_shentsize = sizeof(Elf64_Shdr);
        header.e_shnum = 4;
        const std::size_t symbols_at = header.e_phoff + headers.size() * sizeof(Elf64_Phdr);
        const std::size_t strings_at = symbols_at + symbols.size() * sizeof(Elf64_Sym);
        header.e_shoff = strings_at + strings.size();
        Elf64_Shdr sections[4] = {};
        sections[1].sh_type = SHT_PROGBITS;
        sections[2].sh_type = table_type;
        sections[2].sh_offset = symbols_at;
        sections[2].sh_size = symbols.size() * sizeof(Elf64_Sym);
        sections[2].sh_entsize = sizeof(Elf64_Sym);
        sections[2].sh_link = 3;
        sections[3].sh_type = SHT_STRTAB;
        sections[3].sh_offset = strings_at;
        sections[3].sh_size = strings.size();
        std::string out;
        const auto put = [&out](const void* data, std::size_t size) {
            out.append(static_cast<const char*>(data), size);
        };
        put(&header, sizeof header);
        put(headers.data(), headers.size() * sizeof(Elf64_Phdr));
        put(symbols.data(), symbols.size() * sizeof(Elf64_Sym));
        put(strings.data(), strings.size());
        put(sections, sizeof sections);
        return out;
    }
};

class ElfObject : public ::testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/homing-elf-XXXXXX";
        const int descriptor = ::mkstemp(name);
        ASSERT_GE(descriptor, 0);
        ::close(descriptor);
        path = name;
        elf.add("big", 0x200000, 0x100000);
        elf.add("alias_of_big", 0x200000, 0x100000, STT_OBJECT, STB_WEAK);
        elf.add("member", 0x210000, 0x20000, STT_OBJECT, STB_LOCAL);
        elf.add("overhang", 0x2f0000, 0x40000, STT_OBJECT, STB_LOCAL);
        elf.add("small", 0x400000, 0x100);
        elf.add("function", 0x500000, 0x100000, STT_FUNC);
        elf.add("elsewhere", 0x600000, 0x100000, STT_OBJECT, STB_GLOBAL, SHN_UNDEF);
        elf.add("absolute", 0x600000, 0x100000, STT_OBJECT, STB_GLOBAL, SHN_ABS);
        elf.add("relocated", 0x80000, 0x20000);
        elf.add("beyond", ElfFile::data_bytes - 0x10000, 0x20000);
        elf.add("common_", 0x700000, 0x100000, STT_COMMON);
    }
    void TearDown() override { std::filesystem::remove(path); }

    std::vector<AreaEntry> areas(const std::string& bytes) const {
        std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
        LoadedObject object{path, "/opt/program", bias, elf.headers};
        std::vector<AreaEntry> found;
        object_areas(object, 0x10000, found);
        return found;
    }
    static constexpr Address bias = 0x7f0000000000;
    std::string path;
    ElfFile elf;
};

TEST_F(ElfObject, EachArrayOnceAndOnlyArrays) {
    const auto found = areas(elf.bytes(SHT_SYMTAB));
    ASSERT_EQ(found.size(), 3u);
    EXPECT_STREQ(found[0].name, "big");
    EXPECT_EQ(found[0].range.begin, bias + ElfFile::data_address + 0x200000);
    EXPECT_EQ(found[0].range.bytes(), 0x100000u);
    EXPECT_STREQ(found[0].object, "/opt/program");
    EXPECT_STREQ(found[1].name, "overhang");
    EXPECT_EQ(found[1].range.begin, found[0].range.end) << "without what belongs to another array";
    EXPECT_STREQ(found[2].name, "/common/");
}

TEST_F(ElfObject, AStrippedObjectHasItsExportedArraysAndTheRest) {
    const auto found = areas(elf.bytes(SHT_DYNSYM));
    ASSERT_EQ(found.size(), 6u);
    EXPECT_STREQ(found[0].name, "[data of program]");
    EXPECT_EQ(found[0].kind, AreaKind::segment);
    EXPECT_EQ(found[0].range.begin, bias + ElfFile::data_address + 0x100000)
        << "not what is read-only after relocation";
    EXPECT_STREQ(found[1].name, "big");
    EXPECT_STREQ(found[2].name, "overhang");
    EXPECT_EQ(found[3].kind, AreaKind::segment);
    EXPECT_STREQ(found[4].name, "/common/");
    EXPECT_EQ(found[5].range.end, bias + ElfFile::data_address + ElfFile::data_bytes);
    for (std::size_t i = 1; i < found.size(); ++i)
        EXPECT_EQ(found[i - 1].range.end, found[i].range.begin);
}

TEST_F(ElfObject, WhatIsNotTheLoadedFileIsNotBelieved) {
    const std::string bytes = elf.bytes(SHT_SYMTAB);
    elf.headers[0].p_memsz += 0x1000; // as if the program had been compiled anew since
    const auto found = areas(bytes);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].kind, AreaKind::segment);
    EXPECT_EQ(areas("").size(), 1u);
    EXPECT_EQ(areas("#!/bin/sh\n").size(), 1u);
}

TEST_F(ElfObject, DamagedFilesCostNamesOnly) {
    const std::string good = elf.bytes(SHT_SYMTAB);
    EXPECT_TRUE(rc::check("any bytes changed, any length", [&] {
        std::string bytes = good;
        const int changes = *rc::gen::inRange(1, 8);
        for (int i = 0; i < changes; ++i) {
            const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size());
            bytes[at] = *rc::gen::weightedOneOf<char>(
                {{1, rc::gen::element('\xff', '\x7f', '\x80', '\0')}, {1, rc::gen::arbitrary<char>()}});
        }
        if (*rc::gen::arbitrary<bool>()) bytes.resize(*rc::gen::inRange<std::size_t>(0, bytes.size()));
        Address last = 0;
        for (const AreaEntry& area : areas(bytes)) {
            RC_ASSERT(area.range.begin >= last);
            RC_ASSERT(area.range.bytes() > 0u);
            RC_ASSERT(area.range.begin >= bias + ElfFile::data_address + 0x100000);
            RC_ASSERT(area.range.end <= bias + ElfFile::data_address + ElfFile::data_bytes);
            RC_ASSERT(std::strlen(area.name) > 0u);
            last = area.range.end;
        }
    }));
}

TEST_F(ElfObject, ProgramHeadersAtTheEndOfTheAddressSpace) {
    elf.headers[1].p_vaddr = ~std::uint64_t{0} - 0x1000;
    elf.headers[2].p_vaddr = ~std::uint64_t{0} - 0x1000;
    EXPECT_TRUE(areas(elf.bytes(SHT_SYMTAB)).empty());
}

} // namespace
} // namespace homing::areas_elf_tests
