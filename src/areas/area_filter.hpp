// --areas: which areas are watched. A rule goes by an area's name, or by the lines of source that allocate it
// (or declare it), which the launcher has looked up in debug information before the start
// (homing/area_rules.py).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace homing {

/// An area's place in its object: of an allocation the calls that led to it, of a static array its begin.
struct AreaPlace {
    std::string_view object;   ///< the path of the object's file
    std::string_view identity; ///< as LoadedFile::identity
    std::uint64_t offset = 0;  ///< of the instruction, or of the first byte
};

class AreaFilter {
  public:
    /// rules: "include=GLOB,exclude=GLOB,..."; the last match decides, an include first means nothing else.
    /// Commas within brackets are part of a name. code (HOMING_AREA_CODE): for the rules that name lines of
    /// source where these are, line by line either "object KEY" (an identity, or else a path's last part), or
    /// "RULE CONDITION BEGIN END" with a rule's number and a range of the object, in hexadecimal digits. An
    /// area matches the rule if each of the rule's conditions has one of its places.
    AreaFilter(std::string_view rules, std::string_view code);

    bool accepts(const std::string& name, std::span<const AreaPlace> places);
    /// As accepts(), of an area that begins to be watched or is left out for good: it is counted.
    bool adopts(const std::string& name, std::span<const AreaPlace> places);
    const std::string& error() const noexcept { return error_; }

    struct Rule {
        bool include = false;
        std::string pattern;
        std::uint32_t conditions = 0; ///< a bit each
        bool matched = false;         ///< by an area that there was, watched or not
        std::uint64_t areas = 0;      ///< that it has met (adopts)

        std::string text() const { return (include ? "include=" : "exclude=") + pattern; }
    };
    const std::vector<Rule>& rules() const noexcept { return rules_; }

  private:
    struct Code {
        std::string key;
        std::size_t rule = 0;
        std::uint32_t condition = 0;
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
    };
    void read_code(std::string_view code);
    bool decide(const std::string& name, std::span<const AreaPlace> places, std::uint64_t counted);

    std::vector<Rule> rules_;
    std::vector<Code> code_;
    std::string error_;
};

} // namespace homing
