// The record file: read back as any reader would, from the bytes and the JSON of its header alone.
#include "record/header.hpp"
#include "record/rank.hpp"
#include "record/record.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <rapidcheck.h>
#include <set>
#include <sstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace homing::record_tests {
namespace {

namespace record = homing::record;
namespace fs = std::filesystem;

struct RecordFile {
    std::string json;
    std::vector<std::string> rows; ///< those in use, with their kind in the first four bytes
    std::size_t unused = 0;

    explicit RecordFile(const fs::path& path) {
        std::ifstream in(path, std::ios::binary);
        std::stringstream all;
        all << in.rdbuf();
        const std::string bytes = all.str();
        EXPECT_GE(bytes.size(), record::header_bytes);
        EXPECT_EQ(bytes.substr(0, record::header_line.size()), record::header_line);
        json = bytes.substr(record::header_line.size(), bytes.find('\0') - record::header_line.size());
        for (std::size_t at = record::header_bytes; at + record::row_bytes <= bytes.size();
             at += record::row_bytes) {
            rows.push_back(bytes.substr(at, record::row_bytes));
            if (kind(rows.back()) == 0) {
                rows.pop_back();
                ++unused;
            }
        }
    }

    static std::uint32_t kind(const std::string& row) {
        std::uint32_t value = 0;
        std::memcpy(&value, row.data(), sizeof value);
        return value;
    }

    template <class Row> std::vector<Row> all() const {
        std::vector<Row> found;
        for (const std::string& bytes : rows) {
            if (kind(bytes) != Row{}.row) continue;
            Row row;
            std::memcpy(&row, bytes.data(), sizeof row);
            found.push_back(row);
        }
        return found;
    }

    std::map<std::uint32_t, std::string> texts() const {
        std::map<std::uint32_t, std::string> found;
        for (const auto& row : all<record::text_row>()) {
            std::string& text = found[row.id];
            EXPECT_EQ(text.size(), row.offset);
            text.append(row.bytes, std::min<std::size_t>(sizeof row.bytes, row.total - row.offset));
        }
        return found;
    }
};

class Record : public ::testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/homing-record-XXXXXX";
        ASSERT_NE(::mkdtemp(name), nullptr);
        folder = name;
    }
    void TearDown() override {
        record::abandon();
        fs::remove_all(folder);
    }
    fs::path folder;
};

TEST_F(Record, HeaderDescribesEveryRow) {
    ASSERT_TRUE(record::open((folder / "before.homing").c_str())); // takes in what other tests have said
    record::close();
    const fs::path path = folder / "a.homing";
    ASSERT_TRUE(record::open(path.c_str()));
    record::close();
    const RecordFile file(path);
    EXPECT_EQ(fs::file_size(path), record::header_bytes + record::row_bytes); // the row of progress
    EXPECT_NE(file.json.find("\"area\":{\"kind\":6,"), std::string::npos) << file.json;
    std::ostringstream field;
    field << "[\"origin_object\",\"u32\",4," << offsetof(record::area_row, origin_object) << "]";
    EXPECT_NE(file.json.find(field.str()), std::string::npos) << file.json;
    EXPECT_NE(file.json.find("\"pid\":" + std::to_string(::getpid()) + ","), std::string::npos);
    EXPECT_EQ(file.json.substr(file.json.size() - 2), "}\n");
}

TEST_F(Record, RowsAndTextsComeBack) {
    const fs::path path = folder / "a.homing";
    ASSERT_TRUE(record::open(path.c_str()));
    const std::string long_name(1000, 'x');
    record::area_row area;
    area.id = 7;
    area.name = record::text(long_name);
    area.object = record::text("a.out");
    area.origin[3] = 0x1234;
    record::append(area);
    EXPECT_EQ(record::text(long_name), area.name);
    EXPECT_NE(area.name, area.object);
    EXPECT_EQ(record::text(""), 0u);
    record::fact("source", "windows");
    record::close();
    EXPECT_FALSE(record::is_open());

    const RecordFile file(path);
    const auto texts = file.texts();
    const auto areas = file.all<record::area_row>();
    ASSERT_EQ(areas.size(), 1u);
    EXPECT_EQ(areas[0].id, 7u);
    EXPECT_EQ(areas[0].origin[3], 0x1234u);
    EXPECT_EQ(texts.at(areas[0].name), long_name);
    EXPECT_EQ(texts.at(areas[0].object), "a.out");
    const auto facts = file.all<record::fact_row>();
    ASSERT_EQ(facts.size(), 1u);
    EXPECT_EQ(texts.at(facts[0].key), "source");
    EXPECT_EQ(texts.at(facts[0].value), "windows");
    EXPECT_EQ(file.unused, 0u) << "close trims what was not used";
}

