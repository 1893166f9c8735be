// The launcher's end of the channel (record/channel.hpp): memory that every program of the run inherits.
// homing/channel.py is the same for Python.
#pragma once

#include <cstdint>
#include <string>

namespace homing::launcher {

class ChannelMemory {
  public:
    /// For a run whose HOMING_RECORD is `pattern`. Unusual where it cannot be had whole: no memory, limits.
    explicit ChannelMemory(const std::string& pattern);
    ~ChannelMemory();
    ChannelMemory(const ChannelMemory&) = delete;
    ChannelMemory& operator=(const ChannelMemory&) = delete;

    /// The value of HOMING_CHANNEL, and a descriptor that the program inherits: until take_back().
    std::string lend();
    void take_back();

    /// What the programs said up to now.
    struct Said {
        unsigned programs = 0; ///< program images that found the channel
        unsigned declined = 0; ///< of these, where the user did not want homing
        bool at_work = false;  ///< does any process have something to tell?
    };
    Said said() const;

    int descriptor() const { return descriptor_; }
    std::uint64_t token() const { return token_; }

  private:
    int descriptor_ = -1;
    int lent_ = -1;
    std::uint64_t token_ = 0;
};

} // namespace homing::launcher
