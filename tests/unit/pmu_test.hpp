// What tests of the PMU as a source share: recorded trees of sysfs, and records as Arm's SPE writes them.
#pragma once

#include "sources/pmu_events.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

namespace homing {

/// A recorded tree, unpacked.
class RecordedTree {
  public:
    explicit RecordedTree(const std::string& name) {
        root_ = std::filesystem::path(::testing::TempDir()) / "sysfs.";
        root_ += name;
        root_ += ".";
        root_ += std::to_string(::getpid());
        std::filesystem::remove_all(root_);
        std::ifstream in(std::filesystem::path(HOMING_TEST_DATA) / "sysfs" / (name + ".txt"));
        EXPECT_TRUE(in) << name;
        for (std::string line; std::getline(in, line);) {
            if (line.empty() || line[0] == '#') continue;
            const std::size_t colon = line.find(": ");
            write(line.substr(0, colon), line.substr(colon + 2));
        }
    }
    ~RecordedTree() { std::filesystem::remove_all(root_); }
    void write(const std::string& path, const std::string& content) {
        std::filesystem::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path) << content << "\n";
    }
    void remove(const std::string& path) { std::filesystem::remove_all(root_ / path); }
    std::string path() const { return root_; }
    PmuDescription describe() const { return describe_pmu(root_); }

  private:
    std::filesystem::path root_;
};

/// Writes SPE packets as the hardware does.
struct SpeWriter {
    std::vector<std::uint8_t> bytes;
    void put(std::initializer_list<unsigned> header, std::uint64_t payload, std::size_t size) {
        for (unsigned h : header)
            bytes.push_back(static_cast<std::uint8_t>(h));
        for (std::size_t i = 0; i < size; ++i)
            bytes.push_back(static_cast<std::uint8_t>(payload >> 8 * i));
    }
    void record(std::uint64_t address, bool store, std::uint64_t events, int source, bool timestamp) {
        put({0xb0}, 0x8000000000401234, 8);                  // address 0: the instruction
        put({0x65}, 77, 4);                                  // context
        put({0x49}, store ? 1 : 0, 1);                       // operation: load or store
        put({0x52}, events, 2);                              // events, two bytes
        put({0x99}, 10, 2);                                  // counter 1: issue latency
        put({0x98}, 222, 2);                                 // counter 0: total latency
        put({0xb2}, address | std::uint64_t{0x2a} << 56, 8); // address 2: data, with a tag
        if (source >= 0) put({0x43}, static_cast<std::uint64_t>(source), 1);
        if (timestamp)
            put({0x71}, 123456789, 8);
        else
            put({0x01}, 0, 0);
        while (bytes.size() % 64)
            bytes.push_back(0); // records are padded
    }
};

} // namespace homing
