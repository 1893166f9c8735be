#include "base/program_name.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <string>

namespace homing::program_name_tests {
namespace {

namespace fs = std::filesystem;

TEST(ProgramName, IsWhatWasTypedAndWhatTheExecutableIsCalled) {
    const fs::path executable = fs::read_symlink("/proc/self/exe");
    char* const typed = ::program_invocation_short_name;
    char other[] = "python3";
    ::program_invocation_short_name = other;
    EXPECT_TRUE(homing::program_is("python3"));
    EXPECT_TRUE(homing::program_is(executable.filename().c_str()));
    EXPECT_FALSE(homing::program_is("python"));
    EXPECT_FALSE(homing::program_is("unit_tests")) << "the whole name";
    EXPECT_FALSE(homing::program_is(""));
    ::program_invocation_short_name = typed;
}

TEST(ProgramName, APathMeansTheFileThatItLeadsTo) {
    const fs::path executable = fs::read_symlink("/proc/self/exe");
    EXPECT_TRUE(homing::program_is(executable.c_str()));
    const fs::path link = fs::temp_directory_path() / ("homing-link-" + std::to_string(::getpid()));
    fs::create_symlink(executable, link);
    EXPECT_TRUE(homing::program_is(link.c_str()));
    fs::remove(link);
    EXPECT_FALSE(homing::program_is(link.c_str())) << "not there any more";
    EXPECT_FALSE(homing::program_is("/bin/sh"));
    const fs::path same_name = fs::path("/nowhere") / executable.filename();
    EXPECT_FALSE(homing::program_is(same_name.c_str()));
}

} // namespace
} // namespace homing::program_name_tests
