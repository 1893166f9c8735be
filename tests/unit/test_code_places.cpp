// Places of addresses in loaded objects, and what tells one build from another.
#include "areas/code_places.hpp"

#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <link.h>

namespace homing::code_places_tests {
namespace {

void here() {}

Range note(std::vector<char>& bytes, std::uint32_t type, const char* name, const std::string& text) {
    ElfW(Nhdr) header{};
    header.n_namesz = static_cast<std::uint32_t>(std::strlen(name) + 1);
    header.n_descsz = static_cast<std::uint32_t>(text.size());
    header.n_type = type;
    const auto* raw = reinterpret_cast<const char*>(&header);
    bytes.insert(bytes.end(), raw, raw + sizeof header);
    bytes.insert(bytes.end(), name, name + header.n_namesz);
    bytes.resize((bytes.size() + 3) / 4 * 4);
    bytes.insert(bytes.end(), text.begin(), text.end());
    bytes.resize((bytes.size() + 3) / 4 * 4);
    return range_of(bytes.data(), bytes.size());
}

TEST(CodePlaces, TheProgramIsKnownByItsFile) {
    CodePlaces places;
    const auto address = reinterpret_cast<Address>(&here);
    const ObjectPlace place = places.at(address);
    ASSERT_NE(place.file, nullptr);
    EXPECT_EQ(place.file->path, std::filesystem::read_symlink("/proc/self/exe"));
    EXPECT_TRUE(place.file->identity.starts_with("build-id ") || place.file->identity.starts_with("file "));
    Dl_info info{};
    ASSERT_NE(::dladdr(reinterpret_cast<void*>(address), &info), 0);
    EXPECT_EQ(place.offset, address - reinterpret_cast<Address>(info.dli_fbase));
    EXPECT_EQ(places.at(16).file, nullptr);
}

TEST(CodePlaces, ALibraryThatWentKeepsItsName) {
    // A library that nothing else here needs.
    void* library = ::dlopen("libBrokenLocale.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) GTEST_SKIP() << ::dlerror();
    link_map* map = nullptr;
    ASSERT_EQ(::dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
    const auto inside = reinterpret_cast<Address>(map->l_ld); // its dynamic section
    CodePlaces places;
    const ObjectPlace before = places.at(inside);
    ASSERT_NE(before.file, nullptr);
    EXPECT_TRUE(before.file->path.ends_with("libBrokenLocale.so.1")) << before.file->path;
    ::dlclose(library);
    places.forget();
    EXPECT_EQ(places.at(inside).file, before.file);
    EXPECT_EQ(places.at(inside).offset, before.offset);
}

TEST(BuildId, IsFoundBehindOtherNotes) {
    std::vector<char> bytes;
    note(bytes, NT_GNU_ABI_TAG, "GNU", "0123");
    note(bytes, NT_GNU_BUILD_ID, "Go", "xx");
    const Range all = note(bytes, NT_GNU_BUILD_ID, "GNU", "\x01\xab");
    EXPECT_EQ(build_id({all}), "01ab");
    EXPECT_EQ(build_id({}), "");
}

TEST(BuildId, DamagedNotesAreNone) {
    std::vector<char> bytes;
    const Range all = note(bytes, NT_GNU_BUILD_ID, "GNU", "0123456789");
    for (std::size_t length = 0; length + 4 < all.bytes(); ++length)
        EXPECT_EQ(build_id({{all.begin, all.begin + length}}), "") << length;
    const std::uint32_t huge = ~0u;
    std::memcpy(bytes.data(), &huge, sizeof huge);
    EXPECT_EQ(build_id({all}), "");
}

} // namespace
} // namespace homing::code_places_tests
