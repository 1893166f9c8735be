#include "areas/code_places.hpp"

#include "areas/proc_maps.hpp"
#include "base/raw_calls.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/stat.h>

namespace homing {
namespace {

/// What is told of an object while the loader's lock is held.
struct Seen {
    Address base = 0;
    std::vector<Range> segments;
    std::string name; ///< the loader's: empty for the program itself
    std::string build_id;
};

constexpr std::size_t file_page = 4096; ///< offsets count from here whatever the machine's pages are

int collect(dl_phdr_info* info, std::size_t, void* data) {
    auto& objects = *static_cast<std::vector<Seen>*>(data);
    Seen object;
    object.base = ~Address{0};
    std::vector<Range> notes;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)& header = info->dlpi_phdr[i];
        const Address begin = info->dlpi_addr + header.p_vaddr;
        const Range range{begin, begin + header.p_memsz};
        if (range.end < range.begin) continue;
        if (header.p_type == PT_LOAD) {
            object.segments.push_back(range);
            object.base = std::min(object.base, align_down(begin, file_page));
        }
        if (header.p_type == PT_NOTE)
            notes.push_back({begin, begin + std::min(header.p_filesz, header.p_memsz)});
    }
    // A note that no segment loads (some linkers leave the header of one that was stripped) is not there.
    std::erase_if(notes, [&object](Range note) {
        return std::none_of(object.segments.begin(), object.segments.end(),
                            [note](Range one) { return one.begin <= note.begin && note.end <= one.end; });
    });
    object.build_id = build_id(notes);
    object.name = info->dlpi_name ? info->dlpi_name : "";
    objects.push_back(std::move(object));
    return 0;
}

/// What the kernel says of the files of some mappings.
struct MappedFile {
    std::string path;
    std::uint64_t inode = 0;
};

/// Of each object the file that its first page comes from; nothing where that cannot be seen.
std::vector<MappedFile> mapped_files(const std::vector<Seen>& objects) {
    std::vector<MappedFile> files(objects.size());
    std::vector<char> buffer(std::size_t{1} << 14);
    each_mapping("/proc/self/maps", buffer, [&](const Mapping& mapping) {
        if (mapping.inode == 0) return;
        for (std::size_t i = 0; i < objects.size(); ++i)
            if (mapping.range.contains(objects[i].base))
                files[i] = {std::string(mapping.name), mapping.inode};
    });
    return files;
}

/// An object without a build id: its file's size and time of change tell one build from another. Only where
/// the file at the path is the one that is mapped.
std::string file_identity(const char* path, std::uint64_t inode) {
    struct stat file{};
    if (raw::status(path, file) != 0 || (inode != 0 && file.st_ino != inode)) return {};
    const auto nanoseconds =
        static_cast<std::int64_t>(file.st_mtim.tv_sec) * 1'000'000'000 + file.st_mtim.tv_nsec;
    return "file " + std::to_string(file.st_size) + " " + std::to_string(nanoseconds);
}

LoadedFile loaded_file(const Seen& object, const MappedFile& mapped) {
    LoadedFile file;
    const bool program = object.name.empty();
    if (program) {
        file.path.resize(PATH_MAX);
        const long length =
            raw::call(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", file.path.data(), file.path.size());
        file.path.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
    } else {
        file.path = mapped.path;
    }
    constexpr std::string_view deleted = " (deleted)";
    const bool gone = file.path.ends_with(deleted);
    if (gone) file.path.resize(file.path.size() - deleted.size());
    if (file.path.empty()) file.path = program ? "[main program]" : object.name;
    if (!object.build_id.empty())
        file.identity = "build-id " + object.build_id;
    else if (program) // its file can be asked for even where it has another name by now, or none
        file.identity = file_identity("/proc/self/exe", 0);
    else if (!gone)
        file.identity = file_identity(file.path.c_str(), mapped.inode);
    return file;
}

} // namespace

std::string build_id(const std::vector<Range>& notes) {
    for (const Range& range : notes) {
        Address at = range.begin;
        while (range.end - at >= sizeof(ElfW(Nhdr))) {
            ElfW(Nhdr) note;
            std::memcpy(&note, reinterpret_cast<const void*>(at), sizeof note);
            at += sizeof note;
            // Names and descriptions fill whole words; sums of 32-bit numbers do not overflow here.
            const std::uint64_t name = align_up(std::uint64_t{note.n_namesz}, 4);
            const std::uint64_t description = align_up(std::uint64_t{note.n_descsz}, 4);
            if (name + description > range.end - at) break;
            const auto* text = reinterpret_cast<const char*>(at);
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(text, "GNU", 4) == 0) {
                constexpr char digits[] = "0123456789abcdef";
                std::string id;
                for (std::uint64_t i = 0; i < note.n_descsz; ++i) {
                    const auto byte = static_cast<unsigned char>(text[name + i]);
                    id += {digits[byte >> 4], digits[byte & 15]};
                }
                return id;
            }
            at += name + description;
        }
    }
    return {};
}

void CodePlaces::forget() {
    if (!read_) return;
    read_ = false;
    symbols_.clear();
    const std::vector<Object> before = std::move(objects_);
    objects_.clear();
    read();
    for (const Object& object : before) {
        const auto same = [&object](const Object& other) {
            return other.base == object.base && other.file == object.file;
        };
        std::erase_if(gone_, same);
        if (std::none_of(objects_.begin(), objects_.end(), same)) gone_.insert(gone_.begin(), object);
    }
}

void CodePlaces::read() {
    read_ = true;
    std::vector<Seen> seen;
    ::dl_iterate_phdr(collect, &seen);
    const std::vector<MappedFile> mapped = mapped_files(seen);
    for (std::size_t i = 0; i < seen.size(); ++i) {
        LoadedFile file = loaded_file(seen[i], mapped[i]);
        const auto known = std::find_if(files_.begin(), files_.end(), [&](const auto& one) {
            return one->path == file.path && one->identity == file.identity;
        });
        Object object{seen[i].base, std::move(seen[i].segments), nullptr};
        if (known != files_.end())
            object.file = known->get();
        else
            object.file = files_.emplace_back(std::make_unique<LoadedFile>(std::move(file))).get();
        objects_.push_back(std::move(object));
    }
}

const CodePlaces::Object* CodePlaces::find(const std::vector<Object>& objects, Address address) {
    const auto found = std::find_if(objects.begin(), objects.end(), [address](const Object& object) {
        return std::any_of(object.segments.begin(), object.segments.end(),
                           [address](Range segment) { return segment.contains(address); });
    });
    return found == objects.end() ? nullptr : &*found;
}

const CodePlaces::Object* CodePlaces::find(Address address) {
    if (!read_) read();
    const Object* loaded = find(objects_, address);
    return loaded ? loaded : find(gone_, address);
}

ObjectPlace CodePlaces::at(Address address) {
    const Object* object = find(address);
    return object ? ObjectPlace{object->file, address - object->base} : ObjectPlace{};
}

const std::string& CodePlaces::symbol(Address address) {
    const auto [at, fresh] = symbols_.try_emplace(address);
    Dl_info info{};
    if (fresh && ::dladdr(reinterpret_cast<void*>(address), &info) && info.dli_sname)
        at->second = info.dli_sname;
    return at->second;
}

} // namespace homing
