#include "areas/named.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>

namespace homing {
namespace {

struct Named {
    AreaEntry entry;
    std::unique_ptr<std::string> name;
};

struct Store {
    std::mutex mutex;
    std::vector<Named> areas;
    /// Names of areas that were forgotten: rows and reports may still point to them.
    std::vector<std::unique_ptr<std::string>> old_names;
    std::uint64_t generation = 0;
};

Store& store() {
    static Store* the_store = new Store; // never destroyed: used until the very end of the process
    return *the_store;
}
constinit std::atomic<std::uint64_t> version{0};

} // namespace

bool forget_named_area(Address start) {
    Store& s = store();
    const std::lock_guard lock(s.mutex);
    const auto at = std::find_if(s.areas.begin(), s.areas.end(),
                                 [start](const Named& named) { return named.entry.range.begin == start; });
    if (at == s.areas.end()) return false;
    s.old_names.push_back(std::move(at->name));
    s.areas.erase(at);
    version.fetch_add(1, std::memory_order_acq_rel);
    return true;
}

bool name_area(Range range, std::string_view name) {
    forget_named_area(range.begin);
    Store& s = store();
    const std::lock_guard lock(s.mutex);
    if (s.areas.size() >= most_named_areas) return false;
    Named named;
    named.name = std::make_unique<std::string>(name);
    named.entry.range = range;
    named.entry.kind = AreaKind::named;
    named.entry.generation = ~std::uint64_t{0} - ++s.generation; // never the registry's
    named.entry.name = named.name->c_str();
    s.areas.push_back(std::move(named));
    version.fetch_add(1, std::memory_order_acq_rel);
    return true;
}

void named_areas(std::vector<AreaEntry>& out) {
    Store& s = store();
    const std::lock_guard lock(s.mutex);
    for (const Named& named : s.areas)
        out.push_back(named.entry);
}

std::uint64_t named_areas_version() noexcept { return version.load(std::memory_order_acquire); }

} // namespace homing
