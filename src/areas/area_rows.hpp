// What areas are called, and the rows that say so: where code and data lie, in which loaded object. Engine's
// thread only.
#pragma once

#include "areas/area_filter.hpp"
#include "areas/code_places.hpp"
#include "areas/watched_area.hpp"

#include <set>
#include <string>
#include <vector>

namespace homing {

class AreaRows {
  public:
    /// Where an address of code or of static data lies, as rows have it; its object gets a row of its own at
    /// the first time.
    ObjectPlace place(Address address);
    const std::string& symbol(Address address) { return places_.symbol(address); }
    /// Its symbol, or the code that allocated it.
    std::string name_of(const AreaEntry& entry);
    /// What rules by lines of source go by: nothing where there are none.
    std::vector<AreaPlace> places_of(const AreaEntry& entry);
    /// Objects were loaded or unloaded.
    void forget() { places_.forget(); }

    /// It is watched from now on; also where it came back or has other granules.
    void begins(const WatchedArea& area, double now);
    /// The return addresses that the area's own row has no room for.
    void frames(const WatchedArea& area);
    void ends(const WatchedArea& area, double now) const;

  private:
    std::string heap_name(const AreaEntry& entry);
    template <class Row> void put(Row& row, std::size_t at, Address frame);

    CodePlaces places_;
    std::set<const LoadedFile*> recorded_files_;
};

} // namespace homing
