// The header of a record file: a line that names the format, and JSON that describes the rows and the
// process.
#include "record/header.hpp"

#include "base/pages.hpp"
#include "base/raw_calls.hpp"
#include "record/rank.hpp"
#include "record/rows.hpp"
#include "version.hpp"

#include <charconv>
#include <cstring>
#include <ctime>
#include <sys/utsname.h>

namespace homing::record {
namespace {

/// Length of the valid UTF-8 sequence at the start of `text`, 0 where there is none.
std::size_t utf8_length(std::string_view text) noexcept {
    const auto byte = [text](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    const unsigned char first = byte(0);
    std::size_t length = 0;
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first <= 0xdf) length = 2;
    if (first >= 0xe0 && first <= 0xef) length = 3;
    if (first >= 0xf0 && first <= 0xf4) length = 4;
    if (length == 0 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return 0;
    }
    // Overlong forms, surrogates, and what is beyond Unicode.
    if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
        (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f)) {
        return 0;
    }
    return length;
}

/// JSON into a buffer of fixed size. What does not fit is cut, and full() says so.
class Writer {
  public:
    Writer(char* begin, std::size_t bytes) noexcept : begin_(begin), at_(begin), end_(begin + bytes) {}

    void put(std::string_view text) noexcept {
        if (text.size() > left()) {
            full_ = true;
            return;
        }
        std::memcpy(at_, text.data(), text.size());
        at_ += text.size();
    }

    void number(unsigned long long value) noexcept {
        char digits[24];
        const auto result = std::to_chars(digits, digits + sizeof digits, value);
        put({digits, static_cast<std::size_t>(result.ptr - digits)});
    }

    void number_or_null(int value) noexcept {
        if (value < 0)
            put("null");
        else
            number(static_cast<unsigned long long>(value));
    }

    /// Bytes that are no UTF-8 become lone surrogates, as Python's "surrogateescape" has them.
    void string(std::string_view text) noexcept {
        put("\"");
        while (!text.empty()) {
            const auto byte = static_cast<unsigned char>(text[0]);
            const std::size_t length = utf8_length(text);
            if (byte == '"' || byte == '\\') {
                put("\\");
                put(text.substr(0, 1));
            } else if (byte < 0x20 || length == 0) {
                constexpr char hex[] = "0123456789abcdef";
                const char escape[] = {'\\',           'u',           length ? '0' : 'd', length ? '0' : 'c',
                                       hex[byte >> 4], hex[byte & 15]};
                put({escape, sizeof escape});
            } else {
                put(text.substr(0, length));
            }
            text.remove_prefix(length ? length : 1);
        }
        put("\"");
    }

    void field(const char* name, const char* type, std::size_t length, std::size_t offset,
               bool first) noexcept {
        put(first ? "[" : ",[");
        string(name);
        put(",");
        string(type);
        put(",");
        number(length);
        put(",");
        number(offset);
        put("]");
    }

    std::size_t used() const noexcept { return static_cast<std::size_t>(at_ - begin_); }
    std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - at_); }
    bool full() const noexcept { return full_; }
    void cut(std::size_t used) noexcept {
        at_ = begin_ + used;
        full_ = false;
    }

  private:
    char* begin_;
    char* at_;
    char* end_;
    bool full_ = false;
};

void write_rows(Writer& out) noexcept {
    bool first_row = true;
#define HOMING_FIELD(type, member)                                                                           \
    out.field(#member, #type, 1, offsetof(Row, member), first);                                              \
    first = false;
#define HOMING_ARRAY(type, member, length)                                                                   \
    out.field(#member, #type, length, offsetof(Row, member), first);                                         \
    first = false;
#define HOMING_ROW(number, label, fields)                                                                    \
    {                                                                                                        \
        using Row = label##_row;                                                                             \
        bool first = true;                                                                                   \
        if (!first_row) out.put(",");                                                                        \
        first_row = false;                                                                                   \
        out.put("\"" #label "\":{\"kind\":" #number ",\"fields\":[");                                        \
        fields out.put("]}");                                                                                \
    }
    HOMING_ROWS(HOMING_ROW, HOMING_FIELD, HOMING_ARRAY)
#undef HOMING_ROW
#undef HOMING_ARRAY
#undef HOMING_FIELD
}

/// The command line; as many arguments as fit, and whether all did.
void write_arguments(Writer& out) noexcept {
    static char line[4096]; // written once; the thread may have little stack
    const long length = raw::read_file("/proc/self/cmdline", line, sizeof line);
    bool truncated = length >= static_cast<long>(sizeof line) - 1;
    out.put("\"arguments\":[");
    constexpr std::size_t reserve = 512; // for what follows
    for (long at = 0; at < length;) {
        const std::string_view argument(line + at);
        const std::size_t before = out.used();
        if (at > 0) out.put(",");
        out.string(argument);
        if (out.full() || out.left() < reserve) {
            out.cut(before);
            truncated = true;
            break;
        }
        at += static_cast<long>(argument.size()) + 1;
    }
    out.put("],\"arguments_truncated\":");
    out.put(truncated ? "true" : "false");
}

} // namespace

bool write_header(char* header, std::size_t bytes) noexcept {
    Writer out(header, bytes - 1); // the padding has at least one zero
    out.put(header_line);
    out.put("{\"format\":1,\"row_bytes\":");
    out.number(row_bytes);
    out.put(",\"header_bytes\":");
    out.number(header_bytes);
    out.put(",\"page_bytes\":");
    out.number(page_bytes());
    out.put(",\"homing\":");
    out.string(version_text);
    out.put(",\"pid\":");
    out.number(static_cast<unsigned long long>(raw::process_id()));
    out.put(",\"rank\":");
    const Task task = process_task();
    out.number_or_null(task.rank);
    out.put(",\"ranks\":");
    out.number_or_null(task.size);
    timespec time{};
    ::clock_gettime(CLOCK_REALTIME, &time);
    out.put(",\"start\":");
    out.number(static_cast<unsigned long long>(time.tv_sec));
    out.put(".");
    char microseconds[] = "000000";
    for (long left = time.tv_nsec / 1000, i = 5; i >= 0; --i, left /= 10) {
        microseconds[i] = static_cast<char>('0' + left % 10);
    }
    out.put(microseconds);
    utsname system{};
    ::uname(&system);
    out.put(",\"host\":");
    out.string(system.nodename);
    out.put(",\"rows\":{");
    write_rows(out);
    out.put("},\"program\":");
    static char path[4096];
    const long length = raw::call(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, sizeof path);
    out.string({path, length > 0 ? static_cast<std::size_t>(length) : 0});
    out.put(",");
    write_arguments(out);
    out.put("}\n");
    return !out.full();
}

} // namespace homing::record
