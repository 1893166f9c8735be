// Where an address lies: in which loaded object, as a file that can be found again after the run, and at
// which offset of it. Driver of the engine only; never from a hook.
#pragma once

#include "areas/areas.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace homing {

/// One object as it was loaded.
struct LoadedFile {
    std::string path; ///< of its file, absolute where the kernel tells it
    /// Tells one build of the file from another: "build-id HEX"; where there is none "file BYTES NANOSECONDS"
    /// (size, and time of change since 1970); empty: not known.
    std::string identity;
};

struct ObjectPlace {
    const LoadedFile* file = nullptr; ///< lives as long as the CodePlaces; null: in no object
    std::uint64_t offset = 0;         ///< from the object's first mapped page
};

/// Places of addresses; each object and each address is looked up once.
class CodePlaces {
  public:
    ObjectPlace at(Address address);
    /// The exported function that an address of code lies in; empty where there is none.
    const std::string& symbol(Address address);
    /// Objects came or went: addresses may mean something else from here on. Those of an object that went
    /// mean it on, until another has them.
    void forget();

  private:
    struct Object {
        Address base = 0; ///< of the first mapped page
        std::vector<Range> segments;
        const LoadedFile* file = nullptr;
    };
    const Object* find(Address address);
    static const Object* find(const std::vector<Object>& objects, Address address);
    void read();

    bool read_ = false; ///< objects_ is what is loaded now
    std::vector<Object> objects_;
    std::vector<Object> gone_;                       ///< the newest first
    std::vector<std::unique_ptr<LoadedFile>> files_; ///< of all objects that were ever seen
    std::unordered_map<Address, std::string> symbols_;
};

/// The build id in the notes of an object (program headers of kind PT_NOTE), in hexadecimal digits; empty
/// where there is none. `notes`: memory that can be read.
std::string build_id(const std::vector<Range>& notes);

} // namespace homing