TEST_F(Record, AnyTextSurvives) {
    int number = 0;
    EXPECT_TRUE(rc::check("texts come back as they went in, and equal ones once", [&] {
        const fs::path path = folder / std::to_string(number++);
        RC_ASSERT(record::open(path.c_str()));
        const auto texts = *rc::gen::container<std::vector<std::string>>(rc::gen::arbitrary<std::string>());
        std::vector<std::uint32_t> ids;
        for (const std::string& text : texts)
            ids.push_back(record::text(text));
        record::close();
        const auto found = RecordFile(path).texts();
        for (std::size_t i = 0; i < texts.size(); ++i) {
            if (texts[i].empty()) {
                RC_ASSERT(ids[i] == 0u);
            } else {
                RC_ASSERT(found.at(ids[i]) == texts[i]);
            }
        }
        RC_ASSERT(found.size() == std::set<std::string>(texts.begin(), texts.end()).size() -
                                      (std::count(texts.begin(), texts.end(), "") ? 1 : 0));
        fs::remove(path);
    }));
}

TEST_F(Record, GrowsBeyondAPieceAndSurvivesAChangeOfDirectory) {
    const fs::path before = fs::current_path();
    fs::current_path(folder);
    ASSERT_TRUE(record::open("relative.homing"));
    fs::current_path("/");
    constexpr unsigned count = 20'000; // 2.5 MB
    for (unsigned i = 0; i < count; ++i) {
        record::refusal_row row;
        row.area = i;
        record::append(row);
    }
    record::close();
    fs::current_path(before);
    const auto rows = RecordFile(folder / "relative.homing").all<record::refusal_row>();
    ASSERT_EQ(rows.size(), count);
    for (unsigned i = 0; i < count; ++i)
        ASSERT_EQ(rows[i].area, i);
}

