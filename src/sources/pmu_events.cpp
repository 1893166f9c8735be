#include "sources/pmu_events.hpp"

#include "base/raw_calls.hpp"

#include <algorithm>
#include <charconv>

namespace homing {
namespace {

/// The content of a small file without the newline; false where there is none.
bool read_text(const std::string& path, std::string& text) {
    text.resize(4096);
    const long length = raw::read_file(path.c_str(), text.data(), text.size());
    if (length < 0) return false;
    text.resize(static_cast<std::size_t>(length));
    while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
        text.pop_back();
    return true;
}

bool exists(const std::string& path) {
    std::string text;
    return read_text(path, text);
}

template <class Number> bool parse_number(std::string_view text, Number& value) {
    int base = 10;
    if (text.starts_with("0x") || text.starts_with("0X")) {
        text.remove_prefix(2);
        base = 16;
    }
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

template <class Number> Number number_in(const std::string& path, Number otherwise) {
    std::string text;
    Number value{};
    return read_text(path, text) && parse_number(std::string_view(text), value) ? value : otherwise;
}

/// Split at `separator` and call visit for each part until it returns false.
template <class Visit> bool each_part(std::string_view text, char separator, Visit&& visit) {
    while (true) {
        const std::size_t at = text.find(separator);
        if (!visit(text.substr(0, at))) return false;
        if (at == std::string_view::npos) return true;
        text.remove_prefix(at + 1);
    }
}

/// Loads that took long, and stores, of one core PMU. Primes as periods, so that loops do not fall in step
/// with them.
constexpr std::uint64_t loads_period = 10'007;
constexpr std::uint64_t stores_period = 1'000'003;
/// Micro-ops between two tags; with l3missonly all but the misses are dropped by the hardware, so more can be
/// tagged.
constexpr std::uint64_t ops_period = 1 << 20;
constexpr std::uint64_t misses_period = 1 << 16;
constexpr std::size_t spe_aux_bytes = 256 * 1024;

void add_pebs(const std::string& devices, const char* pmu, PmuDescription& description) {
    const std::string directory = devices + "/" + pmu;
    SamplerEvent base;
    base.type = number_in<std::uint32_t>(directory + "/type", ~0u);
    base.precise = std::min(number_in<int>(directory + "/caps/max_precise", 0), 3);
    base.weight = true;
    std::string terms;
    if (base.type == ~0u || !read_text(directory + "/events/mem-loads", terms)) return;
    if (base.precise == 0) {
        description.why_not = "the PMU takes no precise samples here (virtual machine?)";
        return;
    }
    PmuEvent loads{std::string(pmu) + "/mem-loads", base};
    loads.sampler.period = loads_period;
    std::string problem;
    if (!encode_terms(directory, terms, loads.sampler, problem)) {
        description.why_not = loads.name + ": " + problem;
        return;
    }
    std::string format;
    FormatField latency;
    if (read_text(directory + "/format/ldlat", format) && parse_format(format, latency)) {
        // The event's own threshold (3 cycles) lets nearly every load pass.
        put_field(latency, latency_threshold, loads.sampler);
    }
    if (read_text(directory + "/events/mem-loads-aux", terms)) {
        SamplerEvent leader = base;
        if (!encode_terms(directory, terms, leader, problem)) {
            description.why_not = std::string(pmu) + "/mem-loads-aux: " + problem;
            return;
        }
        loads.sampler.with_leader = true;
        loads.sampler.leader_config = leader.config;
    }
    description.kind = PmuKind::pebs;
    description.events.push_back(std::move(loads));

    PmuEvent stores{std::string(pmu) + "/mem-stores", base};
    stores.sampler.period = stores_period;
    stores.stores = true;
    if (read_text(directory + "/events/mem-stores", terms) &&
        encode_terms(directory, terms, stores.sampler, problem))
        description.events.push_back(std::move(stores));
}

void add_ibs(const std::string& devices, PmuDescription& description) {
    const std::string directory = devices + "/ibs_op";
    PmuEvent ops{"ibs_op", {}};
    ops.sampler.type = number_in<std::uint32_t>(directory + "/type", ~0u);
    if (ops.sampler.type == ~0u) return;
    ops.sampler.weight = true;
    const auto has = [&directory](const char* term) { return exists(directory + "/format/" + term); };
    std::string terms;
    const auto use = [&terms](const char* term) {
        terms += (terms.empty() ? "" : ",") + std::string(term) + "=1";
    };
    if (has("cnt_ctl")) use("cnt_ctl"); // count micro-ops, not cycles: stalls attract no samples
    const bool misses_only = has("l3missonly");
    if (misses_only) use("l3missonly");
    // Excluding the kernel is done in software by kernels that offer swfilt, and refused by others.
    ops.sampler.exclude_kernel = has("swfilt");
    if (ops.sampler.exclude_kernel) use("swfilt");
    std::string problem;
    if (!terms.empty() && !encode_terms(directory, terms, ops.sampler, problem)) {
        description.why_not = "ibs_op: " + problem;
        return;
    }
    ops.period_unit = ops.least_period = 16; // the lowest four bits of the counter do not exist
    ops.sampler.period = misses_only ? misses_period : ops_period;
    description.kind = PmuKind::ibs;
    description.events.push_back(std::move(ops));
}

void add_spe(const std::string& sysfs, const std::string& devices, PmuDescription& description) {
    const std::string directory = devices + "/arm_spe_0";
    PmuEvent records{"arm_spe_0", {}};
    records.sampler.type = number_in<std::uint32_t>(directory + "/type", ~0u);
    if (records.sampler.type == ~0u) return;
    std::string problem;
    std::string terms = "load_filter=1,store_filter=1,min_latency=" + std::to_string(latency_threshold);
    if (exists(directory + "/format/jitter")) terms += ",jitter=1";
    if (!encode_terms(directory, terms, records.sampler, problem)) {
        description.why_not = "arm_spe_0: " + problem;
        return;
    }
    records.period_unit = 256; // PMSIRR_EL1.INTERVAL begins at bit 8
    records.least_period =
        std::max<std::uint64_t>(256, number_in<std::uint64_t>(directory + "/caps/min_interval", 256));
    records.sampler.period = std::max(misses_period, align_up(records.least_period, records.period_unit));
    records.sampler.aux_pages = std::max<std::size_t>(1, spe_aux_bytes / page_bytes());
    description.kind = PmuKind::spe;
    description.events.push_back(std::move(records));

    // MIDR_EL1: implementer in bits 31-24, part in bits 15-4. N1, V1, N2, V2 share one encoding of data
    // sources.
    const auto midr =
        number_in<std::uint64_t>(sysfs + "/devices/system/cpu/cpu0/regs/identification/midr_el1", 0);
    const unsigned part = static_cast<unsigned>(midr >> 4 & 0xfff);
    description.neoverse_sources =
        (midr >> 24 & 0xff) == 0x41 && (part == 0xd0c || part == 0xd40 || part == 0xd49 || part == 0xd4f);
}

} // namespace

bool parse_format(std::string_view text, FormatField& field) {
    field = {};
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return false;
    const std::string_view word = text.substr(0, colon);
    if (word == "config")
        field.word = 0;
    else if (word == "config1")
        field.word = 1;
    else if (word == "config2")
        field.word = 2;
    else
        return false;
    return each_part(text.substr(colon + 1), ',', [&field](std::string_view part) {
        FormatField::Bits bits{};
        const std::size_t dash = part.find('-');
        if (!parse_number(part.substr(0, dash), bits.low)) return false;
        bits.high = bits.low;
        if (dash != std::string_view::npos && !parse_number(part.substr(dash + 1), bits.high)) return false;
        field.bits.push_back(bits);
        return bits.low <= bits.high && bits.high < 64;
    });
}

bool put_field(const FormatField& field, std::uint64_t value, SamplerEvent& event) {
    std::uint64_t& word = field.word == 0 ? event.config : field.word == 1 ? event.config1 : event.config2;
    std::uint64_t result = word;
    for (const FormatField::Bits& bits : field.bits) {
        const unsigned width = bits.high - bits.low + 1;
        const std::uint64_t mask = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
        result = (result & ~(mask << bits.low)) | (value & mask) << bits.low;
        value = width == 64 ? 0 : value >> width;
    }
    if (value != 0) return false;
    word = result;
    return true;
}

bool encode_terms(const std::string& directory, std::string_view terms, SamplerEvent& event,
                  std::string& problem) {
    return each_part(terms, ',', [&](std::string_view term) {
        const std::size_t equals = term.find('=');
        const std::string name(term.substr(0, equals));
        std::uint64_t value = 1;
        if (equals != std::string_view::npos && !parse_number(term.substr(equals + 1), value)) {
            problem = "\"" + std::string(term) + "\" has no number";
            return false;
        }
        std::string text;
        FormatField field;
        // Some kernels print raw words without a format of that name.
        if (name == "config" || name == "config1" || name == "config2")
            text = name + ":0-63";
        else if (name.empty() || name.find('/') != std::string::npos ||
                 !read_text(directory + "/format/" + name, text)) {
            problem = "the kernel tells no format of \"" + name + "\"";
            return false;
        }
        if (!parse_format(text, field)) {
            problem = "format \"" + text + "\" is not understood";
            return false;
        }
        if (!put_field(field, value, event)) {
            problem = "\"" + std::string(term) + "\" does not fit " + text;
            return false;
        }
        return true;
    });
}

PmuDescription describe_pmu(const std::string& sysfs) {
    const std::string devices = sysfs + "/bus/event_source/devices";
    PmuDescription description;
    for (const char* pmu : {"cpu", "cpu_core", "cpu_atom"})
        add_pebs(devices, pmu, description);
    if (description.kind == PmuKind::none) add_ibs(devices, description);
    if (description.kind == PmuKind::none) add_spe(sysfs, devices, description);
    if (description.kind != PmuKind::none) {
        description.why_not.clear();
        return description;
    }
    if (!description.why_not.empty()) return description;
    const bool core_pmu = exists(devices + "/cpu/type") || exists(devices + "/cpu_core/type") ||
                          exists(devices + "/armv8_pmuv3_0/type") || exists(devices + "/armv8_pmuv3/type");
    description.why_not = core_pmu ? "the PMU has no memory samples (PEBS, IBS or SPE)"
                                   : "no PMU in this machine (virtual machine?)";
    return description;
}

} // namespace homing
