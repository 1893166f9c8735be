// Numbers in options are read as they stand in the manual, whatever the program's locale.
#include "base/options.hpp"

#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

namespace homing::options_locale_tests {
namespace {

/// An option's value for the time of a test.
class Value {
  public:
    Value(Option option, const char* text) : variable_(option_variable(option)) {
        ::setenv(variable_, text, 1);
    }
    ~Value() { ::unsetenv(variable_); }
    Value(const Value&) = delete;
    Value& operator=(const Value&) = delete;

  private:
    const char* variable_;
};

double number(const char* text) {
    const Value value(Option::observe_share, text);
    return option_number(Option::observe_share);
}

TEST(OptionNumbers, Numbers) {
    EXPECT_EQ(number("0.25"), 0.25);
    EXPECT_EQ(number("+2"), 2);
    EXPECT_EQ(number("1e-3"), 1e-3);
    const double otherwise = number("");
    for (const char* wrong : {"much", "0.25 of it", "0,25", "-1", "--1", "1e", "+"})
        EXPECT_EQ(number(wrong), otherwise) << wrong;
}

TEST(OptionNumbers, NumbersWhereTheLocaleHasADecimalComma) {
    // No such locale need be installed: one is made.
    namespace fs = std::filesystem;
    const fs::path folder = fs::temp_directory_path() / ("homing-locale-" + std::to_string(::getpid()));
    fs::create_directories(folder);
    std::ofstream(folder / "source") << "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\ngrouping -1\n"
                                        "END LC_NUMERIC\n";
    const std::string made =
        "cd '" + folder.string() + "' && localedef -c -f ANSI_X3.4-1968 -i ./source ./comma";
    const int status = std::system((made + " > log 2>&1").c_str());
    ::setenv("LOCPATH", folder.c_str(), 1);
    const bool there = std::setlocale(LC_NUMERIC, "comma") != nullptr;
    ::unsetenv("LOCPATH");
    const std::string point = std::localeconv()->decimal_point;
    const double share = number("0.01");
    std::setlocale(LC_NUMERIC, "C");
    fs::remove_all(folder);
    if (!there) GTEST_SKIP() << "localedef makes no locale here: " << status;
    EXPECT_EQ(point, ",");
    EXPECT_EQ(share, 0.01);
}

} // namespace
} // namespace homing::options_locale_tests
