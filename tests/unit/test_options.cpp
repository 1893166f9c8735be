// What the user asked for, as the environment has it.
#include "base/options.hpp"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <string>

namespace homing::options_tests {
namespace {

class Options : public ::testing::Test {
  protected:
    void set(Option option, const char* value) { ::setenv(option_variable(option), value, 1); }
    ~Options() override {
        ::unsetenv(option_variable(Option::area_minimum));
        ::unsetenv(option_variable(Option::assume_nodes));
        ::unsetenv(option_variable(Option::replay_pages));
        ::unsetenv(option_variable(Option::threshold));
    }
};

TEST_F(Options, SizesAreThoseOfTheCommand) {
    std::ifstream list(HOMING_TEST_DATA "/sizes.txt");
    std::string line;
    int sizes = 0;
    while (std::getline(list, line)) {
        if (line.starts_with("#")) continue;
        const std::size_t space = line.rfind(' ');
        const std::string text = line.substr(0, space);
        const std::string wanted = line.substr(space + 1);
        SCOPED_TRACE(text);
        std::size_t bytes = 1;
        if (wanted == "no") {
            EXPECT_FALSE(parse_size(text.c_str(), bytes));
        } else {
            EXPECT_TRUE(parse_size(text.c_str(), bytes));
            EXPECT_EQ(std::to_string(bytes), wanted);
        }
        ++sizes;
    }
    EXPECT_GT(sizes, 30);
    std::size_t bytes = 0;
    EXPECT_FALSE(parse_size("", bytes));
}

TEST_F(Options, ThatAreNotPossibleAreSaidAndTheDefaultIsUsed) {
    set(Option::area_minimum, "9 MiB");
    set(Option::assume_nodes, "5000000000");
    set(Option::threshold, "nan");
    set(Option::replay_pages, "1.5");
    EXPECT_EQ(option_number(Option::replay_pages), 20);
    EXPECT_EQ(option_size(Option::area_minimum), 128u << 10);
    EXPECT_EQ(option_number(Option::assume_nodes), 0);
    EXPECT_EQ(option_number(Option::threshold), 1.5);
    const std::string errors = option_errors();
    EXPECT_NE(errors.find("HOMING_AREA_MINIMUM=9 MiB is not possible (a size such as"), errors.npos)
        << errors;
    EXPECT_NE(errors.find("HOMING_ASSUME_NODES=5000000000 is not possible (a whole number from 0 to 64)"),
              errors.npos)
        << errors;
    EXPECT_NE(errors.find("HOMING_REPLAY_PAGES=1.5 is not possible (a whole number from 0 to 1000000)"),
              errors.npos)
        << errors;
    EXPECT_NE(errors.find("HOMING_THRESHOLD=nan is not possible (a number that is not negative)"),
              errors.npos)
        << errors;
}

TEST_F(Options, ThatArePossibleAreUsedWithoutAWord) {
    set(Option::area_minimum, "9mib");
    set(Option::assume_nodes, "64");
    set(Option::threshold, "2.5");
    EXPECT_EQ(option_size(Option::area_minimum), std::size_t{9} << 20);
    EXPECT_EQ(option_number(Option::assume_nodes), 64);
    EXPECT_EQ(option_number(Option::threshold), 2.5);
    EXPECT_EQ(option_errors(), "");
}

} // namespace
} // namespace homing::options_tests