TEST_F(Record, IsReadableAfterAKill) {
    const fs::path path = folder / "killed.homing";
    const pid_t child = ::fork();
    if (child == 0) {
        record::abandon();
        if (!record::open(path.c_str())) ::_exit(1);
        record::message(record::Level::warning, "about to die");
        for (int i = 0; i < 3; ++i)
            record::append(record::iteration_row{});
        ::raise(SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    const RecordFile file(path);
    EXPECT_EQ(file.all<record::iteration_row>().size(), 3u);
    EXPECT_EQ(file.all<record::message_row>().size(), 1u);
    EXPECT_GT(file.unused, 0u);
}

TEST_F(Record, EqualMessagesAreCounted) {
    const fs::path path = folder / "m.homing";
    ASSERT_TRUE(record::open(path.c_str()));
    const auto before = record::messages(record::Level::not_done);
    for (int i = 0; i < 1000; ++i)
        record::message(record::Level::not_done, "node 2 is full");
    record::message(record::Level::not_done, "the policy could not be read");
    EXPECT_EQ(record::messages(record::Level::not_done), before + 1001);
    record::close();
    const RecordFile file(path);
    const auto texts = file.texts();
    std::map<std::string, std::uint32_t> last;
    for (const auto& row : file.all<record::message_row>())
        last[texts.at(row.text)] = row.repeats;
    EXPECT_EQ(last.at("node 2 is full"), 1000u);
    EXPECT_EQ(last.at("the policy could not be read"), 1u);
    EXPECT_LT(file.all<record::message_row>().size(), 20u);
}

TEST_F(Record, WhatWasSaidBeforeItWasOpenIsInIt) {
    const std::string words = "upmlib_memrefcnt registers nothing";
    for (int i = 0; i < 3; ++i)
        record::message(record::Level::warning, words);
    for (int i = 0; i < 100; ++i)
        record::message(record::Level::note, "early " + std::to_string(i) + std::string(1000, '.'));
    for (const char* name : {"first.homing", "second.homing"}) {
        const fs::path path = folder / name;
        ASSERT_TRUE(record::open(path.c_str()));
        record::close();
        const RecordFile file(path);
        const auto texts = file.texts();
        const auto rows = file.all<record::message_row>();
        const auto row = std::ranges::find_if(rows, [&](auto& one) { return texts.at(one.text) == words; });
        ASSERT_EQ(row != rows.end(), std::string(name) == "first.homing") << "once";
        if (row == rows.end()) continue;
        EXPECT_EQ(row->repeats, 3u);
        EXPECT_EQ(row->level, static_cast<std::uint32_t>(record::Level::warning));
    }
}

TEST_F(Record, EndlessNewMessagesAreBounded) {
    const fs::path path = folder / "m.homing";
    ASSERT_TRUE(record::open(path.c_str()));
    for (int i = 0; i < 5000; ++i)
        record::message(record::Level::note, "message " + std::to_string(i));
    record::close();
    EXPECT_LT(RecordFile(path).all<record::message_row>().size(), 300u);
}

TEST_F(Record, WithoutAFileMessagesStillCount) {
    EXPECT_FALSE(record::open(""));
    EXPECT_FALSE(record::open(nullptr));
    const auto before = record::messages(record::Level::note);
    record::message(record::Level::note, "nobody reads this");
    EXPECT_EQ(record::messages(record::Level::note), before + 1);
    EXPECT_EQ(record::text("nothing"), 0u);
    record::append(record::end_row{});
    record::close();
}

TEST_F(Record, NameHasProcessAndRank) {
    ::unsetenv("PMIX_RANK");
    ::unsetenv("OMPI_COMM_WORLD_RANK");
    ::setenv("SLURM_PROCID", "12", 1);
    ASSERT_TRUE(record::open((folder / "r%r-p%p-100%%").c_str()));
    record::close();
    ::unsetenv("SLURM_PROCID");
    const fs::path path = folder / ("r12-p" + std::to_string(::getpid()) + "-100%");
    ASSERT_TRUE(fs::exists(path));
    EXPECT_NE(RecordFile(path).json.find("\"rank\":12,"), std::string::npos);
    EXPECT_EQ(record::process_rank(), -1);
}

TEST_F(Record, NeverReplacesWhatIsNotARecord) {
    const fs::path data = folder / "thesis.tex";
    std::ofstream(data) << "years of work";
    EXPECT_FALSE(record::open(data.c_str()));
    EXPECT_EQ(fs::file_size(data), 13u);
    EXPECT_FALSE(record::open("/dev/null"));
    EXPECT_TRUE(fs::exists("/dev/null"));
    EXPECT_FALSE(record::open((folder / "no such folder" / "x").c_str()));
    const fs::path empty = folder / "empty";
    std::ofstream{empty};
    EXPECT_TRUE(record::open(empty.c_str()));
    record::close();
    EXPECT_TRUE(record::open(empty.c_str())) << "a record may be replaced";
}

TEST_F(Record, AnotherProcessOfThatNameDoesNotDisturb) {
    const fs::path path = folder / "same.homing";
    ASSERT_TRUE(record::open(path.c_str()));
    const pid_t child = ::fork();
    if (child == 0) {
        record::abandon();
        const bool done = record::open(path.c_str());
        for (int i = 0; i < 5; ++i)
            record::append(record::end_row{});
        record::close();
        ::_exit(done ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    // Our file has lost its name. Rows go on until it would have to grow, and no other file is written into.
    for (int i = 0; i < 20'000; ++i)
        record::append(record::node_row{});
    record::close();
    const RecordFile file(path);
    EXPECT_EQ(file.all<record::end_row>().size(), 5u);
    EXPECT_TRUE(file.all<record::node_row>().empty());
}

TEST_F(Record, AChildDoesNotWriteIntoTheParentsRecord) {
    const fs::path path = folder / "parent.homing";
    ASSERT_TRUE(record::open(path.c_str()));
    const pid_t child = ::fork();
    if (child == 0) {
        record::abandon();
        record::append(record::end_row{});
        ::_exit(record::is_open() ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    record::append(record::node_row{});
    record::close();
    const RecordFile file(path);
    EXPECT_TRUE(file.all<record::end_row>().empty());
    EXPECT_EQ(file.all<record::node_row>().size(), 1u);
}

TEST_F(Record, AChildThatNobodyToldLeavesTheParentsRecordAlone) {
    const fs::path path = folder / "parent.homing";
    ASSERT_TRUE(record::open(path.c_str()));
    const pid_t child = ::fork();
    if (child == 0) { // and no record::abandon(), as after _Fork() or clone()
        record::append(record::end_row{});
        record::message(record::Level::note, "not the parent's");
        const auto id = record::text("nor this");
        record::close();
        ::_exit(static_cast<int>(id));
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    // Beyond the page in which a file that was trimmed would end.
    for (int i = 0; i < 1000; ++i)
        record::append(record::node_row{});
    record::close();
    const RecordFile file(path);
    EXPECT_TRUE(file.all<record::end_row>().empty());
    EXPECT_TRUE(file.all<record::message_row>().empty());
    EXPECT_EQ(file.all<record::node_row>().size(), 1000u);
}

TEST_F(Record, AFileSizeLimitBringsNoSignal) {
    const pid_t child = ::fork();
    if (child == 0) {
        record::abandon();
        const rlimit limit{1536 << 10, 1536 << 10};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        if (!record::open((folder / "small").c_str())) ::_exit(1);
        for (int i = 0; i < 20'000; ++i)
            record::append(record::node_row{});
        ::_exit(record::is_open() ? 2 : 0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(RecordFile(folder / "small").all<record::node_row>().size(),
              ((1u << 20) - record::header_bytes) / record::row_bytes - 1); // one is that of progress
}

TEST_F(Record, WithoutRoomAnEmptyFileSaysSo) {
    const pid_t child = ::fork();
    if (child == 0) {
        record::abandon();
        const rlimit limit{512 << 10, 512 << 10};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        ::_exit(record::open((folder / "none").c_str()) ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    ASSERT_TRUE(fs::exists(folder / "none"));
    EXPECT_EQ(fs::file_size(folder / "none"), 0u);
    EXPECT_TRUE(record::open((folder / "none").c_str())) << "the next one may take its place";
}

TEST_F(Record, LeavesNoDescriptorAndErrnoAlone) {
    const auto descriptors = [] {
        return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
    };
    const auto before = descriptors();
    errno = 77;
    ASSERT_TRUE(record::open((folder / "e").c_str()));
    EXPECT_EQ(descriptors(), before);
    record::message(record::Level::note, "hello");
    record::open("/no/such/folder/file");
    record::close();
    EXPECT_EQ(errno, 77);
}

TEST_F(Record, ThreadsDoNotMixRows) {
    const fs::path path = folder / "t";
    ASSERT_TRUE(record::open(path.c_str()));
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
        threads.emplace_back([t] {
            for (unsigned i = 0; i < 500; ++i) {
                record::move_row row;
                row.area = t;
                row.wanted = i;
                record::append(row);
                record::fact("thread", std::to_string(t));
            }
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    record::close();
    const RecordFile file(path);
    std::map<std::uint32_t, std::uint64_t> next;
    for (const auto& row : file.all<record::move_row>())
        EXPECT_EQ(row.wanted, next[row.area]++);
    for (unsigned t = 0; t < 4; ++t)
        EXPECT_EQ(next[t], 500u);
    EXPECT_EQ(file.texts().size(), 5u);
}

} // namespace
} // namespace homing::record_tests
